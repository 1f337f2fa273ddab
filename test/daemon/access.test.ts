import { describe, expect, it } from 'vitest'
import { entitlement } from './observed.js'
import { runDaemon, send } from './running-daemon.js'
import { storedEvents } from './stored.js'
import { timeOf, wireEvent } from './wire-events.js'

describe('a customer who is told late', () => {
  it('has access since the first event, which waited', async () => {
    const daemon = await runDaemon()
    const checkout = await send(daemon, wireEvent('CHECKOUT_SUCCESS', { customer: null }))
    expect(await checkout.json()).toMatchObject({ disposition: 'held' })
    expect(await storedEvents(daemon)).toMatchObject([{ disposition: 'held', reason: 'customer_unknown' }])
    expect(await entitlement(daemon)).toMatchObject({ active: false, status: 'none' })

    const payment = await send(daemon, wireEvent('PAYMENT_SUCCESS', { minutes: 5 }))
    expect(await payment.json()).toMatchObject({ disposition: 'applied' })
    const since = new Date(timeOf(0)).toISOString()
    expect(await entitlement(daemon)).toMatchObject({ active: true, status: 'active', since })
    expect(await storedEvents(daemon)).toMatchObject([
      { type: 'checkout.succeeded', disposition: 'applied', reason: null },
      { type: 'payment.succeeded', disposition: 'applied', reason: null },
    ])
  })

  it('has none by a bare checkout until something proves the card', async () => {
    const daemon = await runDaemon()
    const bare = await send(daemon, wireEvent('checkout.succeeded', { rail: 'unknown' }))
    expect(await bare.json()).toMatchObject({ disposition: 'held' })
    expect(await storedEvents(daemon)).toMatchObject([{ disposition: 'held', reason: 'rail_unknown' }])
    expect(await entitlement(daemon)).toMatchObject({ active: false, status: 'none' })

    await send(daemon, wireEvent('payment.settled', { rail: 'unknown', minutes: 5 }))
    expect(await entitlement(daemon)).toMatchObject({
      active: true,
      since: new Date(timeOf(0)).toISOString(),
    })
  })
})
