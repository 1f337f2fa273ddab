import { describe, expect, it } from 'vitest'
import { statusText } from '../../src/cli/sync.js'
import type { SyncStatusJson } from '../../src/handlers/sync.js'
import { accountId, BOT_TOKEN, GOLD_ROLE_ID, GUILD_ID } from '../platforms/discord-ids.js'
import { type LocalDiscord, startDiscord } from '../platforms/discord-server.js'
import { eventually } from '../setup/eventually.js'
import { SECRET, startAnswering } from '../sync/webhook/receiver.js'
import {
  type AskedDaemon,
  act,
  answerOf,
  configuredFolder,
  ENGINE,
  failureOf,
  MAY_ALL,
  run,
  serveHere,
} from '../world.js'

const TARGET = `discord:${GUILD_ID}:${GOLD_ROLE_ID}`

/** A local Discord, and a folder whose `pro_1` gives a role there. */
async function followed(removals = { atMost: 0, percent: 0 }) {
  const discord = await startDiscord()
  const folder = configuredFolder({
    ...MAY_ALL,
    products: { pro_1: { targets: [{ adapter: 'discord', guildId: GUILD_ID, roleId: GOLD_ROLE_ID }] } },
    sync: { discord: { botToken: BOT_TOKEN, apiUrl: discord.url }, removals },
  })
  return { discord, folder }
}

const grant = (daemon: AskedDaemon, customerId: string) =>
  act(daemon, 'POST', `/customers/${customerId}/grants`, { productId: 'pro_1', reason: 'a test' })

/** Customers with access and a linked account each, who are members of the guild. */
async function grantTo(daemon: AskedDaemon, discord: LocalDiscord, count: number): Promise<void> {
  for (let n = 1; n <= count; n += 1) {
    discord.guild.join(accountId(n))
    await act(daemon, 'PUT', `/customers/cus_${n}/identities`, { communityId: accountId(n) })
    await grant(daemon, `cus_${n}`)
  }
}

/** Waits until `GET /sync` says so. */
const becomes = (daemon: AskedDaemon, state: object) =>
  eventually(async () => expect(await act(daemon, 'GET', '/sync')).toMatchObject(state))
const holders = (discord: LocalDiscord) => discord.guild.holders(GOLD_ROLE_ID)
const textOf = async (folder: string, words: string) => (await run(folder, words)).stdout

