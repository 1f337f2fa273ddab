import type { Erasure } from './erasures.js'
import { endText, nameOfSource, time } from './explain-words.js'
import type { ExplainedEvent, Explanation } from './explanation.js'
import type { SourceView } from './model.js'

type Told = Pick<
  Explanation,
  'customerId' | 'environment' | 'asOf' | 'entitlement' | 'sources' | 'held' | 'erasures'
>

/** Why access is as it is, in one or two sentences. */
export function summaryOf(told: Told & { readonly isKnown: boolean }): string {
  const { customerId, environment, isKnown, entitlement } = told
  if (!isKnown) return `Nothing is known of ${customerId} in ${environment}: no event names them.`
  if (entitlement.active) return summaryOfActive(told)
  if (entitlement.status === 'none') return summaryOfNone(told)
  return summaryOfEnded(told)
}

function summaryOfActive({ customerId, entitlement, erasures }: Told): string {
  const { productId, since, until, pastDue, sources } = entitlement
  const active = sources.filter((source) => source.active)
  const by = active.map(nameOfSource).join(' and ')
  const access = `${customerId} has access to ${productId}${since === null ? '' : ` since ${time(since)}`}, by ${by}.`
  if (until !== null) return `${access} It ends at ${time(until)}: ${reasonOf(active, until, erasures)}.`
  if (pastDue) return `${access} A payment is overdue, and access goes on until the subscription is over.`
  return `${access} No end is known.`
}

function summaryOfEnded({ customerId, entitlement, erasures }: Told): string {
  const { productId, status, until, sources } = entitlement
  if (status === 'blocked') return `${customerId} is blocked from ${productId}.`
  const ended = `${customerId} has no access to ${productId}`
  const last = sources.findLast((source) => source.until === until)
  if (until === null || last === undefined) return `${ended}.`
  return `${ended} since ${time(until)}: ${reasonOf(sources, until, erasures)} (${last.eventId} of ${nameOfSource(last)}).`
}

function reasonOf(sources: readonly SourceView[], until: number, erasures: readonly Erasure[]): string {
  const last = sources.findLast((source) => source.until === until)
  if (last === undefined || last.reason === null) return 'no reason is known'
  return endText({ reason: last.reason, eventId: last.eventId }, erasures)
}

function summaryOfNone({ customerId, asOf, entitlement: { productId }, sources, held }: Told): string {
  const intervals = sources.flatMap((source) => source.intervals)
  if (intervals.some((interval) => interval.productId === productId)) {
    return `${customerId} had not been given access to ${productId} by ${time(asOf)}.`
  }
  const never = `${customerId} has never had access to ${productId}`
  if (held.length > 0)
    return `${never}. ${held.length === 1 ? 'One event waits' : `${held.length} events wait`}.`
  const telling = mostTelling(sources.flatMap(({ events }) => events))
  return telling === undefined ? `${never}: no event of theirs is about it.` : `${never}. ${telling.sentence}`
}

/** The newest event that was more than information; else the newest. */
function mostTelling(events: readonly ExplainedEvent[]): ExplainedEvent | undefined {
  const oldestFirst = [...events].sort((a, b) => a.createdAt - b.createdAt)
  return oldestFirst.findLast(({ note }) => note.code !== 'informed') ?? oldestFirst.at(-1)
}
