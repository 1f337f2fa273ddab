/*
 * What the rules work on: the records, the clock, ids and chance, and what waits for its time or its delivery. All of
 * it is in one SQLite file, or in memory; every record is a row of JSON beside the few columns by which it is found. A
 * kill leaves the last committed act whole; only a power cut may lose it.
 */

import { hash } from 'node:crypto'
import { closeSync, openSync } from 'node:fs'
import Sqlite from 'better-sqlite3'
import { ServiceError } from './codes.js'
import type { Delivery, Entity, Kind, Payment, Records, Settings, Subscription } from './model.js'

/** The fields by which records are found: each is a column beside the JSON. */
const FIXED = ['subscriptionId', 'endpointId'] as const
const CHANGING = ['customerId', 'email', 'status', 'dueAt', 'place'] as const
const COLUMNS = [...FIXED, ...CHANGING] as const

const SCHEMA = `
  create table if not exists record (
    seq integer primary key, kind text not null, id text not null unique, body text not null, event text,
    subscriptionId text, endpointId text,
    customerId text, email text collate nocase, status text, dueAt integer, place real
  ) strict;
  create index if not exists record_kind on record (kind, seq);
  create index if not exists record_customer on record (customerId, kind, seq) where customerId is not null;
  create index if not exists record_subscription on record (subscriptionId, kind, seq)
    where subscriptionId is not null;
  create index if not exists record_email on record (email, kind) where email is not null;
  create index if not exists record_due on record (dueAt, seq) where kind in ('payment', 'subscription') and dueAt is not null;
  create index if not exists record_pending on record (place, seq) where kind = 'delivery' and status = 'pending';
  create table if not exists settings (only_row integer primary key check (only_row = 1), body text not null) strict;
`

/** An update leaves out what never changes: its indexes, and the event, which would be written again. */
const SAVE = `
  insert into record (kind, id, body, event, ${COLUMNS}) values (?, ?, ?, ?, ${COLUMNS.map(() => '?')})
  on conflict (id) do update set body = excluded.body, ${CHANGING.map((name) => `${name} = excluded.${name}`)}
`

const NEXT_DUE = `
  indexed by record_due where kind in ('payment', 'subscription') and dueAt is not null and dueAt <= ?
  order by dueAt, seq limit 1
`
const NEXT_TO_SEND = `
  indexed by record_pending where kind = 'delivery' and status = 'pending' and dueAt <= ? order by place, seq limit ?
`

/** Deliveries that were taken so many records ago are forgotten, so that a year of many subscriptions fits. */
const DELIVERED_KEPT = 100_000

/** Which records to list; every field given must match. */
export type Where = { readonly [Name in (typeof COLUMNS)[number]]?: string | undefined }

/** A stretch of a list, the newest first. */
export interface Span {
  /** Only what is older than this place. */
  readonly before?: number | undefined
  readonly limit?: number
  readonly offset?: number
}

interface Row {
  readonly seq: number
  readonly body: string
  /** What a delivery carries: bytes that are never read again as JSON. */
  readonly event: string | null
}

/** What becomes of a record, which may depend on the instant of the change. */
export type Change<One> = Partial<One> | ((at: number) => Partial<One>)

export type World = ReturnType<typeof openWorld>

/** @throws SQLite's own errors; `SQLITE_BUSY`: another sandbox runs on the file; `NOT_A_SANDBOX` */
function openFile(file: string | null): Sqlite.Database {
  // The secrets of endpoints are in it. What SQLite puts beside it has its mode.
  if (file !== null) closeSync(openSync(file, 'a', 0o600))
  const db = new Sqlite(file ?? ':memory:', { timeout: 0 })
  db.pragma('locking_mode = exclusive')
  const tables = db.prepare<[], string>(`select name from sqlite_schema where type = 'table'`).pluck().all()
  if (tables.length > 0 && !tables.includes('record')) {
    db.close()
    throw Object.assign(new Error(`${file} is the database of something else`), { code: 'NOT_A_SANDBOX' })
  }
  db.pragma('journal_mode = wal')
  db.pragma('synchronous = normal')
  db.exec(SCHEMA)
  return db
}

function read<K extends Kind>({ seq, body, event }: Row): Records[K] {
  const record = JSON.parse(body)
  record.seq = seq
  if (event !== null) record.event = event
  return record
}

function conditions(kind: Kind, where: Where) {
  const given = Object.entries({ kind, ...where }).filter(([, value]) => value !== undefined)
  const text = given.map(([name]) => `${name} = ?`).join(' and ')
  return { text, values: given.map(([, value]) => value) }
}

/** The clock, ids and chance: all follow from the seed, and from what has happened so far. */
function createState(settings: Settings) {
  const digest = (text: string): string => hash('sha256', `${state.settings.seed}\0${text}`)
  const state = {
    settings,
    get now(): number {
      return state.settings.now
    },
    change(changed: Partial<Settings>): void {
      state.settings = { ...state.settings, ...changed }
    },
    /** Moves the clock forward; never back. */
    moveTo(now: number): void {
      if (now > state.now) state.change({ now })
    },
    /** The instant of the next change, later than every one before, so that no two have the same. */
    tick(): number {
      const at = Math.max(state.now, state.settings.changedAt + 1)
      state.change({ now: at, changedAt: at })
      return at
    },
    makeId(prefix: string): string {
      state.change({ made: state.settings.made + 1 })
      return `${prefix}_${digest(`${prefix} ${state.settings.made}`).slice(0, 24)}`
    },
    fresh(prefix: string) {
      const at = state.tick()
      return { id: state.makeId(prefix), createdAt: at, updatedAt: at }
    },
    /** A number from 0 to 1 that follows from the seed and the text. */
    draw: (text: string): number => Number.parseInt(digest(text).slice(0, 12), 16) / 2 ** 48,
  }
  return state
}

