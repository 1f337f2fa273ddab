import type { Config } from '../config/schema.js'
import { isLatchkeyError } from '../errors.js'
import type { ControlDeps } from '../handlers/control.js'
import type { Readiness } from '../handlers/health.js'
import type { Listeners } from '../handlers/listeners.js'
import type { createIngestQueue } from '../ingest/queue.js'
import { readGaps } from '../operations/delivery-gaps.js'
import type { RecomputeJobs } from '../recompute/jobs.js'
import type { Db } from '../store/schema.js'
import { syncSummary } from './notes.js'
import type { SyncService } from './sync.js'

/** What a daemon says of itself must not depend on a store that can't be read. */
export function nullIfAway<Answer>(answer: Promise<Answer>): Promise<Answer | null> {
  return answer.catch((error: unknown) => {
    if (isLatchkeyError(error, 'store_unavailable')) return null
    throw error
  })
}

export interface StatusDeps {
  readonly version: string
  /** Epoch milliseconds, like `now`. */
  readonly startedAt: number
  readonly now: number
  readonly config: Config
  readonly readiness: () => Promise<Readiness>
  /** Null before it listens. */
  readonly listeners: Listeners | null
  readonly socketFile: string | null
  readonly store: { readonly file: string; readonly reader: Db; readonly bytes: () => Promise<number> }
  readonly queue: Pick<ReturnType<typeof createIngestQueue>, 'waiting'>
  readonly sync: Pick<SyncService['control'], 'status'>
  readonly recomputing: Pick<RecomputeJobs, 'current'>
}

/** The answer of `GET /status`. */
export async function statusOf(deps: StatusDeps): ReturnType<ControlDeps['control']['status']> {
  const { version, startedAt, now, config, readiness, listeners, socketFile } = deps
  const { store, queue, sync, recomputing } = deps
  const readStored = async () => ({
    bytes: await store.bytes(),
    gaps: await readGaps(store.reader, now),
    sync: syncSummary(await sync.status()),
  })
  const stored = await nullIfAway(readStored())
  const job = await nullIfAway(recomputing.current())
  return {
    version,
    pid: process.pid,
    startedAt,
    config: config.path,
    ...(await readiness()),
    listeners: {
      api: listeners?.url ?? '',
      webhooks: listeners?.webhooksUrl ?? '',
      metrics: listeners?.metricsUrl ?? '',
      socket: socketFile,
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
