/* The change log of access, and counts in it. */

import { z } from 'zod'
import type { Catalog } from '../entitlements/features.js'
import { LatchkeyError } from '../errors.js'
import { periodsIn, summarizeChanges } from '../store/change-summary.js'
import { type ListedChange, readChangePage } from '../store/changes.js'
import { counts, environment, instant, snapshot, status } from './answers.js'
import { beginsBeforeItEnds, LATER_THAN_TO } from './events.js'
import { firstOf, idParameter, instantParameter, invalidParameter, limitParameter, pageOf } from './query.js'
import { type MountDeps, READ, type Route, route } from './route.js'

export const changeAnswer = z.object({
  cursor: z.string(),
  at: instant,
  environment,
  customerId: z.string(),
  productId: z.string(),
  before: snapshot,
  after: snapshot,
  /** Those that the product gives now. */
  features: z.array(z.string()),
  cause: z.object({ kind: z.enum(['event', 'clock', 'rebuild']), eventId: z.string().nullable() }),
})

/**
 * Changes with the features that their products give now.
 * @param found null: the cursor of the question is from another log
 * @throws LatchkeyError `cursor_reset`
 */
export function withFeatures(found: readonly ListedChange[] | null, { featuresOf }: Catalog) {
  if (found === null) {
    throw new LatchkeyError(
      'cursor_reset',
      'This cursor is not from this change log. Start again without one.',
    )
  }
  return found.map((change) => ({ ...change, features: featuresOf(change.productId) }))
}

/** A year of days, and a month. More in one answer would keep the store busy for long. */
const MOST_PERIODS = 400

export const summaryAnswer = z.object({
  environment,
  by: z.enum(['day', 'week']),
  productId: z.string().nullable(),
  periods: z.array(
    z.object({
      from: instant,
      to: instant,
      ...counts('gained', 'lost'),
      lostBy: z.partialRecord(status, z.int()),
      active: z.int(),
    }),
  ),
})

export const changeQuestions: readonly Route<MountDeps>[] = [
  route('GET /changes', {
    operationId: 'listChanges',
    // Every change and every answer about access has a cursor; at the end of the log, continue from the last one.
    summary:
      'The change log, oldest first, after a cursor or from its beginning; of a customer, or of a stretch of time.',
    ...READ,
    query: z
      .object({
        customerId: idParameter.optional(),
        from: instantParameter.optional(),
        to: instantParameter.optional(),
        limit: limitParameter,
        cursor: z.string().optional(),
      })
      .refine(beginsBeforeItEnds, LATER_THAN_TO),
    answer: pageOf(changeAnswer, z.string()),
    errors: ['cursor_reset'],
    async handle({ query: { limit, cursor: after = null, ...filter }, environment }, { db, catalog }) {
      const asked = { environment, after, limit: limit + 1, ...filter }
      const changes = withFeatures(await readChangePage(db, asked), catalog())
      return firstOf(changes, limit, ({ cursor }) => cursor)
    },
  }),
  route('GET /changes/summary', {
    operationId: 'summarizeChanges',
    summary: 'How many gained and lost access in each day or week, and how many had it at its end.',
    ...READ,
    query: z
      .object({
        from: instantParameter,
        to: instantParameter.optional(),
        by: z.enum(['day', 'week'], 'is neither "day" nor "week"').default('day'),
        productId: idParameter.optional(),
      })
      .refine(beginsBeforeItEnds, LATER_THAN_TO),
    answer: summaryAnswer,
    async handle({ query: { from, to, by, productId }, environment }, { db, clock }) {
      const periods = periodsIn(from, to ?? clock(), by)
      if (periods.length > MOST_PERIODS) {
        const asked = `is ${periods.length} ${by}s before the end`
        throw invalidParameter('from', `${asked}, and one answer has at most ${MOST_PERIODS}: ask for less`)
      }
      const found = await summarizeChanges(db, { environment, productId, periods, by })
      return { environment, by, productId: productId ?? null, periods: found }
    },
  }),
]
