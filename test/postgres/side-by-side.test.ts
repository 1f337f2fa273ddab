import { setTimeout as wait } from 'node:timers/promises'
import fc from 'fast-check'
import { type Kysely, sql } from 'kysely'
import { expect, it, onTestFinished } from 'vitest'
import type { Policy } from '../../src/entitlements/policy.js'
import { createBatchWriter } from '../../src/ingest/commit.js'
import { finishErasures } from '../../src/people/remove-stored.js'
import { applyPlan } from '../../src/recompute/apply.js'
import { compareStored } from '../../src/recompute/compare.js'
import { type Change, loadChanges } from '../../src/store/changes.js'
import type { DeliveryInput } from '../../src/store/events.js'
import { openPostgres } from '../../src/store/postgres/dialect.js'
import type { Database } from '../../src/store/schema.js'
import { policyInForce, savePolicy, setSetting } from '../../src/store/settings.js'
import { openDatabase } from '../../src/store/sqlite/dialect.js'
import { byHand } from '../entitlements/events.js'
import { policies } from '../entitlements/policies.js'
import { redelivered, withErasures } from '../ingest/redelivered.js'
import { deliveryOf } from '../ingest/wire.js'
import { REBUILD, VERIFY } from '../recompute/recompute-store.js'
import { emptyStores, migratedFile, postgresOfHistories } from '../store/temporary-store.js'
import { wholeState } from '../store/whole-state.js'

const NOW = Date.UTC(2030, 0, 1)

/** By hand, as many as one likes: `HISTORIES=2000 npx vitest run --project postgres test/postgres/side-by-side.test.ts`. */
const HISTORIES = Number(process.env.HISTORIES ?? 5)
const IS_BY_HAND = process.env.HISTORIES !== undefined

/** By hand: what the test is for. `BARE_SEQUENCE=1` orders the change log by a sequence alone, and it should fail soon. */
const HAS_BARE_SEQUENCE = process.env.BARE_SEQUENCE !== undefined

const INSTANCES = 4
/** Of the change log. */
const READERS = 3
/** Transactions of each at a time. */
const UNDER_WAY = 3

/** One write, in a store of one writer. */
async function stateInOrder(deliveries: readonly DeliveryInput[], policy: Policy) {
  const db = openDatabase(await migratedFile(), { readOnly: false })
  // Nobody asks this store after its process has ended.
  await sql`pragma synchronous = off`.execute(db)
  const writeBatch = createBatchWriter({ db, policy: () => policy, clock: () => NOW })
  for (const delivery of deliveries) await writeBatch([delivery])
  await finishErasures(db, () => NOW)
  const state = await wholeState(db)
  await db.destroy()
  return state
}

/** Has a quarter of the transactions that change access stand still before their commit, each for another time. */
async function slowCommits(db: Kysely<Database>): Promise<void> {
  await sql`create or replace function hold() returns trigger language plpgsql as $$
    declare own text := pg_current_xact_id()::text;
    begin
      if own::bigint % 4 = 0 and current_setting('latchkey.held', true) is distinct from own then
        perform set_config('latchkey.held', own, false), pg_sleep(random() * ${sql.lit(COMMIT_AT_MOST_S)});
      end if;
      return null;
    end $$`.execute(db)
  await sql`drop trigger if exists hold on change_log`.execute(db)
  await sql`create constraint trigger hold after insert on change_log deferrable initially deferred
    for each row execute function hold()`.execute(db)
}

/** Others commit meanwhile, and readers look. */
const COMMIT_AT_MOST_S = 0.08

/** The change log as it must not be: a lower number may be committed after a higher one that a reader has seen. */
async function orderBySequence(db: Kysely<Database>): Promise<void> {
  await sql`create or replace function change_log_place() returns bigint language sql volatile as $$
    select nextval('change_log_within') * 4096 $$`.execute(db)
  await sql`create or replace view changes as
    select cursor, at, environment, customer_id, product_id, before, after, cause_kind, cause_event_id
    from change_log`.execute(db)
}

