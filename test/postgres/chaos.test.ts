import { Agent } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import { expect, it } from 'vitest'
import type { Database } from '../../src/store/schema.js'
import { accountId, BOT_TOKEN, GOLD_ROLE_ID, GUILD_ID } from '../platforms/discord-ids.js'
import { startDiscord } from '../platforms/discord-server.js'
import { startTelegram, BOT_TOKEN as TELEGRAM_TOKEN } from '../platforms/telegram-server.js'
import { eventually } from '../setup/eventually.js'
import { deliver as deliverAll, type SentEvent, send, sentEvent } from '../stories.js'
import {
  API_KEY,
  type AskedDaemon,
  ask,
  configuredFolder,
  databaseIn,
  MAY_ALL,
  openStoreAt,
  readStore,
  run,
  SECRET,
  type SeenEntitlement,
  serve,
} from '../world.js'
import { type Chaos, type PlatformCall, randomFrom, startChaos } from './chaos.js'
import type { Instance } from './instance.js'

/**
 * By hand, for as long as one likes, and once more as it was:
 * `CHAOS_MS=300000 CHAOS_SEED=7 npx vitest run --project postgres test/postgres/chaos.test.ts`.
 */
const CHAOS_MS = Number(process.env.CHAOS_MS ?? 10_000)
const SEED = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000)

/** Says how far a long run is. */
const note = (what: string) => {
  if (process.env.CHAOS_MS !== undefined) process.stdout.write(`${new Date().toISOString()} ${what}\n`)
}

const pick = <One>(random: () => number, all: readonly One[]) => all[Math.floor(random() * all.length)] as One

const SENDERS = 8
/** Customers whose events come in any order at a time. */
const OPEN = 24
const PRODUCT = 'pro_1'
const GIFT = 'pro_gift'
const GROUP = -1001234567890
const SANDBOX_SECRET = 'whsec_chaos_sandbox_0123456789'
const BEGUN_AT = Date.UTC(2026, 0, 1, 12)

const CONFIG = {
  ...MAY_ALL,
  endpoints: { ...MAY_ALL.endpoints, sandbox: { environment: 'sandbox', secrets: [SANDBOX_SECRET] } },
}

interface Shopper {
  readonly customerId: string
  readonly environment: 'live' | 'sandbox'
  readonly events: readonly SentEvent[]
  /** What is left to send, in any order; some of it twice. */
  readonly left: SentEvent[]
  /** What is done by hand once all of it has come. */
  readonly byHand: 'grant' | 'erase' | null
  /** In Discord, and in Telegram. */
  readonly accounts: { readonly communityId?: string; readonly messengerId?: string }
}

/** A subscription whose payments are linked to it by its own events alone, renewed some times, perhaps refunded. */
function shopper(n: number, random: () => number): Shopper {
  const environment = n % 5 === 0 ? 'sandbox' : 'live'
  const isLive = environment === 'live'
  const customerId = `cus_${n}`
  const accounts = {
    ...(isLive && n % 3 === 0 && { communityId: accountId(n) }),
    ...(isLive && n % 7 === 0 && { messengerId: String(4_000_000 + n) }),
  }
  const facts = {
    customer: { object: 'customer', id: customerId, email: `${n}@example.com`, ...accounts },
    product: { object: 'product', id: PRODUCT },
  }
  const cycles = 1 + Math.floor(random() * 4)
  const events = Array.from({ length: cycles }, (_, cycle) => {
    const at = BEGUN_AT + cycle * 60_000
    const payment = { object: 'payment', id: `pay_${n}_${cycle}`, method: 'CARD', ...facts }
    const subscription = { object: 'subscription', id: `sub_${n}`, payment_id: payment.id, ...facts }
    const type = cycle === 0 ? 'subscription.created' : 'subscription.renewed'
    return [
      sentEvent(`evt_${n}_${cycle}_paid`, 'payment.authorized', at, payment, isLive),
      sentEvent(`evt_${n}_${cycle}`, type, at + 1, subscription, isLive),
      ...(cycle === cycles - 1 && random() < 0.4
        ? [sentEvent(`evt_${n}_refunded`, 'payment.refunded', at + 2, payment, isLive)]
        : []),
    ]
  }).flat()
  const twice = events.filter(() => random() < 0.1)
  const left = [...events, ...twice].map((event) => ({ event, place: random() }))
  const chance = random()
  return {
    customerId,
    environment,
    events,
    left: left.sort((a, b) => a.place - b.place).map(({ event }) => event),
    byHand: chance < 0.1 ? 'grant' : chance < 0.15 ? 'erase' : null,
    accounts,
  }
}