describe('latchkey sync', () => {
  it('shows how it is, and makes removals beyond the bound only once they are confirmed, over a restart', async () => {
    const { discord, folder } = await followed()
    const first = await serveHere(folder)
    await grantTo(first, discord, 3)
    await eventually(() => expect(holders(discord)).toHaveLength(3))
    const memberships = { settled: 3, due: 0, parked: 0 }
    const target = { environment: 'live', target: TARGET, state: 'ok', memberships }
    await becomes(first, { targets: [target] })
    expect(await answerOf(folder, 'sync status')).toMatchObject({
      paused: false,
      unconfirmed: 0,
      platforms: [{ platform: 'discord', state: 'ok', until: null, reason: null }],
      targets: [target],
      webhooks: [],
    })
    expect(await answerOf(folder, 'sync plan')).toEqual({ paused: false, hash: null, calls: [] })
    expect(await textOf(folder, 'sync plan')).toBe('nothing to do\n')

    for (const n of [1, 2]) await act(first, 'PUT', `/customers/cus_${n}/blocks`, { reason: 'a test' })
    await becomes(first, { unconfirmed: 2 })
    await first.stop()
    const next = await serveHere(folder)
    await becomes(next, { unconfirmed: 2 })
    const plan = await answerOf(folder, 'sync plan')
    expect(plan.calls).toEqual(
      [1, 2].map((n) => ({
        environment: 'live',
        target: TARGET,
        accountId: accountId(n),
        customerId: `cus_${n}`,
        action: 'take',
        needsConfirmation: true,
      })),
    )
    const other = await failureOf(folder, 'sync run --confirm another')
    expect(other).toMatchObject({ code: 1, error: { code: 'plan_changed' } })
    expect(holders(discord)).toHaveLength(3)
    expect(await textOf(folder, 'sync plan')).toContain(`latchkey sync run --confirm ${plan.hash}`)
    const ran = await answerOf(folder, `sync run --confirm ${plan.hash}`)
    expect(ran).toMatchObject({ done: true, paused: false, taken: 2, parked: 0, unconfirmed: 0 })
    expect(holders(discord)).toEqual([accountId(3)])
  })

  it('is paused and resumed by the daemon, and tells the stopped database’s state', async () => {
    const { discord, folder } = await followed()
    const daemon = await serveHere(folder)
    expect(await textOf(folder, 'sync pause')).toBe('paused\n')
    await grantTo(daemon, discord, 1)
    await becomes(daemon, { paused: true, targets: [{ memberships: { due: 1 } }] })
    expect(await answerOf(folder, 'sync run')).toMatchObject({ paused: true, given: 0 })
    await daemon.stop()

    const stopped = await run(folder, 'sync status')
    expect(stopped.code).toBe(0)
    expect(stopped.stdout).toContain(': continue with `latchkey sync resume`\n')
    expect(stopped.stdout).toContain(`live  ${TARGET}  0 settled, 1 due\n`)
    expect(stopped.stderr).toContain('no daemon is running')
    expect((await answerOf(folder, 'sync plan')).calls).toHaveLength(1)
    expect(await answerOf(folder, 'sync status --state due')).toMatchObject({
      items: [{ accountId: accountId(1), customerId: 'cus_1', state: 'due', desired: true }],
      hasMore: false,
    })
    for (const words of ['sync run', 'sync check', 'sync resume']) {
      expect(await failureOf(folder, words)).toMatchObject({ code: 1, error: { code: 'daemon_unreachable' } })
    }
    expect(holders(discord)).toEqual([])
    await serveHere(folder)
    expect(await answerOf(folder, 'sync resume')).toEqual({ paused: false })
    await eventually(() => expect(holders(discord)).toEqual([accountId(1)]))
  })

  it('says what somebody has to do on the platform, and goes on once it is done', async () => {
    const { discord, folder } = await followed()
    const role = discord.guild.role(GOLD_ROLE_ID)
    discord.guild.setRole({ id: GOLD_ROLE_ID, position: 99 })
    const daemon = await serveHere(folder)
    const todo = "Put the bot's own role above"
    const reason = expect.stringContaining(todo)
    await eventually(() =>
      expect(daemon.logged()).toContainEqual(
        expect.objectContaining({ level: 'warn', about: TARGET, reason }),
      ),
    )
    const failing = (what: string, command: string) =>
      new RegExp(
        `^FAIL {2}sync discord:\\d+:\\d+ {2}${what}${todo} .*: once that is fixed, run \`latchkey ${command}\`$`,
        'm',
      )
    expect(await textOf(folder, 'sync status')).toMatch(failing('', 'sync check'))
    expect(await textOf(folder, 'doctor')).toMatch(failing('', 'sync check'))
    expect(await run(folder, 'sync check')).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(new RegExp(`^FAIL  ${TARGET} `, 'm')),
    })

    await grantTo(daemon, discord, 1)
    await becomes(daemon, { targets: [{ state: 'stopped' }] })
    expect(await textOf(folder, 'sync status')).toMatch(failing('stopped: ', 'sync run'))
    expect(await textOf(folder, 'doctor')).toMatch(failing('stopped: ', 'sync run'))

    discord.guild.setRole({ id: GOLD_ROLE_ID, position: role?.position ?? 1 })
    expect(await run(folder, 'sync check')).toMatchObject({ code: 0 })
    expect(await answerOf(folder, 'sync run --retry --customer cus_1')).toMatchObject({
      done: true,
      given: 1,
    })
    expect(holders(discord)).toEqual([accountId(1)])
    expect(await textOf(folder, 'doctor')).toMatch(/^ok {4}sync {2}/m)
  })

  it.runIf(ENGINE === 'sqlite')(
    'takes back what was given after the backup that was restored, and leaves what staff gave',
    async () => {
      const { discord, folder } = await followed({ atMost: 20, percent: 100 })
      const daemon = await serveHere(folder)
      discord.guild.join(accountId(9))
      discord.guild.give(accountId(9), GOLD_ROLE_ID)
      await answerOf(folder, 'backup early.db')
      await grantTo(daemon, discord, 2)
      // Not only given, but written down as given: who was not let in by the daemon stays.
      await becomes(daemon, { targets: [{ memberships: { settled: 2, due: 0 } }] })
      expect(holders(discord)).toHaveLength(3)
      await daemon.stop()

      const restored = await textOf(folder, 'restore early.db')
      expect(restored).toContain('kept from the replaced database: 2\n')
      expect(restored).toContain('sync is paused: see `latchkey sync plan`')
      const next = await serveHere(folder)
      await act(next, 'PUT', '/customers/cus_1/identities', { communityId: accountId(1) })
      await grant(next, 'cus_1')
      await becomes(next, { paused: true, targets: [{ memberships: { settled: 1, due: 1 } }] })
      const { calls } = await answerOf(folder, 'sync plan')
      expect(calls).toMatchObject([{ action: 'take', customerId: 'cus_2', accountId: accountId(2) }])
      expect(holders(discord)).toHaveLength(3)
      await answerOf(folder, 'sync resume')
      await eventually(() => expect(holders(discord)).toEqual([accountId(1), accountId(9)]))
    },
  )
})

