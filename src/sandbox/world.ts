/*
 * What the rules work on: the records, the clock, ids and chance, and what waits for its time or its delivery. All of
 * it is in one SQLite file, or in memory; every record is a row of JSON beside the few columns by which it is found. A
 * kill leaves the last committed act whole; only a power cut may lose it.
 */

import { hash } from 'node:crypto'
import { closeSync, openSync } from 'node:fs'
import Sqlite from 'better-sqlite3'
import { ServiceError } from './codes.js'
import type { Delivery, Due, Entity, Kind, Records, Settings } from './model.js'

/** The fields by which records are found: each is a column beside the JSON. */
const COLUMNS = ['customerId', 'subscriptionId', 'email', 'endpointId', 'status', 'dueAt', 'place'] as const

const SCHEMA = `
  create table if not exists record (
    seq integer primary key, kind text not null, id text not null unique, body text not null,
    customerId text, subscriptionId text, email text collate nocase,
    endpointId text, status text, dueAt integer, place real
  ) strict;
  create index if not exists record_kind on record (kind, seq);
  create index if not exists record_customer on record (customerId, kind, seq) where customerId is not null;
  create index if not exists record_subscription on record (subscriptionId, kind, seq)
    where subscriptionId is not null;
  create index if not exists record_email on record (email, kind) where email is not null;
  create index if not exists record_pending on record (place, seq) where kind = 'delivery' and status = 'pending';
  create table if not exists due (id text primary key, at integer not null, seq integer not null) strict, without rowid;
  create index if not exists due_at on due (at, seq);
  create table if not exists settings (only_row integer primary key check (only_row = 1), body text not null) strict;
`

