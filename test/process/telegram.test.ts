import { expect, it } from 'vitest'
import { BOT_TOKEN, startTelegram } from '../platforms/telegram-server.js'
import { eventually } from '../setup/eventually.js'
import { CONFIG, configuredFolder, keyEntry, kill, type ServedDaemon, serve } from './served.js'

const GROUP_ID = -1001234567890
const USER = 4_200_001
const KEY = 'lk_operator_key'

async function act(daemon: ServedDaemon, method: string, path: string, body?: object): Promise<void> {
  const answer = await fetch(`${daemon.url}${path}`, {
    method,
    headers: { Authorization: `Bearer ${KEY}`, 'Content-Type': 'application/json', Connection: 'close' },
    ...(body && { body: JSON.stringify(body) }),
  })
  expect(answer.ok).toBe(true)
}

it('the daemon ends in order while Telegram is polled, and has shown the token nowhere', async () => {
  const telegram = await startTelegram()
  telegram.addGroup(-1001234567890).askToJoin(4_200_001)
  const targets = [{ adapter: 'telegram', groupId: '-1001234567890' }]
  const folder = configuredFolder({
    ...CONFIG,
    products: { pro_gold: { targets } },
    sync: { telegram: { botToken: `\${env:TELEGRAM_BOT_TOKEN}`, apiUrl: telegram.url } },
    log: { level: 'trace' },
  })
  telegram.fail({ method: 'deleteWebhook', answer: 'close' })
  const env = { TELEGRAM_BOT_TOKEN: BOT_TOKEN, DEBUG: '*' }
  const daemon = await serve(folder, env)
  await eventually(() => expect(telegram.updates.waiting()).toEqual([]))
  await eventually(() => expect(telegram.updates.isPolled()).toBe(true))
  daemon.signal('SIGTERM')
  const { code, stdout, stderr } = await daemon.exit
  expect(code).toBe(0)
  expect(stdout).toContain('Telegram updates are received again')
  expect(stdout + stderr).not.toContain(BOT_TOKEN.split(':')[1])
})

it('whoever is being removed when the daemon is killed, and is banned by then, is not banned in the end', async () => {
  const telegram = await startTelegram()
  const group = telegram.addGroup(GROUP_ID)
  const folder = configuredFolder({
    ...CONFIG,
    api: { keys: [{ ...keyEntry('operator', KEY), scopes: ['read', 'write', 'admin'] }] },
    products: { pro_gold: { targets: [{ adapter: 'telegram', groupId: String(GROUP_ID) }] } },
    sync: { telegram: { botToken: BOT_TOKEN, apiUrl: telegram.url } },
  })
  const daemon = await serve(folder)
  await act(daemon, 'PUT', '/customers/cus_1/identities', { messengerId: String(USER) })
  await act(daemon, 'POST', '/customers/cus_1/grants', { productId: 'pro_gold', reason: 'a test' })
  group.askToJoin(USER)
  await eventually(() => expect(group.members()).toEqual([USER]))

  telegram.fail({ method: 'unbanChatMember', answer: 'silence' })
  await act(daemon, 'DELETE', '/customers/cus_1/grants/pro_gold')
  await eventually(() => expect(telegram.calls('unbanChatMember')).toHaveLength(1))
  await kill(daemon)
  expect(group.banned()).toEqual([USER])

  await serve(folder)
  await eventually(() => expect(group.banned()).toEqual([]))
  expect(group.members()).toEqual([])
})
