import { setImmediate as turn } from 'node:timers/promises'
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { LatchkeyError } from '../../src/errors.js'
import { type Apply, createRecomputeJobs, type RecomputeJobsDeps } from '../../src/recompute/jobs.js'
import type { RecomputeReport } from '../../src/recompute/run.js'
import { performSyncWrite } from '../../src/sync/writes.js'
import { eventually } from '../setup/eventually.js'
import { temporaryStore } from '../store/temporary-store.js'
import { apiKey, bearer, NOW, openFront } from './daemon-front.js'

const NO_DIFFERENCE = { gains: 0, losses: 0, otherwise: 0, sample: [] }

const REPORT: RecomputeReport = {
  counts: {
    read: 4,
    changed: 0,
    recovered: 0,
    quarantined: 0,
    duplicates: 0,
    skipped: 0,
    notReplayable: 0,
    altered: 0,
  },
  access: { all: NO_DIFFERENCE, live: NO_DIFFERENCE, sandbox: NO_DIFFERENCE },
  customers: [],
  differences: { count: 0, named: [] },
}

const jobsOn = async (apply: Apply, clock = () => NOW, onWrite = () => {}) => {
  const db = await temporaryStore()
  const deps: RecomputeJobsDeps = {
    compare: async () => REPORT,
    alone: (work) => work(apply),
    db,
    writeSync: (name, change) =>
      db.transaction().execute((trx) => {
        onWrite()
        return performSyncWrite(trx, name, change, clock())
      }),
    isRecomputing: async () => false,
    endpoints: () => ({ v3: { environment: 'live', aheadAtMostMs: 86_400_000 } }),
    previewCalls: async () => ({ gives: 0, takes: 0, sample: [] }),
    clock,
    log: pino({ level: 'silent' }),
  }
  return createRecomputeJobs(deps)
}

