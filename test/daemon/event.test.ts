import { describe, expect, it } from 'vitest'
import { ask, call, NOW, runDaemon, send } from './running-daemon.js'
import { BROKEN, BROKEN_ID, GRANT, HELD, sha256 } from './stored-events.js'
import { wireEvent } from './wire-events.js'

describe('GET /events/:id', () => {
  it('tells what the event says, how it came, and what else came under its id', async () => {
    const daemon = await runDaemon()
    const other = wireEvent('payment.refunded', { id: 'evt_1' })
    await send(daemon, GRANT, { headers: { 'X-Webhook-Event': 'payment.authorized' } })
    await send(daemon, other)
    const event = await (await ask(daemon, '/events/evt_1')).json()
    expect(event).toMatchObject({
      id: 'evt_1',
      conflicts: 1,
      deliveries: 2,
      reasonText: null,
      normalized: {
        subject: 'payment',
        type: 'payment.authorized',
        createdAt: '2026-03-01T11:00:00.500Z',
        paymentId: 'pay_1',
        railProof: { rail: 'card' },
      },
      headers: {
        event: 'payment.authorized',
        timestamp: String(Math.floor(NOW / 1000)),
        signature: expect.stringMatching(/^v1=[0-9a-f]{64}$/),
      },
      otherBodies: [{ sha256: sha256(other), bytes: other.length, endpoint: 'live', deliveries: 1 }],
    })
  })

  it('tells what a held one waits for, and of one that cannot be read that it cannot', async () => {
    const daemon = await runDaemon()
    await send(daemon, HELD)
    await send(daemon, BROKEN)
    expect(await (await ask(daemon, '/events/evt_2')).json()).toMatchObject({
      reason: 'customer_unknown',
      reasonText: 'waits until an event names its customer',
    })
    expect(await (await ask(daemon, `/events/${BROKEN_ID}`)).json()).toMatchObject({
      normalized: null,
      reasonText: 'cannot be used, since its bytes are not UTF-8 text',
    })
  })

  it('finds an id like any other', async () => {
    const daemon = await runDaemon()
    for (const id of ['evt_"\'<b>/../%', 'ünï/cødé 🔑', '../../etc', 'evt 1?#']) {
      const body = wireEvent('payment.authorized', { id })
      await send(daemon, body)
      const path = `/events/${encodeURIComponent(id)}`
      expect(await (await ask(daemon, path)).json()).toMatchObject({ id })
      const bytes = await ask(daemon, `${path}/body`)
      expect(await bytes.text()).toBe(body)
      expect(bytes.headers.get('content-disposition')).toMatch(/^attachment; filename="[\w-]+\.body"$/)
    }
  })
})

describe('GET /events/:id/body', () => {
  it('answers with the very bytes, for no browser to run', async () => {
    const daemon = await runDaemon()
    await send(daemon, BROKEN)
    const answer = await ask(daemon, `/events/${encodeURIComponent(BROKEN_ID)}/body`)
    expect(answer.status).toBe(200)
    expect(Buffer.from(await answer.arrayBuffer())).toEqual(BROKEN)
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-length': '4',
      'content-disposition': `attachment; filename="sha256_${sha256(BROKEN)}.body"`,
      'x-content-type-options': 'nosniff',
      etag: `"${sha256(BROKEN)}"`,
    })
    const known = await ask(daemon, `/events/${BROKEN_ID}/body`, { 'If-None-Match': `"${sha256(BROKEN)}"` })
    expect({ status: known.status, text: await known.text() }).toEqual({ status: 304, text: '' })
  })

  it('answers with another body under the same id, by its hash', async () => {
    const daemon = await runDaemon()
    const other = wireEvent('payment.refunded', { id: 'evt_1' })
    await send(daemon, GRANT)
    await send(daemon, other)
    expect(await (await ask(daemon, '/events/evt_1/body')).text()).toBe(GRANT)
    expect(await (await ask(daemon, `/events/evt_1/body?sha256=${sha256(other)}`)).text()).toBe(other)
    const missing = await ask(daemon, `/events/evt_1/body?sha256=${sha256('never sent')}`)
    expect(missing.status).toBe(404)
    expect(await missing.json()).toMatchObject({
      code: 'event_not_found',
      detail: 'The event has no body with this SHA-256.',
    })
    const unknown = await ask(daemon, `/events/evt_9/body?sha256=${sha256(other)}`)
    expect(await unknown.json()).toMatchObject({
      status: 404,
      detail: 'No such event is stored in this environment.',
    })
    expect((await ask(daemon, '/events/evt_1/body?sha256=..')).status).toBe(400)
  })

  it('answers with its JSON for what was done by hand', async () => {
    const daemon = await runDaemon()
    const reason = 'support case 17'
    const { json } = await call(daemon, 'POST', '/customers/cus_1/grants', { productId: 'pro_1', reason })
    const id = String(json.eventId)
    expect(await (await ask(daemon, `/events/${id}/body`)).json()).toMatchObject({
      id,
      type: 'manual.granted',
      customerId: 'cus_1',
      actor: 'operator',
      reason,
    })
    expect(await (await ask(daemon, `/events/${id}`)).json()).toMatchObject({
      endpoint: 'manual',
      generation: null,
      headers: null,
      normalized: { subject: 'manual', until: null },
    })
    expect(await (await ask(daemon, '/events?type=manual.granted&customerId=cus_1')).json()).toMatchObject({
      items: [{ id }],
    })
  })
})
