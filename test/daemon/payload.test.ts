import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { metric, warnings } from './observed.js'
import { ask, NOW, type RunningDaemon, send, sharedDaemon } from './running-daemon.js'
import { storedUnder } from './stored.js'
import { PRODUCT, wireEvent } from './wire-events.js'

const DAY_MS = 86_400_000

/** A grant that would be applied, with some fields of its envelope replaced; undefined leaves one out. */
function envelope(changed: Record<string, unknown>): string {
  return JSON.stringify({ ...JSON.parse(wireEvent('payment.authorized')), ...changed })
}

function idOf(body: string): string {
  return JSON.parse(body).id
}

/** A customer for each look at what comes after. */
let asked = 0

const shared = sharedDaemon()

/** Sends it twice, and checks what is answered, kept, logged and counted; then that others are served as ever. */
async function expectQuarantined(
  daemon: RunningDaemon,
  sent: { body: string | Buffer; reason: string; id: string | null; endpoint?: 'live' | 'sandbox' },
): Promise<void> {
  const { reason, id, endpoint = 'live' } = sent
  const body = Buffer.from(sent.body)
  const series = `latchkey_deliveries_total{endpoint="${endpoint}",disposition="quarantined"}`
  const counted = (await metric(daemon, series)) ?? 0
  const first = await send(daemon, body, { endpoint })
  expect(first.status).toBe(200)
  expect(await first.json()).toEqual({ received: true, id, disposition: 'quarantined' })
  const again = await send(daemon, body, { endpoint })
  expect(await again.json()).toEqual({ received: true, id, disposition: 'duplicate' })

  const eventId = id ?? `sha256:${createHash('sha256').update(body).digest('hex')}`
  const rows = await storedUnder(daemon, eventId)
  expect(rows).toMatchObject([
    {
      event_id: eventId,
      environment: endpoint,
      disposition: 'quarantined',
      reason,
      normalized: null,
      deliveries: 2,
    },
  ])
  expect(rows[0]?.body?.equals(body)).toBe(true)
  expect(warnings(daemon).filter((warning) => warning.eventId === eventId)).toMatchObject([{ reason }])
  expect(await metric(daemon, series)).toBe(counted + 1)

  asked += 1
  const customer = `cus_${asked}`
  const next = wireEvent('payment.authorized', { environment: endpoint, customer, payment: `pay_${asked}` })
  const good = await send(daemon, next, { endpoint })
  expect(await good.json()).toMatchObject({ disposition: 'applied' })
  const answer = await ask(daemon, `/entitlements/${customer}/${PRODUCT}?environment=${endpoint}`)
  expect(await answer.json()).toMatchObject({ active: true, status: 'active' })
}

describe('an authentic body that cannot be used', () => {
  const nested = `${'['.repeat(200_000)}${']'.repeat(200_000)}`

  it.each<[reason: string, body: string | Buffer]>([
    ['not_utf8', Buffer.from(envelope({ type: 'é' }), 'latin1')],
    ['nested_too_deep', envelope({ more: 0 }).replace(/0}$/, () => `${nested}}`)],
    ['id_invalid', envelope({ id: 'evt_1\r\nSet-Cookie: a=b' })],
    ['id_invalid', envelope({ id: 'e'.repeat(12_288) })],
  ])('is kept under the hash of its bytes where it has no usable id: %s', async (reason, body) => {
    await expectQuarantined(shared(), { body, reason, id: null })
  })

  it.each<[reason: string, body: string, endpoint?: 'sandbox']>([
    ...(['customer', 'product', 'payment', 'subscription'] as const).map((field): [string, string] => [
      'reference_id_invalid',
      wireEvent('payment.authorized', { [field]: 'cus_\u0000' }),
    ]),
    ['created_at_in_future', envelope({ createdAt: new Date(NOW + DAY_MS + 1).toISOString() })],
    ['livemode_mismatch', envelope({ livemode: false })],
    ['livemode_mismatch', envelope({ livemode: true }), 'sandbox'],
  ])('is kept under its own id: %s', async (reason, body, endpoint) => {
    await expectQuarantined(shared(), { body, reason, id: idOf(body), ...(endpoint && { endpoint }) })
  })

  it('is none that is at the limits', async () => {
    for (const limit of [{ id: 'e'.repeat(255) }, { createdAt: new Date(NOW + DAY_MS).toISOString() }]) {
      expect(await (await send(shared(), envelope(limit))).json()).toMatchObject({ disposition: 'applied' })
    }
  })
})
