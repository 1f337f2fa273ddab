import { expect, it } from 'vitest'
import type { DiscordCall } from '../platforms/discord-calls.js'
import { accountId, GOLD_ROLE_ID } from '../platforms/discord-ids.js'
import { type DiscordState, type LocalDiscord, startDiscord } from '../platforms/discord-server.js'
import { eventually } from '../setup/eventually.js'
import { deliver, type SentEvent, sentEvent } from '../stories.js'
import { type ReceivedMessage, startReceiver } from '../sync/webhook/receiver.js'
import { ask, entitlementsOf, kill, readStore, type ServedDaemon } from '../world.js'
import { filesWith, followedFolder, PRODUCT, SECRETS, serveFollowed } from './followed.js'

/** A customer with an account in the community, whose access comes and goes. */
interface Member {
  readonly customerId: string
  readonly accountId: string
  /** Whether they have access in the beginning. */
  readonly begins: boolean
  /** Whether they end as they began, however often their access changes meanwhile. */
  readonly flaps: boolean
  /** Whether staff had given them the role before all that. */
  readonly isStaff: boolean
}

/** As many of each kind as of any other: 1,200 changes in every run; by hand 320 members, and 10,000. */
const MEMBERS: readonly Member[] = Array.from(
  { length: Number(process.env.ROLES_MEMBERS ?? 40) },
  (_, n) => ({
    customerId: `cus_${n}`,
    accountId: accountId(n + 1),
    begins: n % 2 === 0,
    flaps: n % 4 >= 2,
    isStaff: Math.floor(n / 4) % 10 === 0,
  }),
)
/** Even: who flaps is as in the beginning after so many changes; the others change once more. */
const CHANGES = 30
const CHANGES_AN_OUTAGE = 8
/** So many calls may have been made, and their answers not written down, when a process dies. */
const CONCURRENCY = 4
/** One hundredth of what Discord allows in ten minutes. */
const FEW_INVALID_CALLS = 100

const BEGUN_AT = Date.UTC(2026, 0, 31, 12)

/** The nth event of a member about a product: every second one pays, and the one after it refunds that. */
function turn({ customerId, accountId: communityId }: Member, n: number, product = PRODUCT): SentEvent {
  return sentEvent(
    `evt_${customerId}_${product}_${n}`,
    n % 2 === 0 ? 'payment.authorized' : 'payment.refunded',
    BEGUN_AT + n * 60_000,
    {
      object: 'payment',
      id: `pay_${customerId}_${product}_${Math.floor(n / 2)}`,
      method: 'CARD',
      customer: { object: 'customer', id: customerId, communityId },
      product: { object: 'product', id: product },
    },
  )
}

/** The event that makes a member's nth change of access, from 1 on. */
const change = (member: Member, n: number) => turn(member, member.begins ? n : n - 1)

const accountsOf = (members: readonly Member[]) => members.map((member) => member.accountId)
const holders = (discord: LocalDiscord) => discord.guild.holders(GOLD_ROLE_ID)

/** Those with access, and those whom staff gave the role: they keep it. */
const rightHolders = (isEntitled: (member: Member) => boolean) =>
  accountsOf(MEMBERS.filter((member) => member.isStaff || isEntitled(member))).toSorted()

/** Delivers events at once; the time that takes, in milliseconds. */
async function takeIn(daemon: ServedDaemon, events: readonly SentEvent[]): Promise<number> {
  const begunAt = performance.now()
  const { acknowledged, refused } = await deliver(daemon.url, events)
  expect({ acknowledged: acknowledged.length, refused }).toEqual({ acknowledged: events.length, refused: [] })
  return performance.now() - begunAt
}

/** The nth change of everybody's access. Round by round, nobody's are out of order. */
function takeInRound(daemon: ServedDaemon, n: number): Promise<number> {
  const changing = MEMBERS.filter(({ flaps }) => n <= CHANGES || !flaps)
  return takeIn(
    daemon,
    changing.map((member) => change(member, n)),
  )
}