describe('latchkey sync, of outbound webhooks,', () => {
  it('shows, tests and sends again, shows it without a daemon too, and knows no more of an erased person than the id', async () => {
    const receiver = await startAnswering(204)
    const address = { url: receiver.url, secret: SECRET }
    const folder = configuredFolder({
      ...MAY_ALL,
      sync: { webhook: address, webhooks: { crm: { ...address, types: ['entitlement.revoked'] } } },
    })
    const daemon = await serveHere(folder)
    await act(daemon, 'PUT', '/customers/cus_1/identities', { communityId: accountId(1) })
    await grant(daemon, 'cus_1')
    await act(daemon, 'DELETE', '/customers/cus_1', { reason: 'they asked' })
    const messages = async (words = '') => (await answerOf(folder, `sync messages ${words}`)).items
    await eventually(async () => expect(await messages('--status delivered')).toHaveLength(3))
    const all = await messages()
    expect(all).toMatchObject([
      { webhook: 'default', type: 'entitlement.revoked', attempts: [{ status: 204 }] },
      { webhook: 'crm', type: 'entitlement.revoked', customerId: 'cus_1' },
      { webhook: 'default', type: 'entitlement.granted' },
    ])
    expect(JSON.stringify(all)).not.toContain(accountId(1))
    const page = await act(daemon, 'GET', '/sync/messages?limit=2')
    const next = await act(daemon, 'GET', `/sync/messages?limit=2&cursor=${page.pagination.nextCursor}`)
    expect([...page.items, ...next.items]).toEqual(all)
    expect(next.pagination).toEqual({ nextCursor: null, hasMore: false })
    expect(await messages(`--webhook crm --customer cus_1 --id ${all[0].id}`)).toHaveLength(1)
    expect(await textOf(folder, 'sync messages --limit 1')).toMatch(/^msg_\S+ +default .* 204 in \d+ ms/)

    expect(await textOf(folder, 'sync test crm')).toMatch(/^msg_test_\w+: answered 204 in \d+ ms\n$/)
    const unknown = async (words: string) => (await run(folder, words)).stderr
    expect(await unknown('sync test odd')).toContain('has the id odd: the config has default, crm.\n')
    expect(await unknown('sync messages --webhook odd')).toContain('in the config: default, crm.\n')
    expect(await unknown('sync run --retry --target webhook:odd')).toBe(
      'error: The target "webhook:odd" must be one of webhook:default, webhook:crm.\n',
    )
    expect(await unknown('sync replay msg_odd_1')).toBe(
      'error: The message "msg_odd_1" is not in the log, which keeps 30 days.\n',
    )
    expect(await answerOf(folder, `sync replay ${all[0].id}`)).toEqual({ messages: 2 })
    await eventually(async () => expect((await messages('--webhook crm'))[0].attempts).toHaveLength(2))
    receiver.answerWith(410)
    const refused = await run(folder, 'sync test crm --environment sandbox')
    expect(refused).toMatchObject({ code: 1, stdout: expect.stringContaining('answered 410') })
    const [{ queuedAt }] = all
    const from = new Date(Date.parse(queuedAt) - 60_000).toISOString()
    expect(await answerOf(folder, `sync replay --webhook default --from ${from}`)).toEqual({ messages: 2 })
    await eventually(async () => expect(await messages('--status failed')).toHaveLength(2))
    await daemon.stop()
    expect(await messages('--status failed')).toHaveLength(2)
    expect(await failureOf(folder, 'sync test crm')).toMatchObject({ error: { code: 'daemon_unreachable' } })
    await serveHere(folder)
    expect(await answerOf(folder, 'sync run --retry --target webhook:default')).toMatchObject({ messages: 2 })
  })
})

