import { createHmac, timingSafeEqual } from 'node:crypto'
import Sqlite from 'better-sqlite3'
import express from 'express'
import pg from 'pg'
import { SECRET } from '../sample/signing.js'
import { serveAndAnnounce } from './announce.js'

/*
 * What one writes on the first day: Express, the signature over the raw body, and a transaction for each request
 * that stores the event once and sets who has access. As durable as Latchkey; knows nothing of late events.
 */

interface ObviousEvent {
  readonly id: string
  readonly type: string
  readonly data: { readonly customer: { readonly id: string }; readonly product: { readonly id: string } }
}

const TOLERANCE_SECONDS = 300
const TAKES_BACK = ['payment.failed', 'payment.refunded', 'subscription.expired']
/** As many as a daemon opens. */
const CONNECTIONS = 16
const [, , database = ''] = process.argv

type Store = (event: ObviousEvent, body: Buffer) => Promise<void> | void

function onSqlite(file: string): Store {
  const db = new Sqlite(file)
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  db.exec(`
    create table events (id text primary key, type text not null, body blob not null, received_at integer not null);
    create table access (
      customer_id text not null, product_id text not null, active integer not null, primary key (customer_id, product_id)
    );
  `)
  const insertEvent = db.prepare('insert into events values (?, ?, ?, ?) on conflict do nothing')
  const setAccess = db.prepare(
    'insert into access values (?, ?, ?) on conflict do update set active = excluded.active',
  )

  return db.transaction((event: ObviousEvent, body: Buffer) => {
    const { changes } = insertEvent.run(event.id, event.type, body, Date.now())
    if (changes === 0) return
    setAccess.run(event.data.customer.id, event.data.product.id, isActiveAfter(event))
  })
}

/** As there, and with the look at what is stored that several writers at a time call for. */
async function onPostgres(url: string): Promise<Store> {
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS })
  await pool.query(`
    create table events (id text primary key, type text not null, body bytea not null, received_at bigint not null);
    create table access (
      customer_id text not null, product_id text not null, active integer not null, primary key (customer_id, product_id)
    );
  `)

  return async (event, body) => {
    const ids = [event.data.customer.id, event.data.product.id]
    const client = await pool.connect()
    try {
      await client.query('begin')
      const { rowCount } = await client.query(
        'insert into events values ($1, $2, $3, $4) on conflict do nothing',
        [event.id, event.type, body, Date.now()],
      )
      if (rowCount !== 0) {
        const select = 'select active from access where customer_id = $1 and product_id = $2 for update'
        await client.query(select, ids)
        const upsert =
          'insert into access values ($1, $2, $3) on conflict (customer_id, product_id) do update set active = excluded.active'
        await client.query(upsert, [...ids, isActiveAfter(event)])
      }
      await client.query('commit')
    } catch (error) {
      await client.query('rollback')
      throw error
    } finally {
      client.release()
    }
  }
}

function isActiveAfter({ type }: ObviousEvent): number {
  return TAKES_BACK.includes(type) ? 0 : 1
}

function isAuthentic(body: Buffer, timestamp = '', signature = ''): boolean {
  const expected = `v1=${createHmac('sha256', SECRET).update(`${timestamp}.`).update(body).digest('hex')}`
  const isRecent = Math.abs(Date.now() / 1000 - Number(timestamp)) <= TOLERANCE_SECONDS
  return (
    isRecent &&
    signature.length === expected.length &&
    timingSafeEqual(Buffer.from(signature), Buffer.from(expected))
  )
}

const store = database.startsWith('postgres:') ? await onPostgres(database) : onSqlite(database)
const app = express()
app.post('/webhooks/:endpoint', express.raw({ type: 'application/json' }), async (req, res) => {
  const body = req.body as Buffer
  if (!isAuthentic(body, req.get('X-Webhook-Timestamp'), req.get('X-Webhook-Signature'))) {
    res.status(401).json({ error: 'signature_invalid' })
    return
  }
  await store(JSON.parse(body.toString()) as ObviousEvent, body)
  res.json({ received: true })
})
serveAndAnnounce(app)
