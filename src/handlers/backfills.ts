/* Backfills: the payments service's own records are read, and what no webhook told is stored. */

import { z } from 'zod'
import type { Backfills } from '../backfill/backfills.js'
import type { Backfill } from '../backfill/run.js'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { counts, environment, instant } from './answers.js'
import { idText } from './body.js'
import { firstOf, idPlace, invalidParameter, PAGE, pageOf } from './query.js'
import { summary } from './rebuilds.js'
import { ADMIN, type MountDeps, type Route, route } from './route.js'

export interface BackfillDeps extends MountDeps {
  readonly backfills: Pick<Backfills, 'start' | 'list' | 'find' | 'stop'>
}

const kind = z.enum(['payment', 'subscription'])

const ended = z.object({
  /** Records read, each once. */
  read: z.object(counts('payments', 'subscriptions')),
  /** Records of which the stored events told everything. */
  told: z.int(),
  /** Events stored, by type; in a dry run, those that would be. */
  stored: z.object({ total: z.int(), byType: z.record(z.string(), z.int()) }),
  /** Null: chargebacks are not known, since `legacy` is not configured, or payments were not asked for. */
  chargebacks: z.int().nullable(),
  /** What remains different, and why. */
  differences: z.object({
    total: z.int(),
    byCode: z.record(z.string(), z.int()),
    sample: z.array(
      z.object({ code: z.string(), recordId: z.string(), about: z.string().nullable(), text: z.string() }),
    ),
  }),
  /** Records that give access here, and that the service does not know. */
  unknown: z.object({ total: z.int(), sample: z.array(z.object({ kind, id: z.string() })) }),
  /** Records that could not be used. */
  unusable: z.int(),
  /** Access that changed; in a dry run, that would change. */
  access: summary,
})
export type BackfillSummaryJson = z.input<typeof ended>

export const backfill = z.object({
  id: z.string(),
  state: z.enum(['running', 'done', 'stopped', 'failed']),
  environment,
  dryRun: z.boolean(),
  payments: z.boolean(),
  subscriptions: z.boolean(),
  customerId: z.string().nullable(),
  startedAt: instant,
  endedAt: instant.nullable(),
  progress: z.object({
    phase: z.string(),
    /** Records read so far. */
    read: z.int(),
    perSecond: z.number().nullable(),
  }),
  summary: ended.nullable(),
  reason: z.string().nullable(),
})
export type BackfillJson = z.input<typeof backfill>

function backfillOf(run: Backfill) {
  const { id, plan, startedAt, phase, perSecond, found, outcome } = run
  return {
    ...plan,
    ...{ id, startedAt },
    state: outcome.state,
    endedAt: outcome.state === 'running' ? null : outcome.endedAt,
    progress: { phase, read: found.payments + found.subscriptions, perSecond },
    summary: outcome.state === 'done' ? summaryOf(run, outcome.result) : null,
    reason: 'reason' in outcome ? outcome.reason : null,
  }
}

const totalOf = (byName: Readonly<Record<string, number>>): number =>
  Object.values(byName).reduce((sum, count) => sum + count, 0)

function summaryOf(
  { found }: Backfill,
  { stored, access }: Extract<Backfill['outcome'], { state: 'done' }>['result'],
) {
  const { payments, subscriptions, told, unusable, differences, differing } = found
  return {
    read: { payments, subscriptions },
    told,
    stored: { total: totalOf(stored), byType: stored },
    chargebacks: found.chargebacks,
    differences: {
      total: totalOf(differences),
      byCode: differences,
      sample: differing.map((one) => ({ about: null, ...one })),
    },
    unknown: { total: found.unknown, sample: found.unknownRecords },
    unusable,
    access,
  }
}

export const backfillRoutes: readonly Route<BackfillDeps>[] = [
  route('GET /backfills', {
    operationId: 'listBackfills',
    summary: 'The newest backfills, newest first.',
    ...ADMIN,
    query: z.object(PAGE),
    answer: pageOf(backfill, idPlace),
    async handle({ query: { limit, cursor }, environments }, { backfills }: BackfillDeps) {
      const known = (await backfills.list()).filter(({ plan }) => environments.includes(plan.environment))
      const place = cursor === undefined ? -1 : known.findIndex(({ id }) => id === cursor)
      if (cursor !== undefined && place === -1)
        throw invalidParameter('cursor', 'is not a cursor of this list: use the one from the last page')
      return firstOf(known.slice(place + 1).map(backfillOf), limit, ({ id }) => id)
    },
  }),
  route('POST /backfills', {
    operationId: 'startBackfill',
    summary:
      'Starts a backfill, goes on with the same one that failed, or joins the same one that is running.',
    scope: 'admin',
    environments: 'one',
    body: z
      .strictObject({
        dryRun: z.boolean().default(false),
        payments: z.boolean().default(true),
        subscriptions: z.boolean().default(true),
        customerId: idText.nullable().default(null),
      })
      .refine(({ payments, subscriptions }) => payments || subscriptions, {
        path: ['payments'],
        message: 'is false, as subscriptions is: nothing would be read',
      }),
    bodyType: 'json',
    answer: backfill,
    status: 202,
    errors: ['backfill_running', 'payments_api_not_configured'],
    acceptedAt: ({ id }) => `/backfills/${id}`,
    handle: async ({ body, environment: asked }, { backfills }: BackfillDeps) =>
      backfillOf(await backfills.start({ environment: asked, ...body })),
  }),
  route('GET /backfills/:backfillId', {
    operationId: 'getBackfill',
    summary: 'The progress and result of a backfill.',
    ...ADMIN,
    answer: backfill,
    errors: ['backfill_not_found'],
    handle: async ({ params, environments }, { backfills }: BackfillDeps) =>
      backfillOf(await findIn(params.backfillId, environments, backfills)),
  }),
  route('DELETE /backfills/:backfillId', {
    operationId: 'stopBackfill',
    summary: 'Stops a backfill; what it stored stays stored.',
    ...ADMIN,
    answer: backfill,
    errors: ['backfill_not_found'],
    async handle({ params, environments }, { backfills }: BackfillDeps) {
      const found = await findIn(params.backfillId, environments, backfills)
      return backfillOf((await backfills.stop(found.id)) ?? found)
    },
  }),
]

/** @throws LatchkeyError `backfill_not_found` */
async function findIn(
  id: string,
  environments: readonly Environment[],
  { find }: BackfillDeps['backfills'],
): Promise<Backfill> {
  const found = await find(id)
  if (found !== null && environments.includes(found.plan.environment)) return found
  throw new LatchkeyError('backfill_not_found', 'There is no such backfill: only the newest are kept.')
}