const SAVE = `
  insert into record (kind, id, body, ${COLUMNS}) values (?, ?, ?, ${COLUMNS.map(() => '?')})
  on conflict (id) do update set body = excluded.body, ${COLUMNS.map((name) => `${name} = excluded.${name}`)}
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

/** An item of a list, and the place at which the list can go on after it. */
export interface Placed<Item> {
  readonly place: number
  readonly item: Item
}

interface Row {
  readonly seq: number
  readonly body: string
}

export type World = ReturnType<typeof createWorld>

export interface Acting {
  readonly world: World
  /** Does something whole: a failure undoes it, unless it says that it stays. */
  act<Answer>(work: (world: World) => Answer): Answer
}

/**
 * @param file null: in memory, forgotten at the end
 * @param first what the settings are if the file is new
 * @throws SQLite's own errors; `SQLITE_BUSY`: another sandbox runs on the file; `NOT_A_SANDBOX`
 */
export function openWorld(file: string | null, first: Settings): Acting & { readonly close: () => void } {
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
  const world = createWorld(db, first)
  return { world, act: (work) => world.transact(() => work(world)), close: () => void db.close() }
}

type Prepare = (text: string) => Sqlite.Statement<unknown[], Row>

/** Each statement is prepared once. */
function preparing(db: Sqlite.Database): Prepare {
  const statements = new Map<string, Sqlite.Statement<unknown[], Row>>()
  return (text) => {
    const statement = statements.get(text) ?? db.prepare<unknown[], Row>(text)
    statements.set(text, statement)
    return statement
  }
}

function createWorld(db: Sqlite.Database, first: Settings) {
  const sql = preparing(db)
  const stored = sql('select body from settings').get()
  let settings: Settings = stored === undefined ? first : JSON.parse(stored.body)
  /** What the running act has read or written, and which of it is not yet in the file. */
  const known = new Map<string, readonly [Kind, Entity]>()
  const unsaved = new Map<Kind, Map<string, Entity>>()
  let endpoints: readonly Records['endpoint'][] | null = null

  /** Before records of a kind are read by anything but their ids. */
  function flush(kind: Kind): void {
    for (const record of unsaved.get(kind)?.values() ?? []) {
      const found = record as { readonly [Name in (typeof COLUMNS)[number]]?: string | number | null }
      sql(SAVE).run(kind, record.id, JSON.stringify(record), ...COLUMNS.map((name) => found[name]))
    }
    unsaved.delete(kind)
  }

  /** The instant of the next change, later than every one before, so that no two have the same. */
  function tick(): number {
    const at = Math.max(settings.now, settings.changedAt + 1)
    settings = { ...settings, now: at, changedAt: at }
    return at
  }

  /** How many ids and due things were made, this one included. */
  function countMade(): number {
    settings = { ...settings, made: settings.made + 1 }
    return settings.made
  }

  function put<K extends Kind>(kind: K, record: Records[K]): Records[K] {
    known.set(record.id, [kind, record])
    const ofKind = unsaved.get(kind) ?? new Map<string, Entity>()
    unsaved.set(kind, ofKind.set(record.id, record))
    if (kind === 'endpoint') endpoints = null
    return record
  }

  function conditions(kind: Kind, where: Where) {
    const given = Object.entries({ kind, ...where }).filter(([, value]) => value !== undefined)
    const text = given.map(([name]) => `${name} = ?`).join(' and ')
    return { text, values: given.map(([, value]) => value) }
  }

  function placed<K extends Kind>(kind: K, where: Where, span: Span): readonly Placed<Records[K]>[] {
    flush(kind)
    const { before = Number.MAX_SAFE_INTEGER, limit = -1, offset = 0 } = span
    const { text, values } = conditions(kind, where)
    return sql(`select seq, body from record where ${text} and seq < ? order by seq desc limit ? offset ?`)
      .all(...values, before, limit, offset)
      .map(({ seq, body }) => ({ place: seq, item: JSON.parse(body) }))
  }

  function list<K extends Kind>(kind: K, where: Where = {}, span: Span = {}): readonly Records[K][] {
    return placed(kind, where, span).map(({ item }) => item)
  }

  return {
    get settings(): Settings {
      return settings
    },
    change(changed: Partial<Settings>): void {
      settings = { ...settings, ...changed }
    },
    get now(): number {
      return settings.now
    },
    /** Moves the clock forward; never back. */
    moveTo(instant: number): void {
      if (instant > settings.now) settings = { ...settings, now: instant }
    },
    tick,
    makeId(prefix: string): string {
      return `${prefix}_${digest(settings.seed, `${prefix} ${countMade()}`).slice(0, 24)}`
    },
    /** A number from 0 to 1 that follows from the seed and the text. */
    draw: (text: string): number => Number.parseInt(digest(settings.seed, text).slice(0, 12), 16) / 2 ** 48,

    /** Does all of the work in one transaction, or none of it. */
    transact<Answer>(work: () => Answer): Answer {
      const before = settings
      const commit = (): void => {
        for (const kind of unsaved.keys()) flush(kind)
        if (settings !== before) {
          sql('insert into settings values (1, ?) on conflict do update set body = excluded.body').run(
            JSON.stringify(settings),
          )
        }
        sql('commit').run()
      }
      sql('begin immediate').run()
      try {
        const answer = work()
        commit()
        return answer
      } catch (error) {
        if (error instanceof ServiceError && error.keepsChanges) {
          commit()
        } else {
          sql('rollback').run()
          settings = before
          endpoints = null
        }
        throw error
      } finally {
        known.clear()
        unsaved.clear()
      }
    },

    /** The record with this changed, and when. */
    update<K extends Kind>(kind: K, record: Records[K], change: Partial<Records[K]>, at = tick()) {
      return put(kind, { ...record, ...change, updatedAt: at })
    },
    find<K extends Kind>(kind: K, id: string | null): Records[K] | undefined {
      if (id === null) return undefined
      const [cachedKind, cached] = known.get(id) ?? []
      if (cached !== undefined) return cachedKind === kind ? (cached as Records[K]) : undefined
      const row = sql('select body from record where id = ? and kind = ?').get(id, kind)
      if (row === undefined) return undefined
      const record: Records[K] = JSON.parse(row.body)
      known.set(id, [kind, record])
      return record
    },
    put,
    list,
    placed,
    /** Of one kind, the oldest first, without having all of them in memory. */
    *each<K extends Kind>(kind: K): Generator<Records[K]> {
      flush(kind)
      const next = sql('select seq, body from record where kind = ? and seq > ? order by seq limit 500')
      for (let rows = next.all(kind, 0); rows.length > 0; rows = next.all(kind, rows.at(-1)?.seq)) {
        for (const { body } of rows) yield JSON.parse(body)
      }
    },
    count(kind: Kind, where: Where = {}): number {
      flush(kind)
      const { text, values } = conditions(kind, where)
      return sql(`select count(*) as seq, '' as body from record where ${text}`).get(...values)?.seq ?? 0
    },
    /** The oldest first. They are kept at hand: every event asks for them. */
    endpoints(): readonly Records['endpoint'][] {
      endpoints ??= list('endpoint').toReversed()
      return endpoints
    },

    ...createWaiting(sql, countMade, () => settings.now),
  }
}

/** What waits for its time by the clock, and the deliveries that wait to be sent. */
function createWaiting(sql: Prepare, countMade: () => number, now: () => number) {
  return {
    /** Of each record, one thing is due at most: the next. */
    schedule(id: string, at: number): void {
      const text =
        'insert into due values (?, ?, ?) on conflict do update set at = excluded.at, seq = excluded.seq'
      sql(text).run(id, at, countMade())
    },
    unschedule(id: string): void {
      sql('delete from due where id = ?').run(id)
    },
    nextDue(until: number): Due | undefined {
      const next = `select 0 as seq, json_object('id', id, 'at', at) as body from due where at <= ? order by at, seq limit 1`
      const due = sql(next).get(until)
      return due && JSON.parse(due.body)
    },

    /** Deliveries that may be sent by now, in the order of sending. */
    pending(limit: number): readonly Delivery[] {
      return sql(
        `select seq, body from record indexed by record_pending
         where kind = 'delivery' and status = 'pending' and dueAt <= ?
         order by place, seq limit ?`,
      )
        .all(now(), limit)
        .map(({ body }) => JSON.parse(body))
    },
    forgetDelivered(): void {
      sql(
        `delete from record where kind = 'delivery' and status = 'delivered'
         and seq <= (select max(seq) from record) - ?`,
      ).run(DELIVERED_KEPT)
    },
  }
}

function digest(seed: number, text: string): string {
  return hash('sha256', `${seed}\0${text}`)
}
