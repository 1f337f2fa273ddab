/* The policy, and what works out all access again: rebuilds, verifications, comparisons with another policy. */

import { z } from 'zod'
import type { Policy } from '../entitlements/policy.js'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { PAYMENT_EVENT_TYPES, SUBSCRIPTION_EVENT_TYPES } from '../provider/event-types.js'
import type { ComparisonName, Job, RecomputeJobs } from '../recompute/jobs.js'
import { counts, environment, snapshot, type Told } from './answers.js'
import { type Route, route } from './route.js'

export interface RebuildDeps {
  readonly rebuilds: {
    readonly rebuilds: Pick<RecomputeJobs, 'startRebuild' | 'startComparison' | 'last'>
    /** Asked each time, since a reload may change it. */
    readonly configuredPolicy: () => { readonly policy: Policy; readonly fingerprint: string }
    readonly policyInForce: () => Promise<Policy>
    /** Reads a policy that is written as in the config. @throws LatchkeyError `invalid_request` */
    readonly policyIn: (given: unknown) => Policy
    /** How far a rebuild is that has begun and not ended; null: there is none. */
    readonly unfinishedAt: () => Promise<number | null>
  }
}

const typesByRail = <Type extends string>(types: readonly Type[]) => {
  const row = z.array(z.enum(types))
  return z.object({ card: row, crypto: row, unknown: row })
}

const policy = z.object({
  grantOn: typesByRail(PAYMENT_EVENT_TYPES),
  revokeOn: typesByRail([...PAYMENT_EVENT_TYPES, ...SUBSCRIPTION_EVENT_TYPES]),
  failedRenewal: z.enum(['keep', 'revoke']),
  canceled: z.enum(['effective', 'period_end']),
  completed: z.enum(['period_end', 'keep']),
  paidCycle: z.enum(['grants', 'informs']),
  /** Milliseconds. */
  lapseAfter: z.number().nullable(),
}) satisfies z.ZodType<Policy>

const policyAnswer = z.object({ inForce: policy, configured: policy, unfinishedRebuild: z.boolean() })
export type PolicyJson = Told<z.input<typeof policyAnswer>>

/** How many entitlements differ, and some of them. */
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

const none = z.object({ state: z.literal('none') })
const running = z.object({ state: z.literal('running'), folded: z.int(), total: z.int() })
const failed = z.object({ state: z.literal('failed'), reason: z.string() })
const done = z.object({ state: z.literal('done'), ...summary.shape })

const rebuildAnswer = z.discriminatedUnion('state', [
  none,
  z.object({ state: z.literal('interrupted'), folded: z.int() }),
  running,
  done,
  failed,
])
export type RebuildJson = z.input<typeof rebuildAnswer>

/** Only a verification looks for `differences`: something that is not stored as the events say. */
const comparisonAnswer = z.discriminatedUnion('state', [
  none,
  running,
  done.extend({
    differences: z.object({
      count: z.int(),
      named: z.array(
        z.object({
          environment,
          kind: z.enum(['source', 'link', 'place', 'disposition', 'entitlement']),
          id: z.string(),
        }),
      ),
    }),
  }),
  failed,
])
export type ComparisonJson = z.input<typeof comparisonAnswer>

/**
 * @param job the last one of this process; null: none
 * @param interruptedAt how far one was before that, which goes on once it is run again; null: there is none
 * @param shown the environments whose changes are shown
 */
function rebuildOf(job: Job | null, interruptedAt: number | null = null, shown: readonly Environment[] = []) {
  if (job === null && interruptedAt !== null) return { state: 'interrupted' as const, folded: interruptedAt }
  if (job?.outcome.state !== 'done') return unfinished(job)
  const [only, ...others] = shown
  const { access } = job.outcome.report
  return { state: 'done' as const, ...access[only === undefined || others.length > 0 ? 'all' : only] }
}

function comparisonOf(job: Job | null) {
  if (job?.outcome.state !== 'done') return unfinished(job)
  const { access, differences } = job.outcome.report
  return { state: 'done' as const, ...access.all, differences }
}

