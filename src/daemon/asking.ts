/*
 * Answers a command where no daemon runs: by the routes that only ask, over a store that is only read. It takes no lock,
 * migrates nothing, opens no address, calls no platform, and keeps nothing of what it worked out.
 */

import type { Logger } from 'pino'
import type { Config } from '../config/schema.js'
import { failureText, LatchkeyError } from '../errors.js'
import { localKey } from '../handlers/api-key.js'
import { createKeptAnswers } from '../handlers/kept-answers.js'
import { createQuestionApi, type QuestionDeps } from '../handlers/routes.js'
import { createServer } from '../handlers/server.js'
import { openToRead } from '../operations/assert-database.js'
import { compareStored } from '../recompute/compare.js'
import { brokenOff, finished, isReplay, type Job, newJob, progressed, type Replay } from '../recompute/job.js'
import { REPLAY_SAMPLE } from '../recompute/jobs.js'
import type { ComparePlan } from '../recompute/run.js'
import { readAccess } from '../store/access.js'
import { isStoreBroken, placeIn } from '../store/engine.js'
import { assertCurrent } from '../store/migrate.js'
import type { Db } from '../store/schema.js'
import { loadKeyUse, loadPolicy } from '../store/settings.js'
import { damaged, watchRest } from '../store/sqlite/connection.js'
import { previewCalls } from '../sync/preview-calls.js'
import { type CurrentConfig, createCurrentConfig } from './current-config.js'
import { storedSync } from './stored-sync.js'

/**
 * @throws {LatchkeyError} `schema_too_old`, `schema_too_new`, `store_unavailable`; `store_missing`, also if no daemon
 * has used it yet
 */
export async function openAskingApi(
  config: Config,
  { clock, log }: { readonly clock: () => number; readonly log: Logger },
) {
  const { file, postgres } = config.database
  const place = postgres === undefined ? file : placeIn(postgres.url)
  const unreadable = (cause: unknown): LatchkeyError => {
    if (isStoreBroken(cause)) return damaged(file, cause)
    const todo = postgres === undefined ? 'See `latchkey doctor`' : 'Check database.url, and the server'
    const message = `${place} can't be read: ${failureText(cause)}. ${todo}.`
    return new LatchkeyError('store_unavailable', message, { cause })
  }
  const db = await openToRead(config.database, unreadable)
  const isUndisturbed = postgres === undefined ? watchRest(file) : () => true
  try {
    await assertCurrent(db, place)
    if ((await loadPolicy(db)) === null)
      throw new LatchkeyError(
        'store_missing',
        `No daemon has used ${place} yet: start one with \`latchkey serve\`.`,
      )
  } catch (error) {
    await db.destroy()
    throw error
  }
  const current = createCurrentConfig(config)
  const key = localKey()
  const handle = createQuestionApi({
    ...current.forRoutes,
    jobs: createComparisons(db, current, clock),
    db,
    readAccess: (query) => readAccess(db, clock, query),
    keptAnswers: createKeptAnswers(0),
    sync: storedSync(db, config, clock),
    keys: () =>
      Promise.all(
        config.apiKeys.map(async (one) => ({ ...one, lastUsedAt: await loadKeyUse(db, one.sha256) })),
      ),
    clock,
    authenticate: () => key,
    metrics: { observeDuration() {} },
    log,
  })
  const server = createServer({ handle })
  return {
    /** An in-process connection to the routes that only ask, with all rights. */
    connect: server.connect,
    /**
     * To be called behind each answer.
     * @throws {LatchkeyError} `store_in_use` if a daemon began to write meanwhile, so that the answer may be wrong
     */
    assertUndisturbed(): void {
      if (isUndisturbed()) return
      const message = `A daemon started using ${place} in the meantime: run the command again.`
      throw new LatchkeyError('store_in_use', message)
    },
    async close(): Promise<void> {
      await server.stop()
      await db.destroy()
    },
  }
}

/** One comparison at a time, for a command that waits for its end: nobody else has to know of it. */
function createComparisons(db: Db, current: CurrentConfig, clock: () => number): QuestionDeps['jobs'] {
  let job: Job | null = null

  function start(kind: Job['kind'], plan: ComparePlan): Job {
    const startedAt = clock()
    const begun = newJob({ id: kind, kind, plan, number: 1, startedAt })
    const onProgress = (reached: number, total: number): void => {
      job = progressed(job ?? begun, { at: startedAt, reached: 0 }, [reached, total, clock()])
    }
    job = begun
    void compareStored(db, plan, { clock, onProgress })
      .then(async ({ customers, ...report }) => {
        const calls = kind === 'replay' ? await previewCalls(db, current.now().products, customers) : null
        job = finished(job ?? begun, { ...report, calls }, clock())
      })
      .catch((error: unknown) => {
        job = brokenOff(job ?? begun, error, clock())
      })
    return begun
  }
  const replayOf = async () => (isReplay(job) ? job : null)

  return {
    startComparison: async (name, scope, policy, sampleSize) => {
      const mode = name === 'verification' ? 'verify' : 'compare'
      return start(name, { scope, endpoints: null, policy, mode, sampleSize })
    },
    last: async (kind) => (job?.kind === kind ? job : null),
    async startReplay({ filter: scope, dryRun }) {
      if (!dryRun)
        throw new LatchkeyError(
          'daemon_unreachable',
          'Only a running daemon can replay events: start one with `latchkey serve`.',
        )
      const endpoints = current.endpointRules()
      const sampleSize = REPLAY_SAMPLE
      return start('replay', { scope, endpoints, policy: null, mode: 'compare', sampleSize }) as Replay
    },
    findReplay: replayOf,
    stopReplay: replayOf,
    replays: async () => [],
  }
}