/** Replays that go on until they are told to end, or to stop. */
async function openWithReplays() {
  let now = NOW
  let step: () => void = () => {}
  let isEnding = false
  const apply: Apply = async (_, { onProgress, isStopping }) => {
    onProgress?.(100, 1_000)
    await isStopping?.()
    while (!isEnding) {
      await new Promise<void>((resolve) => {
        step = resolve
        if (isEnding) resolve()
      })
      now += 2_000
      onProgress?.(300, 1_000)
      if (await isStopping?.()) throw new LatchkeyError('replay_interrupted', 'Stopped.')
    }
    return REPORT
  }
  const replays = await jobsOn(apply, () => now)
  const front = await openFront({
    jobs: replays,
    apiKeys: () => [apiKey('root', { scopes: ['admin'], environments: ['live', 'sandbox'] })],
  })
  const call = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${front.url}${path}`, {
      method,
      headers: { ...bearer('root'), 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: answer.status, location: answer.headers.get('location'), told: await answer.json() }
  }
  const end = (): void => {
    isEnding = true
    step()
  }
  return { replays, call, end, proceed: () => step() }
}

it('runs one at a time, which whoever asks for the same joins', async () => {
  const { call, end, replays } = await openWithReplays()
  const first = await call('POST', '/replays', { filter: { type: 'payment.refunded' } })
  expect(first).toMatchObject({ status: 202, told: { state: 'running' } })
  const same = await call('POST', '/replays', { filter: { type: 'payment.refunded' } })
  expect(same).toMatchObject({ status: 202, location: first.location })
  for (const other of [{}, { filter: { type: 'payment.refunded' }, dryRun: true }]) {
    const refused = await call('POST', '/replays', other)
    expect(refused).toMatchObject({ status: 409, told: { code: 'replay_running' } })
  }
  end()
  await replays.close()
  expect((await call('POST', '/replays', {})).status).toBe(202)
})

it('stops a replay also while its progress is being saved', async () => {
  let stopped: Promise<void> | undefined
  let writes = 0
  const apply: Apply = async (_, { isStopping }) => {
    while (!(await isStopping?.())) await turn()
    throw new LatchkeyError('replay_interrupted', 'Stopped.')
  }
  // The first write saves its begin, the second its progress.
  const jobs = await jobsOn(apply, undefined, () => {
    writes += 1
    if (writes === 2) stopped = jobs.close()
  })
  const { id } = await jobs.startReplay({ filter: {} as never, dryRun: false })
  await eventually(() => expect(stopped).toBeDefined())
  await stopped
  expect(await jobs.findReplay(id)).toMatchObject({ outcome: { state: 'stopped' } })
})

it('compares where nothing can be written', async () => {
  const jobs = await jobsOn(
    () => Promise.reject(new Error('a comparison applies nothing')),
    undefined,
    () => {
      throw new LatchkeyError('store_unavailable', 'The disk is full.')
    },
  )
  await jobs.startComparison('verification', ['live'], null, 10)
  await eventually(async () =>
    expect(await jobs.last('verification')).toMatchObject({ outcome: { state: 'done' } }),
  )
  await expect(jobs.startRebuild(DOCUMENTED_POLICY)).rejects.toMatchObject({ code: 'store_unavailable' })
})

it('runs no rebuild beside a replay', async () => {
  const { call, end, replays } = await openWithReplays()
  await call('POST', '/replays', {})
  await expect(replays.startRebuild(DOCUMENTED_POLICY)).rejects.toMatchObject({ code: 'replay_running' })
  end()
  await replays.close()
  expect(await replays.startRebuild(DOCUMENTED_POLICY)).toMatchObject({ kind: 'rebuild' })
})

it('runs no replay beside a rebuild, and no rebuild under another policy', async () => {
  const { call, end, replays } = await openWithReplays()
  await replays.startRebuild(DOCUMENTED_POLICY)
  for (const dryRun of [true, false]) {
    const refused = await call('POST', '/replays', { dryRun })
    expect(refused).toMatchObject({ status: 409, told: { code: 'rebuild_running' } })
  }
  const other = { ...DOCUMENTED_POLICY, canceled: 'period_end' } as const
  await expect(replays.startRebuild(other)).rejects.toMatchObject({ code: 'rebuild_running' })
  expect(await replays.startRebuild(DOCUMENTED_POLICY)).toMatchObject({ outcome: { state: 'running' } })
  end()
  await eventually(async () =>
    expect(await replays.last('rebuild')).toMatchObject({ outcome: { state: 'done' } }),
  )
})

it('tells how fast it is, and how long it will take', async () => {
  const { call, proceed, replays } = await openWithReplays()
  const { location } = await call('POST', '/replays', {})
  proceed()
  const { told } = await call('GET', String(location))
  expect(told).toMatchObject({
    state: 'running',
    endedAt: null,
    summary: null,
    progress: { reached: 300, total: 1_000, perSecond: 100, remainingSeconds: 7 },
  })
  const stopping = replays.close()
  proceed()
  await stopping
})

it('stops when it is deleted, and is remembered as that', async () => {
  const { call, proceed, end } = await openWithReplays()
  const { location } = await call('POST', '/replays', {})
  const deleting = call('DELETE', String(location))
  const asking = setInterval(proceed, 5)
  expect(await deleting).toMatchObject({ status: 200, told: { state: 'stopped', reason: 'Stopped.' } })
  clearInterval(asking)
  expect(await call('GET', String(location))).toMatchObject({ told: { state: 'stopped' } })

  const next = await call('POST', '/replays', {})
  expect(next.location).not.toBe(location)
  end()
  await eventually(async () =>
    expect((await call('GET', '/replays')).told).toMatchObject({
      items: [{ state: 'done', summary: { read: 4 } }, { state: 'stopped' }],
    }),
  )
})

it('shows and stops what is of the environment that is named', async () => {
  const { call, end, replays } = await openWithReplays()
  const { location } = await call('POST', '/replays?environment=sandbox', {})
  const listed = async (query: string) => (await call('GET', `/replays${query}`)).told
  for (const query of ['', '?environment=sandbox']) expect(await listed(query)).toMatchObject({ items: [{}] })
  expect(await listed('?environment=live')).toMatchObject({ items: [] })
  for (const method of ['GET', 'DELETE']) {
    expect(await call(method, `${location}?environment=live`)).toMatchObject({
      status: 404,
      told: { code: 'replay_not_found' },
    })
  }
  expect(await call('GET', `${location}?environment=sandbox`)).toMatchObject({ told: { state: 'running' } })
  end()
  await replays.close()
})

it('lists replays page by page, newest first', async () => {
  const { call, end, replays } = await openWithReplays()
  end()
  const ids: unknown[] = []
  for (const type of ['payment.failed', 'payment.refunded', 'payment.settled']) {
    const { told } = await call('POST', '/replays', { filter: { type } })
    ids.unshift((told as { id: string }).id)
    await eventually(async () =>
      expect(await replays.replays()).toMatchObject(Array(ids.length).fill({ outcome: { state: 'done' } })),
    )
  }
  const listed = async (query: string) => (await call('GET', `/replays?${query}`)).told
  const first = await listed('limit=2')
  expect(first).toMatchObject({ items: [{ id: ids[0] }, { id: ids[1] }], pagination: { hasMore: true } })
  const { nextCursor } = (first as { pagination: { nextCursor: string } }).pagination
  expect(await listed(`limit=2&cursor=${nextCursor}`)).toMatchObject({
    items: [{ id: ids[2] }],
    pagination: { nextCursor: null, hasMore: false },
  })
})

it('tells of a failure no more than that its cause is in the log', async () => {
  const replays = await jobsOn(async () => {
    throw new Error('secret')
  })
  const filter = { type: null, disposition: null, customerId: null, endpoint: null, from: null, to: null }
  const { id } = await replays.startReplay({ filter: { environment: 'live', ...filter }, dryRun: false })
  await replays.close()
  expect((await replays.findReplay(id))?.outcome).toEqual({
    state: 'failed',
    endedAt: NOW,
    reason: 'The cause is in the log.',
  })
})
