import type { Logger } from 'pino'
import { z } from 'zod'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import type { RunOptions } from '../sync/sync.js'
import { requireBoth } from './environment.js'
import { idText } from './manual-act.js'
import type { RawHandler } from './raw-handler.js'
import { invalidBody, readJson } from './read-json.js'
import { requireJson } from './require-json.js'
import { requireMethod } from './route.js'
import { sendJson } from './send.js'
import {
  authorizeSync,
  NOT_STORED,
  requireTargets,
  type SyncDeps,
  type SyncRunReport,
  targetProblem,
} from './sync-questions.js'

/** A run takes as long as the platforms' limits make it; whoever asks is answered before a proxy gives up. */
const ANSWER_WITHIN_MS = 20_000

const runBody = z.strictObject({
  confirm: z.string().min(1, 'is empty').max(255).exactOptional(),
  retry: z
    .strictObject({
      state: z.enum(['waiting', 'parked', 'retrying']).exactOptional(),
      code: idText.exactOptional(),
      environment: z.enum(['live', 'sandbox']).exactOptional(),
      target: idText.exactOptional(),
      customerId: idText.exactOptional(),
    })
    .exactOptional(),
  sweep: z.boolean().exactOptional(),
})

/**
 * POST /sync/run: works off all that is due now. 200 with what came of it; 202 where that takes longer: it goes on.
 * With `retry`, what waits or is parked is due first; with `confirm`, so are the removals of the plan of that hash.
 */
export function postSyncRun(deps: SyncDeps, log: Logger): RawHandler {
  const { sync } = deps
  return async (req, res) => {
    requireMethod(req, res, 'POST')
    const environments = authorizeSync(req, deps)
    requireJson(req)
    const options: RunOptions = { ...(await readJson(req, runBody)), environments }
    // It may take away roles in any environment.
    if (options.sweep === true) requireBoth(deps.authenticate(req, 'admin'), 'A sweep')
    requireOwn(options.retry?.environment, environments)
    if (options.retry?.target !== WEBHOOK_TARGET) {
      await requireTargets(sync)
      await requireRetried(options, environments, sync)
    }
    const running = sync.run(options)
    const report = await within(ANSWER_WITHIN_MS, running)
    if (report === null) {
      running.catch((error: unknown) => log.error({ err: error }, 'a run of sync failed'))
      sendJson(res, 202, { done: false }, { ...NOT_STORED, Location: '/sync' })
    } else {
      sendJson(res, report.left === 0 ? 200 : 202, runJson(report), NOT_STORED)
    }
  }
}

/** @throws LatchkeyError `forbidden` */
function requireOwn(environment: Environment | undefined, own: readonly Environment[]): void {
  if (environment === undefined || own.includes(environment)) return
  throw new LatchkeyError('forbidden', `This request is not for the environment "${environment}".`)
}

/** @throws LatchkeyError `invalid_request` for a retry of what is no role or group */
async function requireRetried(
  { retry }: RunOptions,
  own: readonly Environment[],
  sync: SyncDeps['sync'],
): Promise<void> {
  if (retry?.target === undefined) return
  const environments = retry.environment === undefined ? own : [retry.environment]
  const problem = await targetProblem(retry.target, environments, sync)
  if (problem !== null) throw invalidBody([{ path: 'retry.target', message: problem }])
}

/** Stands among the targets of a retry for the outbound webhook. */
export const WEBHOOK_TARGET = 'webhook'

function runJson({ left, ...report }: SyncRunReport) {
  const { paused, given, taken, unchanged, failed, waiting, parked, unconfirmed, stopped, messages } = report
  return {
    done: left === 0,
    paused,
    given,
    taken,
    unchanged,
    failed,
    waiting,
    parked,
    unconfirmed,
    stopped,
    left,
    messages,
  }
}

export type SyncRunJson =
  | ReturnType<typeof runJson>
  | { readonly done: false; readonly left?: never; readonly stopped?: never }

/** Null where it takes longer. */
async function within<T>(ms: number, work: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
