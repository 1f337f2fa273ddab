import { accessChanges } from './explain-changes.js'
import type { Change } from './explain-note.js'
import type { NotedEvent } from './explain-payment.js'
import { foldManual } from './fold-manual.js'
import type { GrantAct } from './manual-source.js'
import { compareByTime } from './order.js'

/** Notes everything that was granted and revoked by hand, in order. No policy has a say in it. */
export function noteManual(acts: readonly GrantAct[]): NotedEvent[] {
  const ordered = [...acts].sort(compareByTime)
  return ordered.map((event, index) => {
    const { createdAt: at, until } = event
    // Few acts are done by hand to one product of one customer: folding each beginning of them is cheap.
    const runningAfter = (count: number) => {
      const { running } = foldManual(ordered.slice(0, count))
      return running?.end && running.end.at <= at ? null : running
    }
    const [before, after] = [runningAfter(index), runningAfter(index + 1)]
    const end: Change[] =
      after === null || until === null ? [] : [{ code: 'end_set', reason: 'completed', at: until }]
    const changes = [...accessChanges(before, after), ...end]
    if (event.type === 'manual.granted')
      return { event, row: null, note: { code: 'granted', until }, changes }
    return { event, row: null, note: { code: before === null ? 'not_granted' : 'revoked' }, changes }
  })
}