const endpointOf = ({ environment }: Pick<Shopper, 'environment'>) =>
  environment === 'live'
    ? { endpoint: 'live', secret: SECRET }
    : { endpoint: 'sandbox', secret: SANDBOX_SECRET }

/** By hand, as somebody would: again under the same key until it is done. */
async function doByHand(url: string, { byHand, customerId, environment }: Shopper): Promise<void> {
  if (byHand === null) return
  const [method, path, body] =
    byHand === 'grant'
      ? (['POST', '/grants', { productId: GIFT, reason: 'a gift' }] as const)
      : (['DELETE', '', {}] as const)
  for (;;) {
    const answer = await fetch(`${url}/customers/${customerId}${path}?environment=${environment}`, {
      method,
      headers: {
        Authorization: `Bearer ${API_KEY}`,
        'Content-Type': 'application/json',
        'Idempotency-Key': `gift ${customerId}`,
        Connection: 'close',
      },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(10_000),
    }).catch(() => null)
    if (answer?.ok === true) return
    if (answer !== null) expect(answer.status).toBe(503)
    await wait(50)
  }
}

interface Listed {
  readonly cursor: string
}

/** The change log from a cursor on, to its end. */
async function changesAfter(
  { url }: Pick<AskedDaemon, 'url'>,
  environment: string,
  from: string | null,
): Promise<readonly Listed[]> {
  const found: Listed[] = []
  for (let cursor = from; ; ) {
    const after = cursor === null ? '' : `&cursor=${cursor}`
    const answer = await ask({ url }, `/changes?environment=${environment}&limit=100${after}`)
    if (!answer.ok) return found
    const { items } = (await answer.json()) as { items: readonly Listed[] }
    found.push(...items)
    if (items.length === 0) return found
    cursor = items.at(-1)?.cursor ?? null
  }
}

/** Notes who wrote where a job is, who has which lease, and who records a call, in the order of the commits; from then on. */
async function watchWrites(db: Kysely<Database>): Promise<void> {
  await sql`create table watched (n bigserial, at double precision, key text, value text, app text)`.execute(
    db,
  )
  await sql`create function watch() returns trigger language plpgsql as $$ begin
      insert into watched (at, key, value, app) values (extract(epoch from clock_timestamp()) * 1000,
        coalesce(tg_argv[0], to_jsonb(new) ->> 'key', to_jsonb(old) ->> 'key'), to_jsonb(new) ->> 'value',
        current_setting('application_name'));
      return null; end $$`.execute(db)
  await sql`create trigger watch_settings after insert or update or delete on settings for each row
    execute function watch()`.execute(db)
  // Someone let in has an instant at once; of a call, only its answer has one.
  await sql`create trigger watch_calls after update on memberships for each row
    when (new.applied is distinct from old.applied and (new.applied <> 'unknown' or new.applied_at is null))
    execute function watch('call')`.execute(db)
  // Whoever has the lease by now renews it within seconds. Nobody is killed before that: nothing would tell who had it.
  await eventually(async () => {
    const { rows } = await sql`select from watched where key = 'lease.following'`.execute(db)
    expect(rows).not.toEqual([])
  })
}

interface Watched {
  readonly at: number
  readonly key: string
  readonly value: string | null
  readonly app: string
}

/** Whoever has the lease, from when to when, by the clock of the database, which is this machine's. */
function tenures(watched: readonly Watched[], lease: string) {
  const found: { readonly app: string; readonly from: number; until: number }[] = []
  for (const { key, value, app, at } of watched) {
    if (key !== lease) continue
    const last = found.at(-1)
    const until = value === null ? at : Number(value.split(' ')[1])
    if (last?.app === app && last.until >= at) last.until = until
    else if (value !== null) {
      if (last !== undefined) last.until = Math.min(last.until, at)
      found.push({ app, from: at, until })
    }
  }
  return found
}