/** Of changes that a reader asks for at a time. */
const PAGE = 3

/** As the daemon that rebuilds has it. */
const HOLDING = { lease: 'lease.recompute', holder: 'this one' }

interface Interleaving {
  readonly batches: readonly (readonly DeliveryInput[])[]
  readonly before: Policy
  readonly policy: Policy
  /** Milliseconds that transactions stand still once they have their locks; used in turn. */
  readonly pauses: readonly number[]
  /** After so many batches, the other policy is put in force. */
  readonly switchAfter: number
}

/** The connections of some instances, for one history after the other. */
async function openInstances() {
  const [db] = (await emptyStores(1)) as readonly [Kysely<Database>]
  await slowCommits(db)
  if (HAS_BARE_SEQUENCE) await orderBySequence(db)
  const options = await postgresOfHistories()
  const open = (most: number) => openPostgres(options, 'write', { most })
  const writers = Array.from({ length: INSTANCES }, () => open(UNDER_WAY))
  const other = open(1)
  const readers = Array.from({ length: READERS }, () => open(1))
  const rebuilding = openPostgres(options, 'write', { most: 2, holding: HOLDING })
  const opened = [db, ...writers, other, ...readers, rebuilding]
  onTestFinished(async () => {
    for (const one of opened) await one.destroy()
  })
  return { db, writers, other, readers, rebuilding }
}

type Instances = Awaited<ReturnType<typeof openInstances>>

async function stateSideBySide(
  { db, writers, other, readers, rebuilding }: Instances,
  { batches, before, policy, pauses, switchAfter }: Interleaving,
) {
  for (const emptied of await emptyStores(1)) await emptied.destroy()
  await db.transaction().execute(async (trx) => {
    await savePolicy(trx, before)
    await setSetting(trx, HOLDING.lease, `${HOLDING.holder} 0`)
  })
  const clock = () => NOW
  let begun = 0
  let paused = 0
  const left = [...batches]
  const writeSome = async (own: Kysely<Database>) => {
    const writeBatch = createBatchWriter({
      db: own,
      async policy(trx) {
        const inForce = await policyInForce(trx)
        await wait(pauses[paused++ % pauses.length])
        return inForce
      },
      clock,
    })
    const one = async () => {
      for (let batch = left.shift(); batch !== undefined; batch = left.shift()) {
        begun += 1
        await writeBatch(batch)
      }
    }
    await Promise.all(Array.from({ length: UNDER_WAY }, one))
  }
  const switching = async () => {
    while (begun < Math.min(switchAfter, batches.length)) await wait(1)
    await applyPlan(
      { db: rebuilding, clock, pace: { eventsPerTurn: 20, eventsPerSave: 20 } },
      { ...REBUILD, policy },
    )
    await finishErasures(other, clock)
  }
  let isWriting = true
  /** Everything, in pages of a few, as soon as it can be seen. */
  const follow = async (reader: Kysely<Database>) => {
    const seen: Change[] = []
    for (let isLast = false; !isLast; ) {
      isLast = !isWriting
      const page = await loadChanges(reader, null, seen.at(-1)?.cursor ?? 0, PAGE)
      seen.push(...page)
      if (page.length === PAGE) isLast = false
      else if (!isLast) await wait(1)
    }
    return seen
  }
  const following = readers.map(follow)
  await Promise.all([...writers.map(writeSome), switching()])
    .then(() => finishErasures(other, clock))
    .finally(() => {
      isWriting = false
    })
  const seen = await Promise.all(following)
  const state = await wholeState(db)
  const logged = await db.selectFrom('change_log').select('cursor').orderBy('cursor').execute()
  const { differences } = await compareStored(db, VERIFY, { clock })
  return { state, seen, cursors: logged.map(({ cursor }) => cursor), differences }
}

