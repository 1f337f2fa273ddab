import { describe, expect, it } from 'vitest'
import { entitlement } from './observed.js'
import { ask, NOW, type RunningDaemon, runDaemon, send } from './running-daemon.js'
import { CUSTOMER, PRODUCT, SUBSCRIPTION, timeOf, wireEvent } from './wire-events.js'

const PATH = `/entitlements/${CUSTOMER}`
const BOTH_PATHS = [PATH, `${PATH}/${PRODUCT}`]
const END = NOW + 3_600_000
const END_TEXT = new Date(END).toISOString()

/** A subscription that was paid, and is canceled as of an hour from now. */
async function runEnding(): Promise<RunningDaemon> {
  const daemon = await runDaemon()
  const subscription = SUBSCRIPTION
  await send(daemon, wireEvent('payment.authorized', { subscription }))
  const data = { cancel_at_period_end: true, expires_at: END_TEXT }
  await send(daemon, wireEvent('subscription.canceled', { subscription, minutes: 10, data }))
  return daemon
}

describe('an answer that the caller holds already', () => {
  it.each(BOTH_PATHS)('is spared until the end of access, and not a moment longer: %s', async (path) => {
    const daemon = await runEnding()
    const first = await ask(daemon, path)
    const tag = first.headers.get('etag') ?? ''
    expect(await first.text()).toContain(`"status":"ending","since":"${new Date(timeOf(0)).toISOString()}"`)
    const askAgain = (now: number) => {
      daemon.setNow(now)
      return ask(daemon, path, { 'If-None-Match': tag })
    }
    for (const now of [NOW, NOW + 1, END - 1]) expect((await askAgain(now)).status).toBe(304)

    const ended = await askAgain(END)
    expect(ended.status).toBe(200)
    expect(ended.headers.get('etag')).not.toBe(tag)
    expect(await ended.text()).toContain('"active":false,"status":"canceled"')
  })

  it('tells how long it holds', async () => {
    const daemon = await runEnding()
    expect(await (await ask(daemon, PATH)).json()).toMatchObject({ validUntil: END_TEXT })
    daemon.setNow(END)
    expect(await (await ask(daemon, PATH)).json()).toMatchObject({ validUntil: null })
  })

  it.each(BOTH_PATHS)('is not spared once an event has changed it: %s', async (path) => {
    const daemon = await runEnding()
    const tag = (await ask(daemon, path)).headers.get('etag') ?? ''
    await send(daemon, wireEvent('payment.refunded', { subscription: SUBSCRIPTION, minutes: 20 }))
    const answer = await ask(daemon, path, { 'If-None-Match': tag })
    expect(answer.status).toBe(200)
    expect(await answer.text()).toContain('"active":false,"status":"refunded"')
  })
})

it('a question about another time is answered as of then', async () => {
  const daemon = await runEnding()
  const canceled = { active: false, status: 'canceled', until: END_TEXT }
  const ending = { active: true, status: 'ending', until: END_TEXT }
  for (const [instant, expected] of [
    [timeOf(0) - 1, { active: false, status: 'none', since: null, until: null }],
    [timeOf(0), ending],
    [END - 1, ending],
    [END, canceled],
    [END + 365 * 86_400_000, canceled],
  ] as const) {
    const at = new Date(instant).toISOString()
    expect({ at, ...(await entitlement(daemon, { query: `?at=${at}` })) }).toMatchObject({ at, ...expected })
    const whole = await ask(daemon, `${PATH}?at=${at}`)
    expect(await whole.json()).toMatchObject({ asOf: at, customerId: CUSTOMER, validUntil: null })
  }
})

describe('a restart', () => {
  it('changes no answer', async () => {
    const daemon = await runEnding()
    await send(daemon, wireEvent('PAYMENT_SUCCESS', { customer: 'cus_2', payment: 'pay_2', rail: 'crypto' }))
    await send(daemon, wireEvent('CHECKOUT_SUCCESS', { customer: null, payment: 'pay_3' }))
    await send(daemon, wireEvent('payment.authorized'), { endpoint: 'sandbox' })
    await send(daemon, 'no event')
    const paths = [
      PATH,
      `${PATH}/${PRODUCT}`,
      '/entitlements/cus_2',
      '/entitlements/cus_3',
      `${PATH}?environment=sandbox`,
    ]
    const answersOf = (one: RunningDaemon) =>
      Promise.all(
        paths.map(async (path) => {
          const answer = await ask(one, path)
          return [answer.headers.get('etag'), await answer.json()]
        }),
      )
    const before = await answersOf(daemon)
    const restarted = await daemon.restart()
    expect(await answersOf(restarted)).toEqual(before)

    await send(restarted, wireEvent('PAYMENT_SUCCESS', { customer: 'cus_3', payment: 'pay_3', minutes: 1 }))
    const since = new Date(timeOf(0)).toISOString()
    expect(await entitlement(restarted, { customer: 'cus_3' })).toMatchObject({ active: true, since })
  })
})
