import Sqlite from 'better-sqlite3'
import type { Delivery, Due, DueKind, Entity, Kind, Records, Settings } from './model.js'

/*
 * The sandbox's state: one SQLite file, or memory. Every record is a row of JSON, beside the few columns by which
 * records are looked for. A kill leaves the last committed act whole; only a power cut may lose it.
 */

const SCHEMA = `
  create table if not exists record (
    seq integer primary key, kind text not null, id text not null unique,
    customer_id text, subscription_id text, email text, body text not null
  ) strict;
  create index if not exists record_kind on record (kind, seq);
  create index if not exists record_customer on record (customer_id, kind, seq) where customer_id is not null;
  create index if not exists record_subscription on record (subscription_id, kind, seq)
    where subscription_id is not null;
  create index if not exists record_email on record (email, kind) where email is not null;
  create table if not exists due (
    kind text not null, id text not null, at integer not null, seq integer not null, primary key (kind, id)
  ) strict, without rowid;
  create index if not exists due_at on due (at, seq);
  create table if not exists delivery (
    seq integer primary key, id text not null unique, endpoint_id text not null, status text not null,
    due_at integer not null, place real not null, body text not null, event text not null
  ) strict;
  create index if not exists delivery_pending on delivery (place, seq) where status = 'pending';
  create table if not exists settings (only_row integer primary key check (only_row = 1), body text not null) strict;
`

/** Delivered ones beyond these are forgotten, so that a year of many subscriptions fits. */
const DELIVERIES_KEPT = 100_000

/** Which records to list; every field given must match. */
export interface Where {
  readonly customerId?: string | undefined
  readonly subscriptionId?: string | undefined
  readonly email?: string | undefined
}

/** A stretch of a list, the newest first. */
export interface Span {
  /** Only what is older than this place. */
  readonly before?: number | undefined
  readonly limit?: number
  readonly offset?: number
}

export interface Placed<Item> {
  readonly place: number
  readonly item: Item
}

interface Row {
  readonly seq: number
  readonly body: string
  /** Of a delivery: what is sent, which never changes. */
  readonly event?: string
}

function deliveryIn({ seq, body, event = '' }: Row): Placed<Delivery> {
  return { place: seq, item: { ...(JSON.parse(body) as Omit<Delivery, 'body'>), body: event } }
}

export type State = ReturnType<typeof openState>

