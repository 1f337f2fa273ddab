import { pino } from 'pino'
import { expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { NORMALIZER_VERSION } from '../../src/provider/event.js'
import { createRecomputeJobs } from '../../src/recompute/jobs.js'
import { performSyncWrite } from '../../src/sync/writes.js'
import { grantOf } from '../ingest/wire.js'
import { interruptedAt, NOW, REBUILD, type RecomputeStore, storeUnder, VERIFY } from './recompute-store.js'

const GRANTS = [1, 2, 3, 4, 5, 6, 7].map(grantOf)

/** What 1.0.0 wrote of an interrupted rebuild of seven events, word for word but for the policy. */
const REBUILD_OF_1_0_0 = `{"scope":["live","sandbox"],"endpoints":null,"policy":${JSON.stringify(DOCUMENTED_POLICY)},"normalizerVersion":${NORMALIZER_VERSION},"isMoving":false,"newest":7,"reached":4,"counts":{"read":0,"changed":0,"recovered":0,"quarantined":0,"duplicates":0,"skipped":0,"notReplayable":0,"altered":0},"changesAfter":7}`

/** And of a verification that had ended. */
const VERIFICATION_OF_1_0_0 =
  '{"id":"verification","kind":"verification","number":3,"plan":{"scope":["live","sandbox"],"endpoints":null,"policy":null,"mode":"verify","sampleSize":1000},"startedAt":1893456000000,"progress":{"reached":7,"total":7,"perSecond":null,"remainingSeconds":0},"outcome":{"state":"done","endedAt":1893456000000,"report":{"counts":{"read":0,"changed":0,"recovered":0,"quarantined":0,"duplicates":0,"skipped":0,"notReplayable":0,"altered":0},"access":{"all":{"gains":0,"losses":0,"otherwise":0,"sample":[]},"live":{"gains":0,"losses":0,"otherwise":0,"sample":[]},"sandbox":{"gains":0,"losses":0,"otherwise":0,"sample":[]}},"differences":{"count":0,"named":[]},"calls":null}}}'

const newer = (record: string): string => JSON.stringify({ ...JSON.parse(record), version: 2, plan: 'other' })

async function storeWith(settings: Readonly<Record<string, string>> = {}) {
  const store = await storeUnder(DOCUMENTED_POLICY, GRANTS)
  const rows = Object.entries(settings).map(([key, value]) => ({ key, value }))
  if (rows.length > 0) await store.db.insertInto('settings').values(rows).execute()
  const stored = async (key: string) => {
    const row = await store.db
      .selectFrom('settings')
      .select('value')
      .where('key', '=', key)
      .executeTakeFirst()
    return row?.value
  }
  return { ...store, stored }
}

function jobsOn({ db, recompute }: RecomputeStore, givenBack: Promise<unknown> = Promise.resolve()) {
  const warnings: string[] = []
  const jobs = createRecomputeJobs({
    compare: (plan, { onProgress = () => {} }) => recompute(plan, { onProgress }),
    alone: (work) => work(recompute).finally(() => givenBack),
    db,
    writeSync: (name, change) => db.transaction().execute((trx) => performSyncWrite(trx, name, change, NOW)),
    isRecomputing: async () => false,
    endpoints: () => ({}),
    previewCalls: async () => ({ gives: 0, takes: 0, sample: [] }),
    clock: () => NOW,
    log: pino({ level: 'warn' }, { write: (line) => void warnings.push(JSON.parse(line).msg) }),
  })
  return { jobs, warnings }
}

it('an interrupted rebuild of 1.0.0 is continued', async () => {
  const store = await storeWith({ recompute: REBUILD_OF_1_0_0 })
  const reached: number[] = []
  await store.recompute(REBUILD, { onProgress: (place) => reached.push(place) })
  expect([reached[0], reached.at(-1)]).toEqual([4, 7])
  expect(await store.stored('recompute')).toBeUndefined()
})

it('what 1.0.0 knew of its last verification is shown, and one that it did not end as stopped', async () => {
  const { jobs } = jobsOn(await storeWith({ 'job.verification': VERIFICATION_OF_1_0_0 }))
  expect(await jobs.last('verification')).toMatchObject({
    number: 3,
    outcome: { state: 'done', report: { differences: { count: 0 } } },
  })
  const { outcome: _, ...rest } = JSON.parse(VERIFICATION_OF_1_0_0)
  const running = JSON.stringify({ ...rest, outcome: { state: 'running' } })
  const { jobs: others } = jobsOn(await storeWith({ 'job.verification': running }))
  expect(await others.last('verification')).toMatchObject({ outcome: { state: 'stopped' } })
  expect(await others.startComparison('verification', ['live'], null, 1)).toMatchObject({ number: 4 })
  await others.close()
})

it('what is unfinished, and what is known of jobs, is stored with the version of its form', async () => {
  const store = await storeWith()
  expect(await interruptedAt(2, store, REBUILD)).toBe('rebuild_interrupted')
  const { jobs } = jobsOn(store)
  await jobs.startComparison('verification', ['live'], null, 1)
  await jobs.close()
  for (const key of ['recompute', 'job.verification'])
    expect(JSON.parse((await store.stored(key)) ?? '')).toMatchObject({ version: 1 })
})

it('a rebuild that a newer Latchkey began is left to that one', async () => {
  const recompute = newer(REBUILD_OF_1_0_0)
  const store = await storeWith({ recompute })
  const refused = { code: 'rebuild_running', message: expect.stringMatching(/^A newer Latchkey began/) }
  for (const plan of [REBUILD, VERIFY]) await expect(store.recompute(plan)).rejects.toMatchObject(refused)
  const { jobs, warnings } = jobsOn(store)
  await expect(jobs.startRebuild(DOCUMENTED_POLICY)).rejects.toMatchObject(refused)
  // At a start, which goes on.
  await jobs.resume()
  expect(warnings).toEqual([expect.stringMatching(/^A newer Latchkey began/)])
  expect(await store.stored('recompute')).toBe(recompute)
})

it('what only a newer Latchkey knows of a job is not shown, and hinders nothing', async () => {
  const store = await storeWith({
    'job.verification': newer(VERIFICATION_OF_1_0_0),
    'job.rep_1': newer(VERIFICATION_OF_1_0_0.replaceAll('"verification"', '"replay"')),
  })
  const { jobs } = jobsOn(store)
  expect(await jobs.last('verification')).toBeNull()
  expect(await jobs.replays()).toEqual([])
  expect(await jobs.current()).toBeNull()
  await jobs.startComparison('verification', ['live'], null, 1)
  await jobs.close()
  expect(await jobs.last('verification')).toMatchObject({ outcome: { state: 'done' } })
})

it('a job whose end is shown hinders no other, though its turn is not given back yet', async () => {
  const { promise: givenBack, resolve: giveBack } = Promise.withResolvers<void>()
  const { jobs } = jobsOn(await storeWith(), givenBack)
  await jobs.startComparison('verification', ['live'], null, 1)
  await expect.poll(() => jobs.last('verification')).toMatchObject({ outcome: { state: 'done' } })
  const next = jobs.startComparison('policy diff', ['live'], DOCUMENTED_POLICY, 1)
  next.catch(() => {})
  // By then it has looked which jobs there are.
  await jobs.replays()
  giveBack()
  expect(await next).toMatchObject({ kind: 'policy diff', number: 2 })
  await jobs.close()
})