/** How long a round takes that has nothing to do with the platform. */
async function expectAccess(daemon: ServedDaemon, changes: number): Promise<void> {
  for (const member of MEMBERS.slice(0, 8)) {
    const own = member.flaps ? Math.min(changes, CHANGES) : changes
    const access = (await entitlementsOf(daemon, member.customerId)).find((one) => one.productId === PRODUCT)
    expect(access?.active ?? false).toBe(member.begins === (own % 2 === 0))
  }
}

interface FollowedState {
  readonly platforms: readonly { readonly reason: { readonly code: string } | null }[]
}

const stateOf = async (daemon: ServedDaemon) => (await ask(daemon, '/sync')).json() as Promise<FollowedState>

/** What operators and machines are told of it, as text. */
async function toldBy(daemon: ServedDaemon): Promise<string> {
  const paths = ['/sync', '/sync/plan', '/sync/memberships?limit=100', '/metrics', '/readyz', '/healthz']
  const answers = await Promise.all(paths.map(async (path) => (await ask(daemon, path)).text()))
  return answers.join('\n')
}

/** What each answer of a platform that limits all calls asks for. */
const RETRY_AFTER_SECONDS = 1.5
const LIMITS_ALL: DiscordState = {
  answer: {
    status: 429,
    headers: {
      'content-type': 'application/json',
      'retry-after': String(Math.ceil(RETRY_AFTER_SECONDS)),
      'x-ratelimit-global': 'true',
      'x-ratelimit-scope': 'global',
    },
    body: JSON.stringify({ message: 'Slow down.', retry_after: RETRY_AFTER_SECONDS, global: true }),
  },
}

/** The ways in which a platform is down, and by what one sees that the daemon has met each. */
const OUTAGES: readonly [DiscordState, (last: DiscordCall | undefined, state: FollowedState) => boolean][] = [
  [{ status: 503 }, (last) => last?.status === 503],
  ['hang', (last) => last?.status === null],
  ['refuse', (_, { platforms }) => platforms[0]?.reason?.code === 'discord_unreachable'],
  [LIMITS_ALL, (last) => last?.status === 429],
]

/** How long a call may take before it is given up. */
const CALL_MS = 15_000

/** Who is told to wait may have sent a call before, which comes late on a machine that has other work too. */
const ON_ITS_WAY_MS = 500

/** Those that came before a `retry_after` had passed, whoever told it. */
function earlyCalls(calls: readonly DiscordCall[], duringLimits: readonly DiscordCall[]) {
  const limited = duringLimits.filter(({ status }) => status === 429)
  const isTooEarly = ({ at }: DiscordCall): boolean =>
    limited.some((told) => at > told.at + ON_ITS_WAY_MS && at < told.at + RETRY_AFTER_SECONDS * 1_000)
  const wasToldLongAgo = ({ at }: DiscordCall): boolean => {
    const told = calls.filter((one) => one.status === 429 && !one.isEarly && one.at <= at)
    return at > Math.max(0, ...told.map((one) => one.at)) + ON_ITS_WAY_MS
  }
  return calls.filter((call) => (call.isEarly && wasToldLongAgo(call)) || isTooEarly(call))
}