/** The writes of a job by an instance that did not have its lease then. */
function unleased(watched: readonly Watched[], lease: string, isOfJob: (key: string) => boolean) {
  /** Not known at first: the lease may be older than the trigger. */
  let holder: string | null | undefined
  return watched.filter(({ key, value, app }) => {
    if (key === lease) holder = value === null ? null : app
    return isOfJob(key) && holder !== undefined && app !== holder
  })
}

/** For what is on its way between two processes of this machine. */
const NEAR_MS = 250

const stoodStill = ({ stops }: Instance, from: number, until: number) =>
  stops.some((stop) => stop.from < until && stop.until + NEAR_MS > from)

/** Polls that an instance began while another's was open, and that one was neither stopped nor had just gone on. */
function pollsAtOnce(polls: readonly PlatformCall[], instances: readonly Instance[]) {
  return polls.filter((poll, i) =>
    polls.slice(0, i).some((earlier) => {
      const other = instances.find(({ name }) => name === earlier.instance) as Instance
      const isOpen = earlier.instance !== poll.instance && earlier.until > poll.from + NEAR_MS
      const own = instances.find(({ name }) => name === poll.instance) as Instance
      const end = poll.from + NEAR_MS
      return isOpen && !stoodStill(other, poll.from, end) && !stoodStill(own, poll.from - NEAR_MS, end)
    }),
  )
}

async function startAll(): Promise<Chaos & Awaited<ReturnType<typeof platforms>>> {
  const all = await platforms()
  const portOf = ({ url }: { readonly url: string }) => Number(new URL(url).port)
  const chaos = await startChaos(
    (byWay) => ({
      ...CONFIG,
      products: {
        [PRODUCT]: {
          targets: [
            { adapter: 'discord', guildId: GUILD_ID, roleId: GOLD_ROLE_ID },
            { adapter: 'telegram', groupId: String(GROUP) },
          ],
        },
      },
      sync: {
        discord: { botToken: BOT_TOKEN, apiUrl: `http://127.0.0.1:${byWay(portOf(all.discord))}/api` },
        telegram: {
          botToken: TELEGRAM_TOKEN,
          apiUrl: `http://127.0.0.1:${byWay(portOf(all.telegram))}`,
        },
        removals: { atMost: 100_000, percent: 100 },
      },
    }),
    [portOf(all.discord), portOf(all.telegram)],
  )
  return { ...all, ...chaos }
}

async function platforms() {
  const telegram = await startTelegram()
  return {
    discord: await startDiscord({ globalPerSecond: 100_000 }),
    telegram,
    group: telegram.addGroup(GROUP),
  }
}