/** What side by side may differ in: an erasure that is finished before anything of its person came has found nobody. */
function orFoundNobody({ erased, ...state }: Awaited<ReturnType<typeof wholeState>>) {
  const maybeFound = erased.map((one) => ({ ...one, was_known: expect.toBeOneOf([0, one.was_known]) }))
  return { ...state, erased: maybeFound }
}

/** Each change begins with what the one before it left. (A change of `since` alone is none.) */
function brokenChains(changes: readonly Change[]) {
  const last = new Map<string, string>()
  return changes.filter(({ environment, customerId, productId, before, after }) => {
    const name = JSON.stringify([environment, customerId, productId])
    const [was, is] = [before, after].map(({ since: _, ...rest }) => JSON.stringify(rest))
    const isBroken = last.has(name) && last.get(name) !== was
    last.set(name, is as string)
    return isBroken
  })
}

/** Blocks and grants, each at its own time. */
const acts = fc
  .array(
    fc.record({
      type: fc.constantFrom(
        'manual.granted' as const,
        'manual.revoked' as const,
        'manual.blocked' as const,
        'manual.unblocked' as const,
      ),
      customerId: fc.constantFrom('cus_1', 'cus_2'),
    }),
    { maxLength: 6 },
  )
  .chain((all) =>
    fc.uniqueArray(fc.nat(90_000), { minLength: all.length, maxLength: all.length }).map((times) =>
      all.map(({ type, customerId }, i): DeliveryInput => {
        const act = {
          ...byHand(type, times[i] as number, { productId: 'pro_1', id: `man_act_${i}` }),
          customerId,
        }
        const body = Buffer.from(JSON.stringify(act))
        return { endpoint: 'manual', environment: 'live', body, headers: null, receivedAt: NOW }
      }),
    ),
  )

/** The same history, of people and purchases of its own. */
function apart(deliveries: readonly DeliveryInput[], n: number): readonly DeliveryInput[] {
  return deliveries.map(({ body, headers, ...rest }) => {
    const own = body.toString().replaceAll(/"(cus|pay|sub|evt|man)_/g, `"$1_${n}_`)
    return headers === null ? { ...rest, headers, body: Buffer.from(own) } : { ...rest, ...deliveryOf(own) }
  })
}

/** Some histories at a time: what concerns one another waits, and what does not goes on. */
const together = fc
  .tuple(withErasures, withErasures, withErasures, acts)
  .map(([a, b, c, byHand]) => [[...a, ...byHand], b, c].flatMap(apart))

const cases = together.chain((deliveries) =>
  fc.record({
    deliveries: fc.constant(deliveries),
    batches: redelivered(deliveries),
    before: policies,
    policy: policies,
    pauses: fc.array(fc.constantFrom(0, 0, 1, 3), { minLength: 3, maxLength: 7 }),
    switchAfter: fc.nat(20),
  }),
)

it('ends as in a store of one writer, and tells every change once and in order, whatever is under way at a time', {
  timeout: 120_000 + HISTORIES * 20_000,
}, async () => {
  let done = 0
  const instances = await openInstances()
  onTestFinished(() => void process.stdout.write(`${done} histories side by side\n`))
  await fc.assert(
    fc.asyncProperty(cases, async ({ deliveries, ...interleaving }) => {
      const inOrder = await stateInOrder(deliveries, interleaving.policy)
      const { state, seen, cursors, differences } = await stateSideBySide(instances, interleaving)
      done += 1
      expect(differences).toEqual({ count: 0, named: [] })
      expect(state).toEqual(orFoundNobody(inOrder))
      for (const one of seen) expect(one.map(({ cursor }) => cursor)).toEqual(cursors)
      expect(brokenChains(seen[0] ?? [])).toEqual([])
    }),
    { numRuns: HISTORIES, endOnFailure: IS_BY_HAND },
  )
})
