/* The policy, and jobs that compute all access again: rebuilds, verifications, comparisons with another policy. */

import { z } from 'zod'
import type { Policy } from '../entitlements/policy.js'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { PAYMENT_EVENT_TYPES, SUBSCRIPTION_EVENT_TYPES } from '../provider/event-types.js'
import type { ComparisonName, Job } from '../recompute/job.js'
import type { RecomputeJobs } from '../recompute/jobs.js'
import { readJob } from '../store/recompute.js'
import type { Db } from '../store/schema.js'
import { policyFingerprint, policyInForce } from '../store/settings.js'
import { counts, type DeepReadonly, environment, snapshot } from './answers.js'
import { ADMIN_OF_BOTH, type MountDeps, type Route, route } from './route.js'

export interface ComparisonDeps extends MountDeps {
  /** Called each time, since a reload may change it. */
  readonly configuredPolicy: () => Policy
  /** Parses a policy written as in the config. @throws LatchkeyError `invalid_request` */
  readonly policyIn: (given: unknown) => Policy
  readonly jobs: Pick<RecomputeJobs, 'startComparison' | 'last'>
}

export interface RebuildDeps extends Pick<ComparisonDeps, 'db' | 'configuredPolicy'> {
  readonly jobs: Pick<RecomputeJobs, 'startRebuild' | 'last'>
}

const typesByRail = <Type extends string>(types: readonly Type[]) => {
  const row = z.array(z.enum(types))
  return z.object({ card: row, crypto: row, unknown: row })
}

export const policy = z.object({
  grantOn: typesByRail(PAYMENT_EVENT_TYPES),
  revokeOn: typesByRail([...PAYMENT_EVENT_TYPES, ...SUBSCRIPTION_EVENT_TYPES]),
  failedRenewal: z.enum(['keep', 'revoke']),
  canceled: z.enum(['effective', 'period_end']),
  completed: z.enum(['period_end', 'keep']),
  paidCycle: z.enum(['grants', 'informs']),
  /** Milliseconds. */
  lapseAfter: z.number().nullable(),
}) satisfies z.ZodType<Policy>

const policyAnswer = z.object({
  inForce: policy,
  configured: policy,
  /** Of the configured one: what `expect` of an apply takes. */
  fingerprint: z.string(),
  unfinishedRebuild: z.boolean(),
})
export type PolicyJson = DeepReadonly<z.input<typeof policyAnswer>>

/** How many entitlements differ, with examples. */
export const summary = z.object({
  ...counts('gains', 'losses', 'otherwise'),
  sample: z.array(
    z.object({
      environment,
      customerId: z.string(),
      productId: z.string(),
      before: snapshot,
      after: snapshot,
    }),
  ),
})
export type SummaryJson = z.input<typeof summary>

export const jobAnswer = z.discriminatedUnion('state', [
  z.object({ state: z.literal('none') }),
  z.object({ state: z.literal('interrupted'), folded: z.int() }),
  z.object({ state: z.literal('running'), folded: z.int(), total: z.int() }),
  z.object({ state: z.literal('failed'), reason: z.string() }),
  z.object({
    state: z.literal('done'),
    ...summary.shape,
    /** Of comparisons. Only a verification looks for them: stored access that is not what the events say. */
    differences: z
      .object({
        count: z.int(),
        named: z.array(
          z.object({
            environment,
            kind: z.enum(['source', 'link', 'place', 'disposition', 'entitlement']),
            id: z.string(),
          }),
        ),
      })
      .exactOptional(),
  }),
])
export type JobJson = z.input<typeof jobAnswer>

/**
 * @param job null if there is none
 * @param shown the environments whose changes are shown; all if there are none
 */
function jobOf(job: Job | null, shown: readonly Environment[] = []) {
  if (job === null) return { state: 'none' as const }
  const { kind, outcome, progress } = job
  if ('reason' in outcome) return { state: 'failed' as const, reason: outcome.reason }
  if (outcome.state === 'running')
    return { state: 'running' as const, folded: progress.reached, total: progress.total }
  const { access, differences } = outcome.report
  const [only, ...others] = shown
  const summed = access[only === undefined || others.length > 0 ? 'all' : only]
  return { state: 'done' as const, ...summed, ...(kind !== 'rebuild' && { differences }) }
}

/** Progress of an unfinished rebuild; null if there is none. */
async function unfinishedAt(db: Db): Promise<number | null> {
  const job = await readJob(db)
  if (job === 'newer') return 0
  return job?.endpoints === null ? job.reached : null
}

