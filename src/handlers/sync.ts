import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import { z } from 'zod'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { isUsableId } from '../provider/ids.js'
import type { CheckFinding } from '../sync/platform.js'
import type { MembershipKey, MembershipQuery, MembershipState, RunOptions, Sync } from '../sync/sync.js'
import type { Authenticate } from './authenticate.js'
import { idText, invalidBody, readJson, requireJson } from './body.js'
import type { MountedPath } from './mount.js'
import {
  ENVIRONMENT_ONLY,
  invalidParameter,
  readLimit,
  readParameter,
  readQuery,
  requireBoth,
  shownEnvironments,
} from './query.js'
import { createRoute, requireMethod } from './raw-route.js'
import type { RawHandler } from './route.js'
import { sendJson } from './send.js'
import {
  checkJson,
  membershipJson,
  type SyncRunJson,
  type SyncRunReport,
  type SyncState,
  syncStateJson,
} from './sync-json.js'

/** What the routes about roles, groups and the outbound webhook ask, and have done. */
export interface SyncQuestions extends Pick<Sync, 'memberships' | 'plan' | 'check' | 'pause' | 'resume'> {
  /** Whether any role or group is configured, or was: what was given in it is still to be removed. */
  readonly hasTargets: () => Promise<boolean>
  /** @param environments whose targets and messages it shows; left out: of both */
  readonly status: (environments?: readonly Environment[]) => Promise<SyncState>
  /** @throws LatchkeyError `plan_changed` */
  readonly run: (options: RunOptions) => Promise<SyncRunReport>
}

export interface SyncDeps {
  readonly authenticate: Authenticate
  /** The environments of the configured endpoints; asked each time, since a reload may change them. */
  readonly environments: () => readonly Environment[]
  readonly sync: SyncQuestions
}

const NOT_STORED = { 'Cache-Control': 'no-store' }

/** A run takes as long as the platforms' limits make it; the request is answered before a proxy gives up. */
const ANSWER_WITHIN_MS = 20_000

/** Names the outbound webhook among the targets of a retry. */
const WEBHOOK_TARGET = 'webhook'

/** The routes about what follows access: roles, groups, and the outbound webhook. */
export function syncRoutes(deps: SyncDeps, log: Logger): readonly MountedPath[] {
  return [
    createRoute('/sync', getSync(deps), log),
    createRoute('/sync/memberships', getMemberships(deps), log),
    createRoute('/sync/plan', getSyncPlan(deps), log),
    createRoute('/sync/run', postSyncRun(deps, log), log),
    createRoute('/sync/check', getSyncCheck(deps), log),
    createRoute('/sync/pause', postPaused(deps, true), log),
    createRoute('/sync/resume', postPaused(deps, false), log),
  ]
}

/** GET /sync: the state of roles, groups and the outbound webhook. */
function getSync(deps: SyncDeps): RawHandler {
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const environments = authorize(req, deps)
    const state = await deps.sync.status(environments)
    const { checked } = state.sync
    const problems = await findingsIn(environments, checked?.problems ?? [], deps.sync)
    const sync = { ...state.sync, checked: checked && { ...checked, problems } }
    sendJson(res, 200, syncStateJson({ ...state, sync }), NOT_STORED)
  }
}

/** GET /sync/plan: the calls that would be made now; makes none. */
function getSyncPlan(deps: SyncDeps): RawHandler {
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const environments = authorize(req, deps)
    await requireTargets(deps.sync)
    sendJson(res, 200, await deps.sync.plan(environments), NOT_STORED)
  }
}

/** GET /sync/check: asks the platforms whether all that is needed is there. */
function getSyncCheck(deps: SyncDeps): RawHandler {
  const { sync } = deps
  return async (req, res) => {
    requireMethod(req, res, 'GET')
    const environments = authorize(req, deps)
    await requireTargets(sync)
    const findings = await findingsIn(environments, await sync.check(), sync)
    sendJson(res, 200, checkJson(findings), NOT_STORED)
  }
}

/**
 * POST /sync/pause: no call is begun from now on, in no environment. POST /sync/resume: they go on. The body is empty.
 */
function postPaused({ authenticate, sync }: SyncDeps, paused: boolean): RawHandler {
  return async (req, res) => {
    requireMethod(req, res, 'POST')
    requireBoth(authenticate(req, 'admin'))
    readQuery(req, [])
    await readJson(req, z.strictObject({}))
    const state = await sync.status()
    const isOff = !(await sync.hasTargets()) && state.outbound === null
    // A restore pauses, whatever is configured.
    if (isOff && (paused || !state.sync.paused)) {
      throw new LatchkeyError(
        'sync_off',
        'Neither a role or group nor an outbound webhook is in the config: there is nothing to pause.',
      )
    }
    await (paused ? sync.pause() : sync.resume())
    sendJson(res, 200, { paused }, NOT_STORED)
  }
}

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
function postSyncRun(deps: SyncDeps, log: Logger): RawHandler {
  const { sync } = deps
  return async (req, res) => {
    requireMethod(req, res, 'POST')
    const environments = authorize(req, deps)
    requireJson(req)
    const options: RunOptions = { ...(await readJson(req, runBody)), environments }
    // It may take away roles in any environment.
    if (options.sweep === true) requireBoth(deps.authenticate(req, 'admin'), 'A sweep')
    const { environment, target } = options.retry ?? {}
    if (environment !== undefined && !environments.includes(environment)) {
      throw new LatchkeyError('forbidden', `This request is not for the environment "${environment}".`)
    }
    if (target !== WEBHOOK_TARGET) {
      await requireTargets(sync)
      const retried = environment === undefined ? environments : [environment]
      const problem = target === undefined ? null : await targetProblem(target, retried, sync)
      if (problem !== null) throw invalidBody([{ path: 'retry.target', message: problem }])
    }
    const running = sync.run(options)
    const report = await within(ANSWER_WITHIN_MS, running)
    if (report === null) {
      running.catch((error: unknown) => log.error({ err: error }, 'a run of sync failed'))
      sendJson(res, 202, { done: false } satisfies SyncRunJson, { ...NOT_STORED, Location: '/sync' })
    } else {
      const done = report.left === 0
      sendJson(res, done ? 200 : 202, { done, ...report } satisfies SyncRunJson, NOT_STORED)
    }
  }
}

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