/** @param file null: in memory, forgotten at the end. @throws SQLite's own errors; `SQLITE_BUSY`: another sandbox runs on it; `NOT_A_SANDBOX` */
export function openState(file: string | null) {
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
  const statement = keeping((text: string) => db.prepare<unknown[], Row>(text))

  function conditions({ customerId, subscriptionId, email }: Where): readonly (readonly [string, unknown])[] {
    const known: readonly (readonly [string, unknown])[] = [
      ['customer_id = ?', customerId],
      ['subscription_id = ?', subscriptionId],
      ['email = ?', email],
    ]
    return known.filter(([, value]) => value !== undefined)
  }

  return {
    transaction: (step: 'begin immediate' | 'commit' | 'rollback') => void statement(step).run(),
    close: () => void db.close(),

    settings(): Settings | null {
      const row = statement('select body from settings').get()
      return row === undefined ? null : (JSON.parse(row.body) as Settings)
    },
    saveSettings(settings: Settings): void {
      statement('insert into settings values (1, ?) on conflict do update set body = excluded.body').run(
        JSON.stringify(settings),
      )
    },

    find<K extends Kind>(kind: K, id: string): Records[K] | undefined {
      const row = statement('select body from record where id = ? and kind = ?').get(id, kind)
      return row === undefined ? undefined : (JSON.parse(row.body) as Records[K])
    },
    save(kind: Kind, record: Entity): void {
      const {
        customerId = null,
        subscriptionId = null,
        email = null,
      } = record as { readonly [Name in keyof Where]?: string | null }
      statement(
        `insert into record (kind, id, customer_id, subscription_id, email, body) values (?, ?, ?, ?, ?, ?)
         on conflict (id) do update set customer_id = excluded.customer_id,
           subscription_id = excluded.subscription_id, email = excluded.email, body = excluded.body`,
      ).run(kind, record.id, customerId, subscriptionId, email?.toLowerCase() ?? null, JSON.stringify(record))
    },
    remove(id: string): void {
      statement('delete from record where id = ?').run(id)
    },
    list<K extends Kind>(
      kind: K,
      where: Where,
      { before, limit = -1, offset = 0 }: Span,
    ): Placed<Records[K]>[] {
      const found = conditions(where)
      const rows = statement(
        `select seq, body from record where kind = ? ${found.map(([text]) => `and ${text}`).join(' ')}
         ${before === undefined ? '' : 'and seq < ?'} order by seq desc limit ? offset ?`,
      ).all(
        kind,
        ...found.map(([, value]) => value),
        ...(before === undefined ? [] : [before]),
        limit,
        offset,
      )
      return rows.map(({ seq, body }) => ({ place: seq, item: JSON.parse(body) as Records[K] }))
    },
    /** Of one kind, the oldest first, without having all of them in memory. */
    *each<K extends Kind>(kind: K): Generator<Records[K]> {
      const next = statement('select seq, body from record where kind = ? and seq > ? order by seq limit 500')
      for (let rows = next.all(kind, 0); rows.length > 0; rows = next.all(kind, rows.at(-1)?.seq)) {
        for (const { body } of rows) yield JSON.parse(body) as Records[K]
      }
    },
    count(kind: Kind, where: Where): number {
      const found = conditions(where)
      const text = `select count(*) as seq, '' as body from record where kind = ? ${found.map(([one]) => `and ${one}`).join(' ')}`
      return statement(text).get(kind, ...found.map(([, value]) => value))?.seq ?? 0
    },

    schedule({ kind, id, at }: Due, order: number): void {
      statement(
        'insert into due values (?, ?, ?, ?) on conflict do update set at = excluded.at, seq = excluded.seq',
      ).run(kind, id, at, order)
    },
    unschedule(kind: DueKind, id: string): void {
      statement('delete from due where kind = ? and id = ?').run(kind, id)
    },
    nextDue(until: number): Due | undefined {
      const row = statement(
        `select at as seq, kind || ' ' || id as body from due where at <= ? order by at, seq limit 1`,
      ).get(until)
      if (row === undefined) return undefined
      const [kind, id = ''] = row.body.split(' ')
      return { kind: kind as DueKind, id, at: row.seq }
    },

    addDelivery({ body: event, ...delivery }: Delivery, place: number): void {
      const { id, endpointId, status, dueAt } = delivery
      statement(
        'insert into delivery (id, endpoint_id, status, due_at, place, body, event) values (?, ?, ?, ?, ?, ?, ?)',
      ).run(id, endpointId, status, dueAt, place, JSON.stringify(delivery), event)
    },
    saveDelivery({ body: _unchanged, ...delivery }: Delivery): void {
      const { id, status, dueAt } = delivery
      statement(
        'update delivery set status = ?, due_at = ?, place = max(place, ?), body = ? where id = ?',
      ).run(status, dueAt, dueAt, JSON.stringify(delivery), id)
    },
    findDelivery(id: string): Delivery | undefined {
      const row = statement('select seq, body, event from delivery where id = ?').get(id)
      return row === undefined ? undefined : deliveryIn(row).item
    },
    /** Those that may be sent by now, in the order of sending. */
    pendingDeliveries(now: number, limit: number): Delivery[] {
      const rows = statement(
        `select seq, body, event from delivery where status = 'pending' and due_at <= ? order by place, seq limit ?`,
      ).all(now, limit)
      return rows.map((row) => deliveryIn(row).item)
    },
    listDeliveries(
      where: { readonly endpointId?: string | undefined; readonly status?: string | undefined },
      { before, limit = -1 }: Span,
    ): Placed<Delivery>[] {
      const { endpointId, status } = where
      const rows = statement(
        `select seq, body, event from delivery where (? is null or endpoint_id = ?) and (? is null or status = ?)
         and (? is null or seq < ?) order by seq desc limit ?`,
      ).all(...[endpointId, status, before].flatMap((value) => [value ?? null, value ?? null]), limit)
      return rows.map(deliveryIn)
    },
    forgetDelivered(): void {
      statement(
        `delete from delivery where status = 'delivered' and seq <= (select max(seq) from delivery) - ${DELIVERIES_KEPT}`,
      ).run()
    },
  }
}

function keeping<Kept>(make: (text: string) => Kept): (text: string) => Kept {
  const kept = new Map<string, Kept>()
  return (text) => {
    const known = kept.get(text) ?? make(text)
    kept.set(text, known)
    return known
  }
}
