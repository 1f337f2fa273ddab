import { noteManual } from './explain-manual.js'
import { type NotedEvent, notePayment } from './explain-payment.js'
import { sentenceOf } from './explain-sentence.js'
import { noteSubscription } from './explain-subscription.js'
import type {
  ExplainedEvent,
  ExplainedHold,
  ExplainedSource,
  StoredHold,
  StoredSourceEvent,
} from './explanation.js'
import { type FoldableEvent, foldSource } from './fold-source.js'
import type { HoldReason, SourceKey, SourceState } from './model.js'
import type { Policy } from './policy.js'

/** A source, folded anew, and what each of its events did in that. */
export interface SourceExplanation {
  readonly state: SourceState
  readonly source: ExplainedSource
  readonly held: readonly ExplainedHold[]
}

/** @param stored all stored events of the source, each once, in any order */
export function explainSource(
  key: SourceKey,
  stored: readonly StoredSourceEvent[],
  policy: Policy,
): SourceExplanation {
  const events = stored.map(({ event }) => event)
  const { state } = foldSource(key, events, policy)
  const byId = new Map(stored.map((one) => [one.event.id, one]))
  const explained = noteEvents(key, events, policy).flatMap((noted) => {
    const known = byId.get(noted.event.id)
    return known === undefined ? [] : [explainEvent(key, noted, known, state.held[noted.event.id])]
  })
  const held = stored.flatMap((one) => {
    const reason = state.held[one.event.id]
    return reason === undefined ? [] : [explainHold({ ...one, source: key, reason })]
  })
  const { kind, id, rail, customerId, intervals } = state
  return { state, source: { kind, id, rail, customerId, intervals, events: explained }, held }
}

export function explainHold({ event, receivedAt, source, reason }: StoredHold): ExplainedHold {
  const { id, type, createdAt } = event
  const sentence = sentenceOf(event, source, { code: 'held', reason }, [])
  return { id, type, createdAt, receivedAt, source, reason, sentence }
}

function noteEvents({ kind }: SourceKey, events: readonly FoldableEvent[], policy: Policy): NotedEvent[] {
  switch (kind) {
    case 'subscription':
      return noteSubscription(
        events.filter((event) => event.subject !== 'manual'),
        policy,
      )
    case 'payment':
      return notePayment(
        events.filter((event) => event.subject === 'payment'),
        policy,
      )
    case 'manual':
      return noteManual(events.filter((event) => event.subject === 'manual'))
    default:
      return kind satisfies never
  }
}

function explainEvent(
  source: SourceKey,
  { event, row, note: walked, changes }: NotedEvent,
  { receivedAt, disposition }: StoredSourceEvent,
  hold: HoldReason | undefined,
): ExplainedEvent {
  const { id, type, createdAt } = event
  const told = { id, type, createdAt, receivedAt, disposition, row }
  if (hold === undefined)
    return { ...told, note: walked, changes, sentence: sentenceOf(event, source, walked, changes) }
  // What waits changes nothing for anybody yet, however the walk took it in.
  const note = { code: 'held', reason: hold } as const
  return { ...told, note, changes: [], sentence: sentenceOf(event, source, note, []) }
}
