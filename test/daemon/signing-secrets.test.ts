import { expect, it } from 'vitest'
import { ask, LIVE_SECRET, NOW, runDaemon, SANDBOX_SECRET, send } from './running-daemon.js'
import { storedEvents } from './stored.js'
import { CUSTOMER, PRODUCT, wireEvent } from './wire-events.js'

it('the secrets of an endpoint count each until its notAfter, and no longer', async () => {
  const next = 'whsec_next_9876543210'
  const notAfter = NOW + 60_000
  const secrets = [next, { secret: LIVE_SECRET, notAfter: new Date(notAfter).toISOString() }]
  const daemon = await runDaemon({ config: { endpoints: { live: { environment: 'live', secrets } } } })
  daemon.setNow(notAfter - 1)
  expect((await send(daemon, '{"id":"evt_1"}')).status).toBe(200)
  daemon.setNow(notAfter)
  expect((await send(daemon, '{"id":"evt_2"}')).status).toBe(401)
  expect((await send(daemon, '{"id":"evt_3"}', { secret: next })).status).toBe(200)
  expect(await storedEvents(daemon)).toMatchObject([{ event_id: 'evt_1' }, { event_id: 'evt_3' }])
})

it('the two environments share no secret, no event and no access', async () => {
  const daemon = await runDaemon()
  const event = wireEvent('payment.authorized', { id: 'evt_same' })
  const either = JSON.stringify({ ...JSON.parse(event), livemode: undefined })
  for (const [endpoint, secret] of [
    ['live', SANDBOX_SECRET],
    ['sandbox', LIVE_SECRET],
  ] as const) {
    expect((await send(daemon, either, { endpoint, secret })).status).toBe(401)
  }
  const statusIn = async (environment: string) => {
    const answer = await ask(daemon, `/entitlements/${CUSTOMER}/${PRODUCT}?environment=${environment}`)
    return ((await answer.json()) as { status: string }).status
  }
  await send(daemon, either, { endpoint: 'sandbox' })
  expect([await statusIn('live'), await statusIn('sandbox')]).toEqual(['none', 'active'])
  for (const endpoint of ['live', 'sandbox']) await send(daemon, either, { endpoint })
  expect(await storedEvents(daemon)).toMatchObject([
    { environment: 'sandbox', event_id: 'evt_same', deliveries: 2 },
    { environment: 'live', event_id: 'evt_same', deliveries: 1 },
  ])
})