it(
  'answers and follows as one daemon would while instances are killed, stopped and cut off, and PostgreSQL restarts',
  async () => {
    process.stdout.write(`CHAOS_SEED=${SEED}\n`)
    const chaos = await startAll()
    const { instances, url, folder, server, discord, group } = chaos
    const first = instances[0] as Instance
    const db = await openStoreAt(databaseIn(folder), { readOnly: false })
    await watchWrites(db)

    note('served')
    const begun = Date.now()
    const until = begun + CHAOS_MS
    const random = randomFrom(SEED)
    const agent = new Agent({ keepAlive: false })
    const shoppers: Shopper[] = []
    const acknowledged = new Map<string, number>()
    const refusals = new Map<string, number>()
    let lastAt = begun
    let longestGap = 0

    /** Delivers until somebody acknowledges it, as the provider does. */
    async function deliver(event: SentEvent, to: Shopper): Promise<void> {
      for (;;) {
        const answer = await send(url, event, { ...endpointOf(to), agent })
        if (answer?.status === 200) break
        const what = answer === null ? 'no answer' : `${answer.status}`
        refusals.set(what, (refusals.get(what) ?? 0) + 1)
        await wait(50)
      }
      longestGap = Math.max(longestGap, Date.now() - lastAt)
      lastAt = Date.now()
      acknowledged.set(event.id, (acknowledged.get(event.id) ?? 0) + 1)
    }

    const open: Shopper[] = []
    function comeIn(): void {
      const next = shopper(shoppers.length + 1, random)
      shoppers.push(next)
      open.push(next)
      const { communityId, messengerId } = next.accounts
      if (communityId !== undefined) discord.guild.join(communityId)
      if (messengerId !== undefined) setTimeout(() => group.askToJoin(Number(messengerId)), 2_000 * random())
    }
    const senders = Array.from({ length: SENDERS }, async () => {
      while (Date.now() < until || open.length > 0) {
        while (open.length < OPEN && Date.now() < until) comeIn()
        const one = open[Math.floor(random() * open.length)] as Shopper
        const event = one.left.pop()
        if (event !== undefined) await deliver(event, one)
        else if (open.includes(one)) {
          open.splice(open.indexOf(one), 1)
          await doByHand(url, one)
        }
        await wait(random() * 30)
      }
    })

    const read: Record<Shopper['environment'], Listed[]> = { live: [], sandbox: [] }
    let isReading = true
    const reader = (async () => {
      while (isReading) {
        for (const [environment, items] of Object.entries(read)) {
          const cursor = items.at(-1)?.cursor ?? null
          items.push(...(await changesAfter({ url }, environment, cursor).catch(() => [])))
        }
        await wait(50)
      }
    })()

    /** Jobs, of which one runs at a time, wherever it was asked for. */
    const jobs = (async () => {
      for (let round = 0; Date.now() < until; round += 1) {
        const path = ['/rebuild', '/replays', '/rebuild/verification'][round % 3]
        const headers = { Authorization: `Bearer ${API_KEY}`, 'Content-Type': 'application/json' }
        const asked = { method: 'POST', headers: { ...headers, Connection: 'close' }, body: '{}' }
        await fetch(`${url}${path}`, { ...asked, signal: AbortSignal.timeout(5_000) }).catch(() => null)
        await wait(1_000 + 2_000 * random())
      }
    })()

    /** Every connection ends, in the middle of whatever it was about; and the server with them, two times of three. */
    const restarts = { stop: 0, crash: 0, connections: 0 }
    const restarting = (async () => {
      const others = sql`datname = current_database() and pid <> pg_backend_pid()`
      for (
        let next: keyof typeof restarts = 'stop';
        ;
        next = pick(random, ['stop', 'crash', 'connections'])
      ) {
        await wait(3_000 + 9_000 * random())
        if (Date.now() > until - 5_000 && restarts.stop > 0) return
        if (next !== 'connections') await server.restart(next, 2_000 * random())
        else await sql`select pg_terminate_backend(pid) from pg_stat_activity where ${others}`.execute(db)
        restarts[next] += 1
        note(`${next}: all connections have ended`)
      }
    })()

    const left = () => Math.max(500, until - Date.now())
    await Promise.all(instances.map((one, i) => one.trouble(randomFrom(SEED + i + 1), until - 2_000, left)))
    note('in order again')
    await Promise.all([...senders, jobs, restarting])
    note('all sent')
    await eventually(async () => {
      const asked = instances.map((one) => ask(one.daemon(), '/readyz').then(({ status }) => status))
      expect(await Promise.all(asked)).toEqual(instances.map(() => 200))
    })
    isReading = false
    await reader

    note('all ready')

    // Stored once, and counted as often as it was acknowledged, or more often: an answer may have been lost.
    const stored = await readStore(folder, (store) =>
      store
        .selectFrom('events')
        .select(['event_id', 'deliveries'])
        .where('endpoint', '!=', 'manual')
        .execute(),
    )
    expect(stored.map(({ event_id: id }) => id).sort()).toEqual([...acknowledged.keys()].sort())
    for (const { event_id: id, deliveries } of stored) {
      expect(deliveries, id).toBeGreaterThanOrEqual(acknowledged.get(id) ?? 0)
    }

    // The cursor that was followed meanwhile has led to the whole log, to each change once.
    for (const [environment, items] of Object.entries(read)) {
      const cursor = items.at(-1)?.cursor ?? null
      items.push(...(await changesAfter(first.daemon(), environment, cursor)))
      expect(items).toEqual(await changesAfter(first.daemon(), environment, null))
    }

    const watched = (await sql<Watched>`select at, key, value, app from watched order by n`.execute(db)).rows
    await db.destroy()
    const following = tenures(watched, 'lease.following')
    expect(unleased(watched, 'lease.following', (key) => key === 'call')).toEqual([])
    expect(unleased(watched, 'lease.recompute', (key) => /^recompute/.test(key))).toEqual([])

    const polls = chaos.calls.filter(({ line }) => line.includes('getUpdates'))
    expect(pollsAtOnce(polls, instances)).toEqual([])
    const changing = chaos.calls.filter(({ line }) => /^(PUT|DELETE) |(ban|unban|approve)Chat/.test(line))
    const watchedFrom = following[0]?.from ?? 0
    const isLeading = ({ instance, from }: PlatformCall) =>
      following.some((one) => one.app === instance && one.from <= from && from < one.until)
    const outside = changing.filter((call) => call.from > watchedFrom && !isLeading(call))
    const late = outside.filter(({ instance, from }) =>
      stoodStill(instances.find(({ name }) => name === instance) as Instance, from - NEAR_MS, from),
    )
    expect(outside.filter((call) => !late.includes(call))).toEqual([])

    note('nobody did what another did')
    await eventually(async () =>
      expect(
        await run(folder, `rebuild --verify --url ${url}`, { env: { LATCHKEY_API_KEY: API_KEY } }),
      ).toMatchObject({ code: 0 }),
    )
    note('verified')
    await expectSameAsOneDaemon(first.daemon(), shoppers)

    note('the same as on SQLite')
    await eventually(
      async () => {
        for (const one of instances) await sweep(one.daemon())
        const active = await activeShoppers(first, shoppers)
        expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual(
          active.flatMap(({ accounts: { communityId } }) => communityId ?? []).sort(),
        )
        const messengers = new Set(active.map(({ accounts }) => Number(accounts.messengerId)))
        expect(group.members().filter((member) => !messengers.has(member))).toEqual([])
      },
      { intervalMs: 1_000 },
    )

    process.stdout.write(
      `${JSON.stringify({
        seed: SEED,
        seconds: Math.round((Date.now() - begun) / 1_000),
        shoppers: shoppers.length,
        deliveries: [...acknowledged.values()].reduce((a, b) => a + b, 0),
        refusals: Object.fromEntries(refusals),
        changes: read.live.length + read.sandbox.length,
        faults: { ...chaos.faults, restarts },
        takeovers: following.length,
        platformCalls: changing.length,
        callsLateAfterAStop: late.length,
        polls: polls.length,
        longestGapMs: longestGap,
      })}\n`,
    )
  },
  CHAOS_MS + 300_000,
)

