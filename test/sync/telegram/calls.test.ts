import { expect, it } from 'vitest'
import { createOutgoing } from '../../../src/sync/outgoing.js'
import { createCalls } from '../../../src/sync/telegram/calls.js'
import { BOT_TOKEN, startTelegram } from '../../platforms/telegram-server.js'
import { eventually } from '../../setup/eventually.js'

it('a call is given up after a while without an answer', async () => {
  const server = await startTelegram()
  const outgoing = createOutgoing(() => true)
  const call = createCalls({
    botToken: BOT_TOKEN,
    apiUrl: server.url,
    clock: Date.now,
    outgoing,
    timeoutSeconds: 0.1,
  })
  server.fail({ answer: 'silence' })
  await expect(call((api) => api.getMe())).rejects.toMatchObject({
    name: 'RetryableError',
    code: 'telegram_unreachable',
  })
  // On a busy machine the next answer may take longer than that, too.
  expect(await eventually(() => call((api) => api.getMe()))).toMatchObject({ is_bot: true })
})