describe('a retry of messages', () => {
  it('says how many are sent again, and does not fail because of a role that nobody may give', async () => {
    const discord = await startDiscord()
    const receiver = await startAnswering(410)
    const folder = configuredFolder({
      ...MAY_ALL,
      products: { pro_1: { targets: [{ adapter: 'discord', guildId: GUILD_ID, roleId: GOLD_ROLE_ID }] } },
      sync: {
        discord: { botToken: BOT_TOKEN, apiUrl: discord.url },
        webhooks: { crm: { url: receiver.url, secret: SECRET } },
      },
    })
    discord.guild.setRole({ id: GOLD_ROLE_ID, position: 99 })
    const daemon = await serveHere(folder)
    await grantTo(daemon, discord, 1)
    await becomes(daemon, { targets: [{ state: 'stopped' }], webhooks: [{ failed: 1 }] })
    const retry = 'sync run --retry --target webhook:crm'
    expect(await run(folder, retry)).toMatchObject({ code: 0, stdout: '1 message to send again\n' })
    await becomes(daemon, { webhooks: [{ failed: 1 }] })
    receiver.answerWith(204)
    expect(await run(folder, 'sync run --retry')).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(
        /^0 given, 0 taken, 0 already correct\n1 stopped: .*\n1 message to send again\n$/,
      ),
    })
    await becomes(daemon, { webhooks: [{ failed: 0, waiting: 0 }] })
    expect(await run(folder, retry)).toMatchObject({ code: 0, stdout: '0 messages to send again\n' })
  })
})

