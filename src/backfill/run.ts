/* What is known of a backfill: what was asked for, how far it is, and what it has found. Pure, but for reading it. */

import { isDeepStrictEqual } from 'node:util'
import { isLatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import type { DifferenceSummary } from '../recompute/run.js'
import { loadBackfills } from '../store/backfill.js'
import { inForm, textOf } from '../store/recompute.js'
import type { Db } from '../store/schema.js'
import { DIFFERENCE_TEXT, type Difference, type DifferenceCode } from './reporter.js'

export interface BackfillPlan {
  readonly environment: Environment
  /** Nothing is stored: what would be is shown. */
  readonly dryRun: boolean
  readonly payments: boolean
  readonly subscriptions: boolean
  /** Only the records of this customer; null: of all. */
  readonly customerId: string | null
}

/**
 * In this order: the ids charged back are listed; the records of the one customer are asked for by id; subscriptions are
 * listed and kept; payments are listed and reported; the kept subscriptions are reported; sources that no list showed
 * are asked for by id; what came of it all is added up.
 */
export const PHASES = [
  'chargebacks',
  'customer',
  'subscriptions',
  'payments',
  'kept',
  'unlisted',
  'result',
] as const
export type Phase = (typeof PHASES)[number]

/** A record that the service does not know, though it gives access here. */
export interface UnknownRecord {
  readonly kind: 'payment' | 'subscription'
  readonly id: string
}

/** What it has found. Every record counts once, however often it was read. */
export interface Findings {
  readonly payments: number
  readonly subscriptions: number
  /** Ids that the service lists as charged back; null: no list of them was read. */
  readonly chargebacks: number | null
  /** Records of which the stored events told everything before. */
  readonly told: number
  /** Records that could not be used. */
  readonly unusable: number
  /** What remains different, by code, and examples. */
  readonly differences: Readonly<Partial<Record<DifferenceCode, number>>>
  readonly differing: readonly (Difference & { readonly text: string })[]
  readonly unknown: number
  readonly unknownRecords: readonly UnknownRecord[]
}

const NOTHING_FOUND: Findings = {
  ...{ payments: 0, subscriptions: 0, chargebacks: null, told: 0, unusable: 0, unknown: 0 },
  ...{ differences: {}, differing: [], unknownRecords: [] },
}

/** What came of it: events stored, by type, and access changed; of a dry run, what would be. */
export interface Result {
  readonly stored: Readonly<Record<string, number>>
  readonly access: DifferenceSummary
}

/** Instants are epoch milliseconds. */
export interface Backfill {
  readonly id: string
  /** Grows with every backfill. */
  readonly number: number
  readonly plan: BackfillPlan
  readonly startedAt: number
  /** The newest stored event and the newest change of access when it began. */
  readonly newestSeq: number
  readonly newestChange: number
  readonly phase: Phase
  /** Where in the phase it is; null: at its beginning. */
  readonly place: string | number | null
  /** Whether the records of its customer were asked for by id: no list is read then. */
  readonly isById: boolean
  readonly found: Findings
  readonly perSecond: number | null
  readonly outcome:
    | { readonly state: 'running' }
    | { readonly state: 'done'; readonly endedAt: number; readonly result: Result }
    | { readonly state: 'stopped' | 'failed'; readonly endedAt: number; readonly reason: string }
}

export function newBackfill(
  begun: Pick<Backfill, 'id' | 'number' | 'plan' | 'startedAt' | 'newestSeq' | 'newestChange'>,
): Backfill {
  return {
    ...begun,
    ...{ phase: 'chargebacks', place: null, isById: false, perSecond: null },
    ...{ found: NOTHING_FOUND, outcome: { state: 'running' } },
  }
}

export const isRunning = ({ outcome }: Backfill): boolean => outcome.state === 'running'

export const isSamePlan = (a: BackfillPlan, b: BackfillPlan): boolean => isDeepStrictEqual(a, b)

/** Of everything there is, and written. */
export const isWhole = ({ plan }: Backfill): boolean => isSamePlan(plan, wholePlan(plan.environment))

export function wholePlan(environment: Environment): BackfillPlan {
  return { environment, dryRun: false, payments: true, subscriptions: true, customerId: null }
}

/** How many records were read. */
export const readIn = ({ found }: Backfill): number => found.payments + found.subscriptions

/** What one record came to, or a record that is not known. */
export interface Outcome {
  readonly kind: UnknownRecord['kind']
  readonly id: string
  /** `events`: how many this backfill has reported of it. Null: the service does not know it. */
  readonly report: { readonly events: number; readonly differences: readonly Difference[] } | null
}

/** Enough examples to look through; the counts cover all. */
const SAMPLE = 100

export function withOutcomes(found: Findings, outcomes: readonly Outcome[]): Findings {
  const unknown = outcomes.filter(({ report }) => report === null)
  const reports = outcomes.flatMap(({ report }) => report ?? [])
  const differences = reports.flatMap((report) => report.differences)
  const counts = { ...found.differences }
  for (const { code } of differences) counts[code] = (counts[code] ?? 0) + 1
  const isUnusable = ({ code }: Difference) => code === 'record_unusable'
  return {
    ...found,
    told:
      found.told + reports.filter((report) => report.events === 0 && report.differences.length === 0).length,
    unusable: found.unusable + reports.filter((report) => report.differences.some(isUnusable)).length,
    differences: counts,
    differing: [
      ...found.differing,
      ...differences.map((one) => ({ ...one, text: DIFFERENCE_TEXT[one.code] })),
    ].slice(0, SAMPLE),
    unknown: found.unknown + unknown.length,
    unknownRecords: [...found.unknownRecords, ...unknown.map(({ kind, id }) => ({ kind, id }))].slice(
      0,
      SAMPLE,
    ),
  }
}

export function failed(run: Backfill, error: unknown, endedAt: number): Backfill {
  const reason = isLatchkeyError(error) ? error.message : 'The cause is in the log.'
  return { ...run, outcome: { state: 'failed', endedAt, reason } }
}

export function stopped(run: Backfill, reason: string, endedAt: number): Backfill {
  return { ...run, outcome: { state: 'stopped', endedAt, reason } }
}

export const recordOf = (run: Backfill): string => textOf(run)

/** As stored, the newest first; those of a newer Latchkey are left out. */
export async function loadRuns(db: Db): Promise<readonly Backfill[]> {
  const runs = (await loadBackfills(db)).flatMap((record) => inForm<Backfill>(record) ?? [])
  return runs.sort((a, b) => b.number - a.number)
}

/** The newest that read everything there is, to its end; null: there was none. */
export async function lastComplete(db: Db, environment: Environment): Promise<Backfill | null> {
  const isComplete = (run: Backfill) =>
    run.plan.environment === environment && run.outcome.state === 'done' && isWhole(run)
  return (await loadRuns(db)).find(isComplete) ?? null
}

/** How many of anything that is counted by name. */
export function total(counts: Readonly<Partial<Record<string, number>>>): number {
  return Object.values(counts).reduce<number>((sum, count = 0) => sum + count, 0)
}