/** The accounts that the role was given to or taken from, one for every such call that Discord has done. */
function changedAccounts(calls: readonly DiscordCall[]): readonly string[] {
  return calls
    .filter(({ route, status }) => route === 'role' && status === 204)
    .map(({ path }) => /\/members\/(\d+)\//.exec(path)?.[1] ?? '')
}

/** By customer, the places in the change log. */
async function cursorsLogged(folder: string) {
  const changes = await readStore(folder, (db) =>
    db.selectFrom('changes').select(['cursor', 'customer_id']).orderBy('cursor').execute(),
  )
  return Map.groupBy(changes, ({ customer_id: id }) => id)
}

/** The same of what the outbound webhook told, in its order; what came again right after itself counts once. */
function cursorsTold(received: readonly ReceivedMessage[]) {
  const told = received.map(({ id, payload }) => ({
    cursor: Number(id.split('_')[2]),
    customer_id: payload.data.customerId,
  }))
  const byCustomer = Map.groupBy(told, ({ customer_id: id }) => id)
  for (const [id, all] of byCustomer) {
    byCustomer.set(
      id,
      all.filter(({ cursor }, i) => cursor !== all[i - 1]?.cursor),
    )
  }
  return byCustomer
}

it('after outages of every kind, a thousand changes of access and a kill, exactly those with access have the role', async () => {
  const receiver = await startReceiver()
  const discord = await startDiscord()
  const moderator = accountId(10_000)
  discord.guild.join(...accountsOf(MEMBERS), moderator)
  for (const account of [...rightHolders(() => false), moderator]) discord.guild.give(account, GOLD_ROLE_ID)
  const folder = followedFolder(discord, receiver)
  let daemon = await serveFollowed(folder)
  await takeIn(
    daemon,
    MEMBERS.filter(({ begins }) => begins).map((member) => turn(member, 0)),
  )
  await eventually(() =>
    expect(holders(discord)).toEqual([...rightHolders(({ begins }) => begins), moderator]),
  )
  const written: string[] = []

  const downFrom = discord.calls.length
  let round = 0
  for (const [state, isMet] of OUTAGES) {
    await discord.setState(state)
    await takeInRound(daemon, ++round)
    await eventually(async () => expect(isMet(discord.calls.at(-1), await stateOf(daemon))).toBe(true))
    const times: number[] = []
    while (round % CHANGES_AN_OUTAGE > 0 && round <= CHANGES) times.push(await takeInRound(daemon, ++round))
    // Were acknowledgements to wait for a platform that hangs, each would, for as long as a call is given.
    expect(Math.min(...times)).toBeLessThan(CALL_MS)
    await expectAccess(daemon, round)
    written.push(await toldBy(daemon))
  }
  expect(round).toBe(CHANGES + 1)
  expect(changedAccounts(discord.calls.slice(downFrom))).toEqual([])

  const upFrom = discord.calls.length
  const someAre = discord.auditLog.length + MEMBERS.length / 8
  await discord.setState('up')
  await eventually(() => expect(discord.auditLog.length).toBeGreaterThan(someAre), { intervalMs: 1 })
  await kill(daemon)
  const killedAt = discord.calls.length
  const right = [...rightHolders(({ begins, flaps }) => begins === flaps), moderator]
  expect(holders(discord)).not.toEqual(right)
  written.push(daemon.stdout(), daemon.stderr())
  discord.limit({ scope: 'global', seconds: 2 })
  daemon = await serveFollowed(folder)
  const settled = {
    paused: false,
    targets: [{ memberships: { due: 0, retrying: 0, parked: 0, unconfirmed: 0 } }],
    webhooks: [{ waiting: 0, failed: 0 }],
  }
  await eventually(async () => expect(await stateOf(daemon)).toMatchObject(settled))
  expect(holders(discord)).toEqual(right)
  await expectAccess(daemon, round)

  expect(earlyCalls(discord.calls, discord.calls.slice(downFrom, upFrom))).toEqual([])
  const invalid = discord.calls.filter(({ status }) => [401, 403, 429].some((one) => one === status))
  expect(invalid.length).toBeLessThan(FEW_INVALID_CALLS)
  // Nobody has heard the answer of a call that was under way when the process died: it is made once more.
  const unheard = changedAccounts(discord.calls.slice(upFrom, killedAt)).slice(-CONCURRENCY)
  const changed = changedAccounts(discord.calls.slice(upFrom))
  for (const account of accountsOf(MEMBERS.filter(({ flaps }) => flaps))) {
    const calls = changed.filter((one) => one === account).length
    expect(calls).toBeLessThanOrEqual(unheard.includes(account) ? 2 : 1)
  }

  const logged = await cursorsLogged(folder)
  expect([...logged.values()].flat().length).toBeGreaterThan(MEMBERS.length * CHANGES)
  expect(receiver.refused).toEqual([])
  expect(cursorsTold(receiver.received)).toEqual(logged)

  written.push(await toldBy(daemon))
  await daemon.stop()
  const seen = [...written, daemon.stdout(), daemon.stderr()].join('\n')
  expect(SECRETS.filter((secret) => seen.includes(secret))).toEqual([])
  expect(filesWith(folder, SECRETS)).toEqual([])
}, 300_000)
