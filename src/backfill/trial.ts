/*
 * The ledger of a dry run: events that would be stored are kept apart, and every later decision sees them, as if they
 * were. They are kept without personal data, which no decision needs.
 */

import { unpackHistory } from '../entitlements/history.js'
import { BACKFILL_ENDPOINT } from '../provider/endpoint.js'
import type { Environment } from '../provider/event.js'
import { withoutPerson } from '../provider/redact.js'
import { accessChanges, differencesIn } from '../recompute/differences.js'
import { createEventReader, type Group, nodeName, readGroup } from '../recompute/group.js'
import type { AccessDifference } from '../recompute/run.js'
import { type KeptRow, loadKept, nextKeptIds } from '../store/backfill.js'
import { inSnapshot } from '../store/engine.js'
import type { GroupRow } from '../store/recompute.js'
import type { Db } from '../store/schema.js'
import { policyInForce } from '../store/settings.js'
import { loadLinks } from '../store/sources.js'
import { eventInForm, formOf } from '../store/stored-form.js'
import { createSummary, type Ledger } from './ledger.js'
import { paymentIdOf, type ReadRecord, type Stored, sourcesOf } from './report.js'
import type { ReportedEvent } from './reporter.js'
import type { Result } from './run.js'

export interface TrialDeps {
  readonly db: Db
  readonly clock: () => number
  /** Keeps rows until the backfill ends. */
  readonly keepRows: (rows: readonly KeptRow[]) => Promise<void>
  /** Between two groups: rests where others need the time. */
  readonly pause: () => Promise<void>
}

/** Above every number of a stored event. */
const FIRST_UNSTORED = 2 ** 50
const ROOTS_AT_ONCE = 20

export function createTrial(environment: Environment, { db, clock, keepRows, pause }: TrialDeps): Ledger {
  /** Beside stored rows, those of kept events, each once: called anew for each group. */
  function unstoredIn(reader: Db) {
    const known = new Set<string>()
    return async (names: readonly string[]): Promise<readonly GroupRow[]> => {
      const leads = await loadKept(reader, environment, 'lead', names)
      const roots = [...names, ...leads.flatMap(({ record }) => record ?? [])]
      const rows = await loadKept(reader, environment, 'event', roots)
      return rows
        .filter(({ part }) => !known.has(part))
        .map((row) => {
          known.add(row.part)
          return rowOf(environment, row, FIRST_UNSTORED + known.size)
        })
    }
  }

  async function groupOf(reader: Db, seeds: Parameters<typeof readGroup>[3]): Promise<Group> {
    const readEvents = createEventReader({ scope: [environment], endpoints: null, newest: 0 }, null)
    const policy = await policyInForce(reader)
    const unstored = unstoredIn(reader)
    return readGroup(reader, { policy, readEvents, leading: new Map(), unstored }, environment, seeds)
  }

  async function load(reader: Db, records: readonly ReadRecord[]): Promise<Stored> {
    const paymentIds = records.map(paymentIdOf).filter((id) => id !== null)
    const links = await loadLinks(reader, environment, paymentIds)
    const sources = records.flatMap((record) => sourcesOf(record, links))
    const { derived } = await groupOf(reader, {
      sources: sources.map((source) => ({ ...source, environment })),
    })
    const histories = [...derived.sources].map(
      ([name, { history }]) => [name, unpackHistory(history) ?? []] as const,
    )
    return { links: derived.links, histories: new Map(histories) }
  }

  async function result(): Promise<Result> {
    const stored: Record<string, number> = {}
    const access = new Map<string, readonly AccessDifference[]>()
    for (let after = ''; ; ) {
      const roots = await nextKeptIds(db, environment, 'event', after, ROOTS_AT_ONCE)
      const last = roots.at(-1)
      if (last === undefined) break
      await inSnapshot(db, async (reader) => {
        for (const { record } of await loadKept(reader, environment, 'event', roots)) {
          const { type } = eventInForm(record ?? '', '')
          stored[type] = (stored[type] ?? 0) + 1
        }
        const sources = roots.map((root) => ({ ...sourceIn(root), environment }))
        const group = await groupOf(reader, { sources })
        const now = clock()
        const { access: found } = await differencesIn(reader, group, now)
        for (const [customerId, { differences }] of found) {
          access.set(customerId, accessChanges(group, differences, now))
        }
      })
      after = last
      await pause()
    }
    const summary = createSummary()
    summary.add([...access.values()].flat())
    return { stored, access: summary.summary() }
  }

  return {
    load: (records) => inSnapshot(db, (reader) => load(reader, records)),
    async keep(events) {
      if (events.length > 0) await keepRows(events.flatMap((one) => rowsOf(environment, one)))
    },
    result,
  }
}

/** Where an event is kept, and what else leads to it. A payment's goes with its subscription, if it names one. */
function rowsOf(environment: Environment, { event }: ReportedEvent): readonly KeptRow[] {
  const { id: part, subscriptionId, paymentId, customerId } = event
  const name = (kind: string, id: string) => nodeName(environment, kind, id)
  const root =
    subscriptionId === null ? name('payment', paymentId ?? '') : name('subscription', subscriptionId)
  const leads = [
    ...(paymentId === null ? [] : [name('payment', paymentId), name('link', paymentId)]),
    ...(customerId === null ? [] : [name('customer', customerId)]),
  ]
  const unread = { read_at: null, newest_seq: null }
  return [
    { kind: 'event', id: root, part, record: formOf(withoutPerson(event)), ...unread },
    ...leads.map((id): KeptRow => ({ kind: 'lead', id, part, record: root, ...unread })),
  ]
}

/** The source that the name of a root stands for. */
function sourceIn(root: string) {
  const [, kind, ...id] = root.split(' ')
  return { kind: kind === 'payment' ? 'payment' : 'subscription', id: id.join(' ') } as const
}

function rowOf(environment: Environment, { part, record }: KeptRow, seq: number): GroupRow {
  const event = eventInForm(record ?? '', part)
  return {
    ...{ seq, environment, event_id: part, endpoint: BACKFILL_ENDPOINT, received_at: event.createdAt },
    ...{ disposition: 'applied', reason: null, type: event.type, customer_id: event.customerId },
    ...{ source_kind: null, source_id: null, normalized: record },
  }
}
