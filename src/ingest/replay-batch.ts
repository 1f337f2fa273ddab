import type { Transaction } from 'kysely'
import { outcomeOf } from '../entitlements/disposition.js'
import type { SourceKey } from '../entitlements/model.js'
import type { Policy } from '../entitlements/policy.js'
import { linkOf, type PaymentLink } from '../entitlements/source-of.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { saveCustomerFacts } from '../store/customers.js'
import { doubtLinks } from '../store/doubted-links.js'
import type { EventReading } from '../store/event-reading.js'
import { movePaymentEvents } from '../store/events.js'
import { forgetTellings } from '../store/forget-tellings.js'
import { sourceKey } from '../store/keys.js'
import { markTouched } from '../store/rebuild-progress.js'
import type { ReplayCounts } from '../store/replay-progress.js'
import { rewriteEvents, type StandingEvent, saysTheSame } from '../store/replayed-events.js'
import type { Database } from '../store/schema.js'
import { eventInFormIfReadable } from '../store/stored-form.js'
import { assignSources } from './assign-sources.js'
import { markDeletions } from './mark-deletions.js'
import { type ReadAgain, readAgain } from './read-again.js'
import { settleSources } from './settle-sources.js'

/** What a replay is under: the same for all of its events. */
export interface ReplayTerms {
  readonly environment: Environment
  readonly endpoints: Readonly<Record<string, Environment>>
  readonly policy: Policy
  readonly now: number
}

export interface ReplayedBatch {
  readonly counts: ReplayCounts
  /** Whether something known was taken back that another event may tell. */
  readonly isDoubted: boolean
}

/**
 * Reads some stored events again, and folds what they belong to, or did, from all that is stored. Writes only what
 * differs. An event keeps its place in the order of arrival, and takes the one in time that it tells.
 */
export async function replayBatch(
  trx: Transaction<Database>,
  seqs: readonly number[],
  { environment, endpoints, policy, now }: ReplayTerms,
): Promise<ReplayedBatch> {
  const { read, standing, duplicates, skipped, notReplayable, altered } = await readAgain(
    trx,
    environment,
    seqs,
    endpoints,
  )
  const told = read.map((one) => ({ ...one, before: eventOf(one.row), after: eventIn(one) }))
  const otherwise = told.filter(({ before, after }) => textOf(before) !== textOf(after))
  const isDoubted = await takeBack(trx, environment, otherwise)

  const events = told.flatMap(({ after }) => after ?? [])
  const { sources, moves } = await assignSources(trx, environment, events)
  await movePaymentEvents(trx, environment, moves)
  const readings = told.map((one) => ({
    ...readingOf(one, sources.get(one.eventId) ?? null, policy),
    row: one.row,
  }))
  const changed = readings.filter((reading) => !saysTheSame(reading.row, reading))
  await rewriteEvents(trx, environment, changed)

  const news = otherwise.flatMap(({ after }) => after ?? [])
  await saveCustomerFacts(trx, environment, news)
  await markDeletions(trx, environment, news)

  const keys = new Map<string, SourceKey>()
  const touch = (key: SourceKey | null): void => {
    if (key !== null) keys.set(sourceKey(key), key)
  }
  for (const { from, to } of moves) [from, to].map(touch)
  for (const key of sources.values()) touch(key)
  for (const row of [...standing, ...read.map(({ row }) => row)]) touch(sourceIn(row))
  const rewritten = changed.flatMap(({ row, source }) => [sourceIn(row) ?? [], source ?? []].flat())
  await markTouched(trx, environment, rewritten)
  await settleSources(trx, environment, [...keys.values()], policy, now)

  const isUsable = ({ event }: EventReading): boolean => event !== null
  const recovered = changed.filter((one) => isUsable(one) && one.row.disposition === 'quarantined').length
  const quarantined = readings.filter((one) => !isUsable(one)).length
  return {
    isDoubted,
    counts: {
      read: read.length,
      changed: changed.length,
      recovered,
      quarantined,
      duplicates,
      skipped,
      notReplayable,
      altered,
    },
  }
}

interface Told {
  readonly before: NormalizedEvent | null
  readonly after: NormalizedEvent | null
}

/** Takes back what events said and do not say any more, about links and about people. */
async function takeBack(
  trx: Transaction<Database>,
  environment: Environment,
  otherwise: readonly Told[],
): Promise<boolean> {
  const namings = otherwise.flatMap(({ before, after }): PaymentLink[] => {
    const link = before && linkOf(before)
    return link === null || textOf(link) === textOf(after && linkOf(after)) ? [] : [link]
  })
  const tellings = otherwise.flatMap(({ before, after }) =>
    before?.customerId == null || textOf(toldOfPerson(before)) === textOf(after && toldOfPerson(after))
      ? []
      : [before],
  )
  const hasDoubts = await doubtLinks(trx, environment, namings)
  await forgetTellings(trx, environment, tellings)
  return hasDoubts || tellings.length > 0
}

function toldOfPerson(event: NormalizedEvent) {
  const { id, createdAt, customerId, customer, externalRef, metadata } = event
  return { id, createdAt, customerId, customer, externalRef, metadata, isDeletion: isDeletion(event) }
}

function isDeletion({ type }: NormalizedEvent): boolean {
  return type === 'customer.deleted'
}

function readingOf(
  { row, eventId, normalized }: ReadAgain,
  source: SourceKey | null,
  policy: Policy,
): EventReading {
  if (!normalized.ok) {
    return { eventId, disposition: 'quarantined', reason: normalized.reason, event: null, source: null }
  }
  const { event } = normalized
  // What waits with its source, folding tells.
  const isFoldedBefore = source !== null && row.disposition !== 'quarantined'
  const outcome = isFoldedBefore ? row : outcomeOf(event, source, undefined, policy)
  return { eventId, event, source, disposition: outcome.disposition, reason: outcome.reason }
}

function eventIn({ normalized }: ReadAgain): NormalizedEvent | null {
  return normalized.ok ? normalized.event : null
}

/** Null too where it can't be read: what it said then, nobody knows. */
function eventOf({ normalized }: StandingEvent): NormalizedEvent | null {
  return normalized === null ? null : eventInFormIfReadable(normalized)
}

function sourceIn({ source_kind: kind, source_id: id }: StandingEvent): SourceKey | null {
  return kind === null || id === null ? null : { kind, id }
}

/** As text, since text is what is stored: the same bytes always give the same. */
function textOf(value: unknown): string {
  return JSON.stringify(value)
}
