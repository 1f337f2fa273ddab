import { describe, expect, it } from 'vitest'
import { call, type RunningDaemon, runDaemon } from '../../daemon/running-daemon.js'
import { BotApiError } from '../../platforms/telegram-errors.js'
import { BOT_ID, type LocalGroup } from '../../platforms/telegram-group.js'
import { BOT_TOKEN, type Fault, type LocalTelegram, startTelegram } from '../../platforms/telegram-server.js'
import { eventually } from '../../setup/eventually.js'
import { GROUP_ID } from './connected.js'

const USER = 4_200_001
const OTHER = 4_200_002
const INVITES_FAIL = { method: 'createChatInviteLink', answer: new BotApiError(500, 'Internal Server Error') }

interface FollowingOptions {
  readonly groupId?: number
  /** Met from the start on. */
  readonly faults?: readonly Fault[]
}

/** The whole daemon, with one product behind one group. */
async function following({ groupId = GROUP_ID, faults = [] }: FollowingOptions = {}) {
  const server = await startTelegram()
  for (const fault of faults) server.fail(fault)
  const group = server.addGroup(groupId)
  const targets = [{ adapter: 'telegram', groupId: String(groupId) }]
  const config = {
    products: { pro_gold: { targets } },
    sync: { telegram: { botToken: BOT_TOKEN, apiUrl: server.url } },
  }
  const daemon = await runDaemon({ config })
  // Links end by the messenger's clock.
  daemon.setNow(Date.now())
  return { server, group, daemon, config }
}

const grant = (daemon: RunningDaemon, customerId = 'cus_1') =>
  call(daemon, 'POST', `/customers/${customerId}/grants`, { productId: 'pro_gold', reason: 'a test' })
const revoke = (daemon: RunningDaemon, customerId = 'cus_1') =>
  call(daemon, 'DELETE', `/customers/${customerId}/grants/pro_gold`)
const link = (daemon: RunningDaemon, userId: number, customerId = 'cus_1') =>
  call(daemon, 'PUT', `/customers/${customerId}/identities`, { messengerId: String(userId) })

async function inviteUrl(daemon: RunningDaemon): Promise<string> {
  const { json } = await call(daemon, 'POST', '/customers/cus_1/invites')
  const [invite] = (json as { readonly invites: readonly { readonly url: string }[] }).invites
  return invite?.url ?? ''
}

async function caughtUp(server: LocalTelegram): Promise<void> {
  await eventually(() => expect(server.updates.waiting()).toEqual([]))
}

async function membersAre(group: LocalGroup, userIds: readonly number[]): Promise<void> {
  await eventually(() => expect(group.members()).toEqual(userIds))
}

describe('the members of a group', () => {
  it('are let in by an invite while they have access, and removed once they have not', async () => {
    const { server, group, daemon } = await following()
    await grant(daemon)
    const url = await inviteUrl(daemon)
    group.askToJoin(USER, url)
    await membersAre(group, [USER])
    await eventually(() => expect(group.links.get(url)?.is_revoked).toBe(true))
    await revoke(daemon)
    await membersAre(group, [])
    await eventually(() => expect(group.banned()).toEqual([]))
    expect(server.calls('approveChatJoinRequest').map(({ status }) => status)).toEqual([200])
    expect(server.calls('banChatMember')).toHaveLength(1)
  })

  it('can be nobody who was erased: they get no link, which would lead nowhere', async () => {
    const { daemon } = await following()
    await call(daemon, 'DELETE', '/customers/cus_1')
    await grant(daemon)
    for (const links of ['link-tokens', 'invites']) {
      expect(await call(daemon, 'POST', `/customers/cus_1/${links}`)).toMatchObject({
        status: 409,
        json: { code: 'customer_erased' },
      })
    }
  })

  it('are let in who linked their account before they ask', async () => {
    const { server, group, daemon } = await following()
    await grant(daemon)
    const { status, json } = await call(daemon, 'POST', '/customers/cus_1/link-tokens')
    expect(status).toBe(201)
    server.say(USER, `/start ${(json as { token: string }).token}`)
    await caughtUp(server)
    group.askToJoin(USER)
    await membersAre(group, [USER])
  })

  it('are let in who asked before their access came, once they ask again', async () => {
    const { server, group, daemon } = await following()
    await link(daemon, USER)
    group.askToJoin(USER)
    await caughtUp(server)
    expect(group.pending()).toEqual([])
    await grant(daemon)
    group.askToJoin(USER)
    await membersAre(group, [USER])
  })

  it('are asked after who asked while the daemon was away', async () => {
    const { server, group, daemon } = await following()
    await grant(daemon)
    await link(daemon, USER)
    await caughtUp(server)
    await daemon.stop()
    group.askToJoin(USER)
    group.askToJoin(OTHER)
    await daemon.restart()
    await membersAre(group, [USER])
    await eventually(() => expect(group.pending()).toEqual([]))
  })
})

describe('what somebody has to mend', () => {
  const problemsOf = async (daemon: RunningDaemon) => {
    const { json } = await call(daemon, 'GET', '/sync')
    return (json as { readonly checked: { readonly problems: readonly unknown[] } | null }).checked?.problems
  }

  it('is told of at once where the bot loses its rights in a group, until it has them again', async () => {
    const { server, group, daemon } = await following()
    await eventually(async () => expect(await problemsOf(daemon)).toEqual([]))
    group.setStatus(BOT_ID, 'member')
    await caughtUp(server)
    const lost = { about: `telegram:${GROUP_ID}`, message: expect.stringContaining('make it one') }
    await eventually(async () => expect(await problemsOf(daemon)).toEqual([lost]))
    group.setStatus(BOT_ID, 'administrator')
    await eventually(async () => expect(await problemsOf(daemon)).toEqual([]))
  })
})

describe('an invite that cannot be had', () => {
  it.each<[string, (world: Awaited<ReturnType<typeof following>>) => unknown, number, string]>([
    [
      'Telegram is away',
      ({ server }) => Object.assign(server, { isDown: true }),
      503,
      'platform_unavailable',
    ],
    ['Telegram fails', ({ server }) => server.fail(INVITES_FAIL), 503, 'platform_unavailable'],
    ['the token does not count', ({ server }) => server.revokeToken(), 502, 'platform_refused'],
    ['the bot was removed', ({ group }) => group.setStatus(BOT_ID, 'kicked'), 502, 'platform_refused'],
  ])('since %s is told of in one line, without a stack', async (_, happen, status, code) => {
    const world = await following()
    await grant(world.daemon)
    await happen(world)
    const answered = await call(world.daemon, 'POST', '/customers/cus_1/invites')
    expect(answered).toMatchObject({ status, json: { code } })
    const lines = world.daemon.logged().filter(({ msg }) => msg === 'could not serve a request')
    expect(lines).toMatchObject([
      { route: '/customers/:customerId/invites', code, reason: expect.any(String) },
    ])
    expect(JSON.stringify(lines)).not.toContain('stack')
  })
})
