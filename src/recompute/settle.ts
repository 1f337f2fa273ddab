import type { Transaction } from 'kysely'
import type { PaymentLink } from '../entitlements/source-of.js'
import { sourceKey } from '../entitlements/source-of.js'
import type { LatchkeyError } from '../errors.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { isMeant } from '../store/event-walk.js'
import type { GroupRow } from '../store/group-rows.js'
import type { ReplayCounts } from '../store/recompute-job.js'
import type { Database } from '../store/schema.js'
import { eventInFormIfReadable } from '../store/stored-form.js'
import { replacePeople, type ToldPerson } from '../store/tellings.js'
import { applyGroup } from './apply.js'
import { compareGroup } from './compare.js'
import { type GroupEvent, keyIn, readGroup, type Seeds } from './group.js'
import { askNext, type Told, textOfTelling } from './people.js'
import { readAgain, type TakenIds } from './read-again.js'
import type { StateDifference } from './report.js'
import { isDone, noteConcerned, noteDone, type Run, saveRun } from './run.js'
import { createTrial, type Trial } from './trial.js'
import { isList } from './walk.js'

/** Brings one group after the other in order, or notes what would be changed. */
export interface Settling {
  /** @returns how many events the groups of these seeds have */
  settle(
    trx: Transaction<Database>,
    environment: Environment,
    seeds: Seeds,
    told?: ReadonlyMap<string, PaymentLink | null>,
  ): Promise<number>
  /** Asks the next events about the customers and payments that are concerned. */
  ask(trx: Transaction<Database>, told: Told): Promise<boolean>
  settlePeople(
    trx: Transaction<Database>,
    environment: Environment,
    people: ReadonlyMap<string, ToldPerson>,
  ): Promise<void>
  saveIfDue(trx: Transaction<Database>, eventsPerSave?: number): Promise<void>
  /** Whether a group was left as it is until it is known which events no history names. */
  needsUnlisted(): boolean
  noteUnlisted(pages: AsyncIterable<readonly GroupRow[]>): Promise<void>
  readonly trial: Trial
  /** @throws {LatchkeyError} `store_unavailable`: what could not be read, and was not named as a difference */
  assertReadable(): void
}

const NOTHING_TOLD: ReadonlyMap<string, PaymentLink | null> = new Map()

export function createSettling(
  run: Run,
  clock: () => number,
  onDifference: ((difference: StateDifference) => void) | undefined,
): Settling {
  const { endpoints, scope, newest, policy } = run.job
  const isDryReplay = endpoints !== null && !run.writes
  const taken: TakenIds = new Map()
  const trial = createTrial(isDryReplay, onDifference)
  const unreadable: LatchkeyError[] = []
  let unlisted: 'unknown' | 'needed' | 'known' = 'unknown'
  let [isWritten, events] = [false, 0]

  const isToRead = (row: GroupRow): boolean =>
    row.seq <= newest &&
    // Once it is written, it is stored as it is read.
    !(run.writes && isDone(run, row.seq)) &&
    (isList(scope) ? scope.includes(row.environment) : isMeant(row, scope))

  function readRows(trx: Transaction<Database>, environment: Environment, rows: readonly GroupRow[]) {
    const seqs = endpoints === null ? [] : rows.filter(isToRead).map(({ seq }) => seq)
    return readAgain(trx, environment, seqs, endpoints ?? {}, taken)
  }

  function noteEvents(events: readonly GroupEvent[], changed: ReadonlySet<number>): void {
    for (const event of events) {
      const { seq } = event.row
      if (event.again !== null && !isDone(run, seq)) {
        run.job = { ...run.job, counts: added(run.job.counts, countsOf(event, changed.has(seq))) }
      }
      noteDone(run, seq)
    }
  }

  return {
    async settle(trx, environment, seeds, told = NOTHING_TOLD) {
      const now = clock()
      const group = await readGroup(trx, seeds, {
        environment,
        policy,
        told,
        readAgain: (rows) => readRows(trx, environment, rows),
        leadingTo: (node) => trial.leadingTo(environment, node),
      })
      const differences = await compareGroup(trx, group, now)
      if (unlisted !== 'known' && (!group.isListed || differences.sources.length > 0)) {
        unlisted = 'needed'
        return 0
      }
      for (const { unreadable: error, row } of group.events) {
        // Where differences are named, its source is.
        if (error !== null && (onDifference === undefined || keyIn(row) === null)) unreadable.push(error)
      }
      unreadable.push(...differences.unreadableActs)
      if (run.writes) isWritten = (await applyGroup(trx, environment, differences, now)) || isWritten
      else trial.noteCompared(group, differences, now)
      for (const { reading, stored } of differences.readings) {
        if (textOfTelling(stored.before) === textOfTelling(reading.event)) continue
        for (const id of [stored.before?.customerId, reading.event?.customerId, stored.row.customer_id]) {
          if (id) noteConcerned(run, { environment, kind: 'customer', id })
        }
      }
      for (const { key, folded } of differences.sources) {
        const former = group.sources.get(sourceKey(key))?.customer_id ?? null
        if (former !== null && former !== folded?.state.customerId) {
          noteConcerned(run, { environment, kind: 'customer', id: former })
        }
      }
      for (const id of group.doubted) noteConcerned(run, { environment, kind: 'payment', id })
      noteEvents(group.events, differences.changed)
      events += group.events.length
      return group.events.length
    },
    ask(trx, told) {
      const mayTellOther = (row: GroupRow) => isDryReplay && row.seq <= newest
      return askNext(trx, told, mayTellOther, async (rows) => {
        const read = await readRows(trx, told.environment, isDryReplay ? rows : [])
        return rows.flatMap((row): NormalizedEvent[] => {
          const again = read.get(row.seq)
          if (again?.kind === 'read') return again.normalized.ok ? [again.normalized.event] : []
          const event = row.normalized === null ? null : eventInFormIfReadable(row.normalized)
          return event === null ? [] : [event]
        })
      })
    },
    async settlePeople(trx, environment, people) {
      if (run.writes) await replacePeople(trx, environment, people)
      else trial.notePeople(environment, people)
    },
    async saveIfDue(trx, eventsPerSave = Number.POSITIVE_INFINITY) {
      if (!isWritten && events < eventsPerSave) return
      await saveRun(trx, run)
      isWritten = false
      events = 0
    },
    needsUnlisted: () => unlisted === 'needed',
    async noteUnlisted(pages) {
      for await (const rows of pages) trial.noteUnlisted(rows)
      unlisted = 'known'
    },
    trial,
    assertReadable() {
      const [first] = unreadable
      if (first !== undefined) throw first
    },
  }
}

/** What became of one event that was meant to be read again. */
function countsOf({ row, again }: GroupEvent, isChanged: boolean): Partial<ReplayCounts> {
  switch (again?.kind) {
    case 'read': {
      const isUsable = again.normalized.ok
      return {
        read: 1,
        changed: isChanged ? 1 : 0,
        recovered: isChanged && isUsable && row.disposition === 'quarantined' ? 1 : 0,
        quarantined: isUsable ? 0 : 1,
      }
    }
    case 'duplicate':
      return { duplicates: 1 }
    case 'skipped':
    case 'notReplayable':
    case 'altered':
      return { [again.kind]: 1 }
    default:
      return {}
  }
}

function added(counts: ReplayCounts, more: Partial<ReplayCounts>): ReplayCounts {
  const names = Object.keys(counts) as (keyof ReplayCounts)[]
  const sums = names.map((name) => [name, counts[name] + (more[name] ?? 0)])
  return Object.fromEntries(sums) as unknown as ReplayCounts
}