function unfinished(job: Job | null) {
  if (job === null) return { state: 'none' as const }
  const { outcome, progress } = job
  if ('reason' in outcome) return { state: 'failed' as const, reason: outcome.reason }
  return { state: 'running' as const, folded: progress.reached, total: progress.total }
}

/** Of the differences that a comparison finds; all are counted. */
const MAX_NAMED = 100_000
const NAMED = 1_000

const ADMIN = { scope: 'admin', environments: 'both' } as const
const STARTED = { status: 202, errors: ['rebuild_running', 'replay_running'] } as const

/** Starts a comparison, in one environment alone if it is named, and says how the last one goes. */
function comparison(
  path: '/policy/diff' | '/rebuild/verification',
  name: ComparisonName,
  about: string,
): readonly Route<RebuildDeps>[] {
  return [
    route(`GET ${path}`, {
      summary: `How the last ${name} goes.`,
      ...ADMIN,
      answer: comparisonAnswer,
      handle: (_, { rebuilds }: RebuildDeps) => comparisonOf(rebuilds.rebuilds.last(name)),
    }),
    route(`POST ${path}`, {
      summary: about,
      ...ADMIN,
      environments: 'shown of both',
      body: z.strictObject({
        /** As in the config; left out: the configured one. */
        policy: z.unknown().optional(),
        named: z.int().min(1).max(MAX_NAMED).default(NAMED),
      }),
      answer: comparisonAnswer,
      ...STARTED,
      acceptedAt: () => path,
      handle({ body: { policy: given, named }, environments }, { rebuilds: deps }: RebuildDeps) {
        const other = given === undefined ? deps.configuredPolicy().policy : deps.policyIn(given)
        const compared = name === 'policy diff' ? other : null
        return comparisonOf(deps.rebuilds.startComparison(name, environments, compared, named))
      },
    }),
  ]
}

export const rebuildRoutes: readonly Route<RebuildDeps>[] = [
  route('GET /policy', {
    summary: 'The policy in force, and the one that is configured.',
    ...ADMIN,
    answer: policyAnswer,
    handle: async (_, { rebuilds }: RebuildDeps) => ({
      inForce: await rebuilds.policyInForce(),
      configured: rebuilds.configuredPolicy().policy,
      unfinishedRebuild: (await rebuilds.unfinishedAt()) !== null,
    }),
  }),
  ...comparison('/policy/diff', 'policy diff', 'Finds out whose access would change under a policy.'),
  route('POST /policy/apply', {
    summary: 'Puts the configured policy in force, and moves all sources to it.',
    ...ADMIN,
    // Names the policy that the caller means, who may have read the config file later than the daemon.
    query: z.object({ expect: z.string().optional() }),
    answer: rebuildAnswer,
    ...STARTED,
    errors: ['policy_differs', ...STARTED.errors],
    acceptedAt: () => '/rebuild',
    handle({ query: { expect } }, { rebuilds: { configuredPolicy, rebuilds } }: RebuildDeps) {
      const configured = configuredPolicy()
      if (expect !== undefined && expect !== configured.fingerprint) {
        throw new LatchkeyError(
          'policy_differs',
          'The daemon has read another policy than this one: give `latchkey reload` first.',
        )
      }
      return rebuildOf(rebuilds.startRebuild(configured.policy))
    },
  }),
  route('GET /rebuild', {
    summary: 'How the last rebuild goes, with what it changed, or what of that in one environment.',
    ...ADMIN,
    environments: 'shown of both',
    answer: rebuildAnswer,
    handle: async ({ environments }, { rebuilds }: RebuildDeps) =>
      rebuildOf(rebuilds.rebuilds.last('rebuild'), await rebuilds.unfinishedAt(), environments),
  }),
  route('POST /rebuild', {
    summary: 'Works out all access again, in both environments, under the policy in force.',
    ...ADMIN,
    answer: rebuildAnswer,
    ...STARTED,
    acceptedAt: () => '/rebuild',
    handle: async (_, { rebuilds: { rebuilds, policyInForce } }: RebuildDeps) =>
      rebuildOf(rebuilds.startRebuild(await policyInForce())),
  }),
  ...comparison('/rebuild/verification', 'verification', 'Finds what is not stored as its events say.'),
]
