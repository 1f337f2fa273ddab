import { examineApart } from '../doctor/examine.js'
import { ok, warn } from '../doctor/finding.js'
import { isLatchkeyError } from '../errors.js'
import { socketFileOf } from '../handlers/api-key.js'
import type { ControlDeps } from '../handlers/control.js'
import type { Readiness } from '../handlers/health.js'
import { type Listeners, startListeners } from '../handlers/listeners.js'
import { syncStateJson } from '../handlers/sync.js'
import { importLines } from '../history/import.js'
import { readGaps } from '../operations/delivery-gaps.js'
import { addDaemonMetrics, readRefusals, type SyncState } from '../operations/metrics.js'
import { createErase } from '../people/erase.js'
import { consoleSecret } from '../store/settings.js'
import type { ShownState } from '../sync/membership.js'
import { outageWords } from '../sync/outages.js'
import { usableSocket } from './notes.js'
import type { Parts } from './parts.js'

/** Load balancers ask often, and each test writes: those who ask within a second share one. */
const TESTED_EVERY_MS = 1_000

/** Opens the addresses and the local socket, with every route. */
export async function serveRoutes(parts: Parts): Promise<Listeners> {
  const { config, control, started, current, metrics, queue, accept, ingest, clock, log, tracing } = parts
  const { recomputing, backfilling, following, erasing, keyUses } = parts
  const socketFile = await usableSocket(socketFileOf(config.database.file), log)
  const readiness = createReadiness(parts)
  let listeners: Listeners | null = null
  listeners = await startListeners({
    ...parts,
    ...current.forRoutes,
    jobs: recomputing,
    backfills: backfilling,
    sync: following.control,
    messenger: following.messenger,
    addresses: config.server,
    socketFile,
    apiKeys: () => current.now().apiKeys,
    keys: keyUses.list,
    keyUsed: keyUses.note,
    gaps: () => readGaps(parts.db, clock()),
    version: control.version,
    hasConsole: config.console,
    consoleSecret: () => consoleSecret(parts.db),
    ...(tracing && { traced: tracing.ofRequests }),
    ingest: accept,
    erase: createErase(erasing),
    examine: (thorough) => examine(parts, thorough),
    importLines: (lines, { dryRun, ...rules }) =>
      importLines(lines, rules, {
        endpointNamed: (name) => current.now().endpoints.find((one) => one.name === name),
        ingest: dryRun ? null : ingest,
        clock,
      }),
    isWriterAlive: queue.isAlive,
    readiness,
    control: { ...control, status: async () => statusOf(parts, await readiness(), listeners, socketFile) },
  })
  started.add('listeners', listeners.stop)
  addDaemonMetrics(metrics.registry, async () => ({
    version: control.version,
    isReady: await readiness().then(
      ({ ready }) => ready,
      () => false,
    ),
    isConfigOutdated: current.note() !== null,
    apiKeys: current.now().apiKeys,
    endpoints: current.now().endpoints,
  }))
  return listeners
}

/** Whether a delivery could be stored now, and notes for the operator. */
function createReadiness({ store, queue, current, policyDiffers, following }: Parts) {
  const { canWrite } = store.writer
  let testedAt = Number.NEGATIVE_INFINITY
  let result = Promise.resolve(false)
  const wasWritten = (): Promise<boolean> => {
    if (performance.now() - testedAt < TESTED_EVERY_MS) return result
    testedAt = performance.now()
    result = canWrite().catch(() => false)
    return result
  }
  return async (): Promise<Readiness> => {
    const isWriting = queue.isAlive() && (await wasWritten())
    if (!queue.isAlive()) return { ready: false, notes: ['The writer has stopped.'] }
    if (!isWriting) return { ready: false, notes: ['The store cannot be written now.'] }
    return {
      ready: true,
      notes: [
        current.note() ?? [],
        (await policyDiffers()) ? 'The configured policy is not the one in force.' : [],
        (await following.outages()).map(
          ({ platform, since }) =>
            `${outageWords(platform).down} since ${new Date(since).toISOString()}; retrying.`,
        ),
      ].flat(),
    }
  }
}

async function examine(parts: Parts, thorough: boolean) {
  const { current, startedAt, metrics, recomputing, following, clock } = parts
  const since = `running since ${new Date(startedAt).toISOString()}`
  const note = current.note()
  return examineApart({
    config: current.now(),
    thorough,
    now: clock(),
    daemon: {
      finding: note === null ? ok('daemon', since) : warn('daemon', `${since}; ${note}`, null),
      facts: await readRefusals(metrics.registry),
      isServed: true,
      isRebuilding: (await nullIfAway(recomputing.last('rebuild')))?.outcome.state === 'running',
    },
    sync: await nullIfAway(following.control.status().then(syncStateJson)),
  })
}

/** What a daemon says of itself must not depend on a store that can't be read. */
function nullIfAway<Answer>(answer: Promise<Answer>): Promise<Answer | null> {
  return answer.catch((error: unknown) => {
    if (isLatchkeyError(error, 'store_unavailable')) return null
    throw error
  })
}

/** The answer of `GET /status`. @param listeners null before it listens */
async function statusOf(
  { control, startedAt, current, store, db, queue, following, recomputing, clock }: Parts,
  readiness: Readiness,
  listeners: Listeners | null,
  socket: string | null,
): ReturnType<ControlDeps['control']['status']> {
  const config = current.now()
  const readStored = async () => ({
    bytes: await store.bytes(),
    gaps: await readGaps(db, clock()),
    sync: syncSummary(await following.control.status()),
  })
  const stored = await nullIfAway(readStored())
  const job = await nullIfAway(recomputing.current())
  return {
    version: control.version,
    pid: process.pid,
    startedAt,
    config: config.path,
    ...readiness,
    listeners: {
      api: listeners?.url ?? '',
      webhooks: listeners?.webhooksUrl ?? '',
      metrics: listeners?.metricsUrl ?? '',
      socket,
    },
    database: { file: store.file, bytes: stored?.bytes ?? null },
    queue: queue.waiting(),
    endpoints: config.endpoints.map(({ name, environment }) => ({
      name,
      environment,
      lastEventAt: stored?.gaps.get(name)?.lastAt ?? null,
    })),
    sync: stored?.sync ?? null,
    job: job && { name: job.kind, done: job.progress.reached, total: job.progress.total },
  }
}

/** The state of sync in a few numbers; null if nothing is configured. */
function syncSummary({ paused, leads, targets, unconfirmed, webhooks, unreachable }: SyncState) {
  if (targets.length === 0 && webhooks.length === 0) return null
  const total = (state: ShownState) => targets.reduce((sum, { memberships }) => sum + memberships[state], 0)
  return {
    paused,
    leads,
    due: total('due') + total('retrying'),
    parked: total('parked'),
    unconfirmed,
    messages: webhooks.reduce((sum, { waiting }) => sum + waiting, 0),
    unreachable: unreachable.map(({ platform }) => platform),
  }
}
