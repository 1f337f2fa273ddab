import { expect, it } from 'vitest'
import { call, runDaemon } from '../../daemon/running-daemon.js'
import { BOT_TOKEN, startTelegram } from '../../platforms/telegram-server.js'
import { eventually } from '../../setup/eventually.js'
import { GROUP_ID } from './connected.js'

const FIRST_USER = 4_200_000
const users = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => FIRST_USER + from + n)
const customerOf = (userId: number) => `cus_${userId}`

it('ends with exactly the right members after an outage and a limit in which access changed', async () => {
  const server = await startTelegram()
  const group = server.addGroup(GROUP_ID)
  const targets = [{ adapter: 'telegram', groupId: String(GROUP_ID) }]
  const daemon = await runDaemon({
    // Waits are to end.
    now: 'running',
    config: {
      products: { pro_gold: { targets } },
      sync: {
        telegram: { botToken: BOT_TOKEN, apiUrl: server.url },
        removals: { atMost: 1_000, percent: 100 },
      },
    },
  })
  const grant = (userId: number) =>
    call(daemon, 'POST', `/customers/${customerOf(userId)}/grants`, { productId: 'pro_gold', reason: 'paid' })
  const revoke = (userId: number) =>
    call(daemon, 'DELETE', `/customers/${customerOf(userId)}/grants/pro_gold`)
  const join = async (userId: number) => {
    await grant(userId)
    await call(daemon, 'PUT', `/customers/${customerOf(userId)}/identities`, { messengerId: String(userId) })
    group.askToJoin(userId)
  }
  for (const userId of users(0, 40)) await join(userId)
  await eventually(() => expect(group.members()).toEqual(users(0, 40)))

  server.isDown = true
  for (const userId of users(0, 20)) await revoke(userId)
  for (const userId of users(20, 30)) {
    await revoke(userId)
    await grant(userId)
  }
  for (const userId of users(40, 60)) await join(userId)
  server.isDown = false
  server.limit(1)

  await eventually(() => expect(group.members()).toEqual(users(20, 60)))
  await eventually(() => expect(group.banned()).toEqual([]))
  expect(group.pending()).toEqual([])
  const calls = [...server.calls(), ...server.calls('getUpdates')]
  expect(calls.map(({ status }) => status)).toContain(429)
  expect(calls.filter(({ isEarly }) => isEarly)).toEqual([])
})