describe('the text of sync status', () => {
  const NOW = Date.parse('2026-03-02T12:00:00Z')
  const AN_HOUR_AGO = '2026-03-02T11:00:00.000Z'
  const COUNTS = { settled: 5, due: 0, retrying: 0, waiting: 0, parked: 0, unconfirmed: 0 }
  const SETTLED: SyncStatusJson['targets'][number] = {
    environment: 'live',
    target: 'discord:1:2',
    state: 'ok',
    until: null,
    reason: null,
    memberships: COUNTS,
  }
  const STATUS: SyncStatusJson = {
    paused: false,
    unconfirmed: 0,
    sweptAt: null,
    checked: null,
    platforms: [],
    targets: [SETTLED],
    webhooks: [],
    unreachable: [],
    leads: true,
  }
  const WEBHOOK = {
    id: 'default',
    origin: 'https://app.example',
    disabled: false,
    waiting: 2,
    oldestWaitingAt: AN_HOUR_AGO,
    failed: 0,
    lastDeliveredAt: null,
    lastError: null,
  }
  const LAST_ERROR = { at: AN_HOUR_AGO, reason: 'answered 410' }
  const reason = { code: 'platform_unreachable', message: 'Discord could not be reached.' }
  const limited = (until: string): Partial<SyncStatusJson> => ({
    platforms: [{ platform: 'discord', state: 'limited', until, reason }],
  })
  const FOLLOWS = 'ok    sync                1 target, 5 settled, 0 under way'
  const roleMissing = { code: 'role_not_found', message: 'The server 1 has no role 2: correct the roleId.' }

  it.each<[string, Partial<SyncStatusJson>, readonly string[]]>([
    [
      'once why a target is stopped, though a check has found the same',
      {
        targets: [{ ...SETTLED, state: 'stopped', reason: roleMissing }],
        checked: {
          at: AN_HOUR_AGO,
          problems: [
            { about: 'discord:1:2', message: roleMissing.message },
            { about: 'telegram', message: 'The bot token is wrong.' },
          ],
        },
      },
      [
        FOLLOWS,
        'FAIL  sync discord:1:2    stopped: The server 1 has no role 2: correct the roleId: once that is fixed, run `latchkey sync run`',
        'FAIL  sync telegram       The bot token is wrong: once that is fixed, run `latchkey sync check`',
      ],
    ],
    [
      'who waits for the customer, and who for an operator',
      { targets: [{ ...SETTLED, memberships: { ...COUNTS, waiting: 3, parked: 1 } }] },
      [
        'ok    sync                1 target, 5 settled, 0 under way, 3 waiting for the customer to join',
        'warn  sync parked         1 membership parked until somebody acts: see why: `latchkey sync status --state parked`',
      ],
    ],
    [
      'a limit as a wait while it is one',
      limited('2026-03-02T12:00:01.000Z'),
      ['discord: no call before 2026-03-02T12:00:01.000Z: Discord could not be reached.', FOLLOWS],
    ],
    ['a limit that ends now as none', limited('2026-03-02T12:00:00.000Z'), [FOLLOWS]],
    ['a limit that has ended as none', limited('2026-03-02T11:59:57.000Z'), [FOLLOWS]],
    [
      'how each outbound webhook is',
      { webhooks: [WEBHOOK, { ...WEBHOOK, id: 'crm', failed: 1, lastError: LAST_ERROR }] },
      [
        FOLLOWS,
        'ok    sync webhook:default  2 waiting for 1h',
        'warn  sync webhook:crm    2 waiting for 1h, 1 failed, last error 1h ago: answered 410: fix the receiver, then `latchkey sync run --retry --target webhook:crm`',
      ],
    ],
    [
      'since when a platform is unreachable',
      {
        unreachable: [{ platform: 'discord', since: '2026-03-02T11:58:00.000Z', reason: reason.message }],
      },
      [
        FOLLOWS,
        'warn  sync discord        Discord has been unreachable for 2m, 0 memberships waiting: Discord could not be reached: check the network, and whether Discord is down; retried automatically',
      ],
    ],
  ])('tells %s', (_what, told, lines) => {
    const [, ...rest] = statusText({ ...STATUS, ...told }, NOW, (_style, text) => text)
      .trimEnd()
      .split('\n')
    expect(rest).toEqual(lines)
  })

  it('says nothing of roles and groups where there are only webhooks', () => {
    const told = { ...STATUS, sweptAt: AN_HOUR_AGO, targets: [], webhooks: [WEBHOOK] }
    expect(statusText(told, NOW, (_style, text) => text)).toMatch(/^ok {4}sync webhook:default .*\n$/)
  })
})