const MEMBERSHIP_PARAMETERS = ['environment', 'state', 'target', 'customerId', 'limit', 'cursor'] as const

const STATES = {
  settled: true,
  due: true,
  retrying: true,
  waiting: true,
  parked: true,
  unconfirmed: true,
} as const satisfies Record<MembershipState, true>

/** GET /sync/memberships: who should be, and is, a member of which role or group. */
function getMemberships({ authenticate, environments, sync }: SyncDeps): RawHandler {
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const key = authenticate(req, 'admin')
    const query = readQuery(req, MEMBERSHIP_PARAMETERS)
    const shown = shownEnvironments(query, environments(), key)
    await requireTargets(sync)
    const filter = readFilter(query)
    const { items, next } = await sync.memberships({ environments: shown, ...filter })
    if (items.length === 0 && filter.target !== undefined) {
      const problem = await targetProblem(filter.target, shown, sync)
      if (problem !== null) throw invalidParameter('target', problem)
    }
    const pagination = { nextCursor: next && cursorAt(next), hasMore: next !== null }
    sendJson(res, 200, { items: items.map(membershipJson), pagination }, NOT_STORED)
  }
}

/** @throws LatchkeyError `invalid_request` */
function readFilter(query: URLSearchParams): Omit<MembershipQuery, 'environments'> {
  const [target, customerId] = [readWord(query, 'target'), readWord(query, 'customerId')]
  const state = readParameter(query, 'state')
  if (state !== null && !isState(state)) {
    throw invalidParameter('state', `is none of ${Object.keys(STATES).join(', ')}`)
  }
  const after = readCursor(query)
  return {
    limit: readLimit(query),
    ...(target !== null && { target }),
    ...(customerId !== null && { customerId }),
    ...(state !== null && { state }),
    ...(after !== null && { after }),
  }
}

function isState(text: string): text is MembershipState {
  return Object.hasOwn(STATES, text)
}

function readWord(query: URLSearchParams, name: string): string | null {
  const text = readParameter(query, name)
  if (text === null || isUsableId(text)) return text
  throw invalidParameter(name, 'is not a text of 1 to 255 characters without control characters')
}

function cursorAt({ environment, target, accountId }: MembershipKey): string {
  return Buffer.from(JSON.stringify([environment, target, accountId])).toString('base64url')
}

const cursorSchema = z.tuple([z.enum(['live', 'sandbox']), z.string(), z.string()])

function readCursor(query: URLSearchParams): MembershipKey | null {
  const cursor = readParameter(query, 'cursor')
  if (cursor === null) return null
  try {
    const text = Buffer.from(cursor, 'base64url').toString('utf8')
    const [environment, target, accountId] = cursorSchema.parse(JSON.parse(text))
    return { environment, target, accountId }
  } catch {
    throw invalidParameter('cursor', 'is none that was given out')
  }
}

/** What is wrong with a name that no role or group has, or had, in these environments; null: nothing. */
async function targetProblem(
  target: string,
  environments: readonly Environment[],
  { status }: SyncQuestions,
): Promise<string | null> {
  const { targets } = (await status(environments)).sync
  const names = targets.map((one) => one.target)
  if (names.includes(target)) return null
  return names.length === 0 ? 'is none: there is none here' : `is none of ${names.join(', ')}`
}

/** @throws LatchkeyError `sync_off` */
export async function requireTargets({ hasTargets }: Pick<SyncQuestions, 'hasTargets'>): Promise<void> {
  if (await hasTargets()) return
  throw new LatchkeyError('sync_off', 'No product has a role or group that follows it, in the config.')
}

/**
 * The environments that a request is about: the one that it names, or all that its key is for.
 * @throws LatchkeyError `unauthorized`, `forbidden`, `invalid_request`
 */
function authorize(req: IncomingMessage, { authenticate, environments }: SyncDeps): readonly Environment[] {
  const key = authenticate(req, 'admin')
  return shownEnvironments(readQuery(req, ENVIRONMENT_ONLY), environments(), key)
}

/** Leaves out what was found about targets of other environments; what was found about a platform concerns all. */
async function findingsIn(
  environments: readonly Environment[],
  findings: readonly CheckFinding[],
  { status }: SyncQuestions,
): Promise<readonly CheckFinding[]> {
  const namesOf = ({ sync }: SyncState) => sync.targets.map(({ target }) => target)
  const [own, all] = [namesOf(await status(environments)), namesOf(await status())]
  return findings.filter(({ about }) => own.includes(about) || !all.includes(about))
}