/** @param file null: in memory, forgotten at the end. @param first what the settings of a new file are */
export function openWorld(file: string | null, first: Settings) {
  const db = openFile(file)
  const statements = new Map<string, Sqlite.Statement<unknown[], Row>>()
  const stored = sql('select body from settings').get()
  const state = createState(stored === undefined ? first : JSON.parse(stored.body))
  /** What the running act has read or written, and which of it is not yet in the file. */
  const known = new Map<string, readonly [Kind, Entity]>()
  const unsaved = new Map<Kind, Map<string, Entity>>()
  let endpoints: readonly Records['endpoint'][] | null = null

  function sql(text: string): Sqlite.Statement<unknown[], Row> {
    const statement = statements.get(text) ?? db.prepare<unknown[], Row>(text)
    statements.set(text, statement)
    return statement
  }

  function select<K extends Kind>(rest: string, ...values: readonly unknown[]): readonly Records[K][] {
    const rows = sql(`select seq, body, event from record ${rest}`).all(...values)
    return rows.map(read<K>)
  }

  /** Before records of a kind are read by anything but their ids. */
  function flush(kind: Kind): void {
    for (const record of unsaved.get(kind)?.values() ?? []) {
      const { event, seq, ...rest } = record as Entity & { readonly [name: string]: unknown }
      sql(SAVE).run(kind, record.id, JSON.stringify(rest), event, ...COLUMNS.map((name) => rest[name]))
    }
    unsaved.delete(kind)
  }

  function commit(before: Settings): void {
    for (const kind of unsaved.keys()) flush(kind)
    if (state.settings !== before) {
      const text = 'insert into settings values (1, ?) on conflict do update set body = excluded.body'
      sql(text).run(JSON.stringify(state.settings))
    }
    sql('commit').run()
  }

  const records = {
    put<K extends Kind>(kind: K, record: Records[K]): Records[K] {
      known.set(record.id, [kind, record])
      const ofKind = unsaved.get(kind) ?? new Map<string, Entity>()
      unsaved.set(kind, ofKind.set(record.id, record))
      if (kind === 'endpoint') endpoints = null
      return record
    },
    update<K extends Kind>(kind: K, record: Records[K], change: Change<Records[K]>): Records[K] {
      const at = state.tick()
      const changed = typeof change === 'function' ? change(at) : change
      return records.put(kind, { ...record, ...changed, updatedAt: at })
    },
    find<K extends Kind>(kind: K, id: string | null): Records[K] | undefined {
      if (id === null) return undefined
      const [cachedKind, cached] = known.get(id) ?? []
      if (cached !== undefined) return cachedKind === kind ? (cached as Records[K]) : undefined
      const [record] = select<K>('where id = ? and kind = ?', id, kind)
      if (record !== undefined) known.set(id, [kind, record])
      return record
    },
    list<K extends Kind>(kind: K, where: Where = {}, span: Span = {}): readonly Records[K][] {
      flush(kind)
      const { before = Number.MAX_SAFE_INTEGER, limit = -1, offset = 0 } = span
      const { text, values } = conditions(kind, where)
      const rest = `where ${text} and seq < ? order by seq desc limit ? offset ?`
      return select<K>(rest, ...values, before, limit, offset)
    },
    /** Of one kind, the oldest first, without having all of them in memory. */
    *each<K extends Kind>(kind: K): Generator<Records[K]> {
      flush(kind)
      const after = (seq = 0) => select<K>('where kind = ? and seq > ? order by seq limit 500', kind, seq)
      for (let some = after(); some.length > 0; some = after(some.at(-1)?.seq)) yield* some
    },
    count(kind: Kind, where: Where = {}): number {
      flush(kind)
      const { text, values } = conditions(kind, where)
      return sql(`select count(*) as seq from record where ${text}`).get(...values)?.seq ?? 0
    },
    /** The oldest first. They are kept at hand: every event asks for them. */
    endpoints(): readonly Records['endpoint'][] {
      endpoints ??= records.list('endpoint').toReversed()
      return endpoints
    },

    /** What the clock does something to by then: the earliest. */
    nextDue(until: number): Payment | Subscription | undefined {
      flush('payment')
      flush('subscription')
      return select<'payment' | 'subscription'>(NEXT_DUE, until)[0]
    },
    /** Deliveries that may be sent by now, in the order of sending. */
    pending: (limit: number): readonly Delivery[] => select<'delivery'>(NEXT_TO_SEND, state.now, limit),
    forgetDelivered(): void {
      const text = `delete from record where kind = 'delivery' and status = 'delivered'
        and seq <= (select max(seq) from record) - ?`
      sql(text).run(DELIVERED_KEPT)
    },

    /** Does something whole, in one transaction: a failure undoes it, unless it says that it stays. */
    act<Answer>(work: () => Answer): Answer {
      const before = state.settings
      sql('begin immediate').run()
      try {
        const answer = work()
        commit(before)
        return answer
      } catch (error) {
        if (error instanceof ServiceError && error.keepsChanges) {
          commit(before)
        } else {
          sql('rollback').run()
          state.settings = before
          endpoints = null
        }
        throw error
      } finally {
        known.clear()
        unsaved.clear()
      }
    },
    close: (): void => void db.close(),
  }
  return Object.assign(state, records)
}