async function sweep({ url }: AskedDaemon): Promise<void> {
  const headers = {
    Authorization: `Bearer ${API_KEY}`,
    'Content-Type': 'application/json',
    Connection: 'close',
  }
  const answer = await fetch(`${url}/sync/run`, { method: 'POST', headers, body: '{"sweep":true}' })
  expect({ status: answer.status, text: await answer.text() }).toMatchObject({
    status: expect.toBeOneOf([200, 202]),
  })
}

async function activeShoppers(instance: Instance, shoppers: readonly Shopper[]) {
  const found: Shopper[] = []
  for (const one of shoppers.filter(({ accounts }) => Object.keys(accounts).length > 0)) {
    const answer = await ask(instance.daemon(), `/entitlements/${one.customerId}/${PRODUCT}`)
    if (((await answer.json()) as { active: boolean }).active && one.byHand !== 'erase') found.push(one)
  }
  return found
}

/** The answers of one daemon on SQLite that was sent everything once, in order. */
async function expectSameAsOneDaemon(daemon: AskedDaemon, shoppers: readonly Shopper[]): Promise<void> {
  const folder = configuredFolder(CONFIG)
  const plain = await serve(folder)
  for (const environment of ['live', 'sandbox'] as const) {
    const events = shoppers.filter((one) => one.environment === environment).flatMap((one) => one.events)
    expect((await deliverAll(plain.url, events, endpointOf({ environment }))).refused).toEqual([])
  }
  for (const one of shoppers) {
    await doByHand(plain.url, one)
    expect(await accessOf(daemon, one)).toEqual(await accessOf(plain, one))
  }
}

async function accessOf(daemon: AskedDaemon, { customerId, environment, byHand }: Shopper) {
  const answer = await ask(daemon, `/entitlements/${customerId}?environment=${environment}`)
  const { entitlements } = (await answer.json()) as { entitlements: readonly SeenEntitlement[] }
  // What was done by hand was done at another time.
  return byHand === null
    ? entitlements
    : entitlements.map(({ productId, active, status }) => ({ productId, active, status }))
}