/** Maximum number of examples; all differences are counted. */
const MAX_NAMED = 100_000
const NAMED = 1_000

const STARTED = { status: 202, errors: ['rebuild_running', 'replay_running'] } as const

/** Routes that start a comparison, in one environment if named, and show the progress of the last one. */
function comparison(
  path: '/policy/diff' | '/rebuild/verification',
  name: ComparisonName,
  operation: 'PolicyDiff' | 'Verification',
  about: string,
): readonly Route<ComparisonDeps>[] {
  return [
    route(`GET ${path}`, {
      operationId: `get${operation}`,
      summary: `The progress and result of the last ${name}.`,
      ...ADMIN_OF_BOTH,
      answer: jobAnswer,
      handle: async (_, { jobs }: ComparisonDeps) => jobOf(await jobs.last(name)),
    }),
    route(`POST ${path}`, {
      operationId: `start${operation}`,
      summary: about,
      ...ADMIN_OF_BOTH,
      environments: 'shown of both',
      body: z.strictObject({
        /** As in the config; the configured policy if omitted. */
        policy: z.unknown().optional(),
        named: z.int().min(1).max(MAX_NAMED).default(NAMED),
      }),
      answer: jobAnswer,
      ...STARTED,
      acceptedAt: () => path,
      async handle({ body: { policy: given, named }, environments }, deps: ComparisonDeps) {
        const { jobs, configuredPolicy, policyIn } = deps
        const other = given === undefined ? configuredPolicy() : policyIn(given)
        const compared = name === 'policy diff' ? other : null
        return jobOf(await jobs.startComparison(name, environments, compared, named))
      },
    }),
  ]
}

export const comparisonRoutes: readonly Route<ComparisonDeps>[] = [
  route('GET /policy', {
    operationId: 'getPolicy',
    summary: 'The policy in force, and the configured one.',
    ...ADMIN_OF_BOTH,
    answer: policyAnswer,
    async handle(_, { db, configuredPolicy }: ComparisonDeps) {
      const configured = configuredPolicy()
      return {
        inForce: await policyInForce(db),
        configured,
        fingerprint: policyFingerprint(configured),
        unfinishedRebuild: (await unfinishedAt(db)) !== null,
      }
    },
  }),
  ...comparison(
    '/policy/diff',
    'policy diff',
    'PolicyDiff',
    'Finds out whose access would change under a policy.',
  ),
  ...comparison(
    '/rebuild/verification',
    'verification',
    'Verification',
    'Finds stored access that differs from what its events say.',
  ),
]

export const rebuildRoutes: readonly Route<RebuildDeps>[] = [
  route('POST /policy/apply', {
    operationId: 'applyPolicy',
    summary: 'Puts the configured policy in force, and computes all access under it.',
    ...ADMIN_OF_BOTH,
    // Holds the policy that the caller means: the command may have read the config file after the daemon did.
    query: z.object({ expect: z.string().optional() }),
    answer: jobAnswer,
    ...STARTED,
    errors: ['policy_differs', ...STARTED.errors],
    acceptedAt: () => '/rebuild',
    async handle({ query: { expect } }, { jobs, configuredPolicy }: RebuildDeps) {
      const configured = configuredPolicy()
      if (expect !== undefined && expect !== policyFingerprint(configured)) {
        throw new LatchkeyError(
          'policy_differs',
          'The daemon runs with another policy than this one: run `latchkey reload` first.',
        )
      }
      return jobOf(await jobs.startRebuild(configured))
    },
  }),
  route('GET /rebuild', {
    operationId: 'getRebuild',
    summary: 'The progress and changes of the last rebuild, in one environment if named.',
    ...ADMIN_OF_BOTH,
    environments: 'shown of both',
    answer: jobAnswer,
    async handle({ environments }, { jobs, db }: RebuildDeps) {
      const job = await jobs.last('rebuild')
      // One whose process has ended is resumed when it is run again.
      const folded = job === null || job.outcome.state === 'stopped' ? await unfinishedAt(db) : null
      return folded === null ? jobOf(job, environments) : { state: 'interrupted' as const, folded }
    },
  }),
  route('POST /rebuild', {
    operationId: 'startRebuild',
    summary: 'Computes all access again, in both environments, under the policy in force.',
    ...ADMIN_OF_BOTH,
    answer: jobAnswer,
    ...STARTED,
    acceptedAt: () => '/rebuild',
    handle: async (_, { jobs, db }: RebuildDeps) => jobOf(await jobs.startRebuild(await policyInForce(db))),
  }),
]
