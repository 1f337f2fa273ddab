import { describe, expect, it } from 'vitest'
import { createCalls } from '../../../src/sync/telegram/calls.js'
import { BOT_TOKEN, startTelegram } from '../../platforms/telegram-server.js'
import { eventually } from '../../setup/eventually.js'

const NOW = Date.parse('2026-03-01T12:00:00.000Z')

describe('a call', () => {
  it('is given up after a while without an answer', async () => {
    const server = await startTelegram()
    const options = { botToken: BOT_TOKEN, apiUrl: server.url, clock: () => NOW }
    const call = createCalls({ ...options, timeoutSeconds: 0.1 })
    server.fail({ answer: 'silence' })
    await expect(call((api) => api.getMe())).rejects.toMatchObject({
      name: 'RetryableError',
      code: 'telegram_unreachable',
    })
    // On a busy machine the next answer may take longer than that, too.
    expect(await eventually(() => call((api) => api.getMe()))).toMatchObject({ is_bot: true })
  })

  it('is made once, however it ends', async () => {
    const server = await startTelegram()
    const call = createCalls({ botToken: BOT_TOKEN, apiUrl: server.url, clock: () => NOW })
    server.fail({ answer: 'close' })
    await expect(call((api) => api.getMe())).rejects.toMatchObject({ code: 'telegram_unreachable' })
    expect(server.calls('getMe')).toHaveLength(1)
  })
})
