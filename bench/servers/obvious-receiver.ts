import { createHmac, timingSafeEqual } from 'node:crypto'
import Sqlite from 'better-sqlite3'
import express from 'express'
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
const [, , file = ''] = process.argv

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

const store = db.transaction((event: ObviousEvent, body: Buffer) => {
  const { changes } = insertEvent.run(event.id, event.type, body, Date.now())
  if (changes === 0) return
  const active = TAKES_BACK.includes(event.type) ? 0 : 1
  setAccess.run(event.data.customer.id, event.data.product.id, active)
})

function isAuthentic(body: Buffer, timestamp = '', signature = ''): boolean {
  const expected = `v1=${createHmac('sha256', SECRET).update(`${timestamp}.`).update(body).digest('hex')}`
  const isRecent = Math.abs(Date.now() / 1000 - Number(timestamp)) <= TOLERANCE_SECONDS
  return (
    isRecent &&
    signature.length === expected.length &&
    timingSafeEqual(Buffer.from(signature), Buffer.from(expected))
  )
}

const app = express()
app.post('/webhooks/:endpoint', express.raw({ type: 'application/json' }), (req, res) => {
  const body = req.body as Buffer
  if (!isAuthentic(body, req.get('X-Webhook-Timestamp'), req.get('X-Webhook-Signature'))) {
    res.status(401).json({ error: 'signature_invalid' })
    return
  }
  store(JSON.parse(body.toString()) as ObviousEvent, body)
  res.json({ received: true })
})
serveAndAnnounce(app)
