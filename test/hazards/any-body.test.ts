import fc from 'fast-check'
import { expect, it } from 'vitest'
import { WIRE_TYPES } from '../../src/provider/event-types.js'
import { warnings } from '../daemon/observed.js'
import { ask, runDaemon, send } from '../daemon/running-daemon.js'
import { storedEvents } from '../daemon/stored.js'
import { PRODUCT, wireEvent } from '../daemon/wire-events.js'

/** What a field may hold where nobody keeps to any document. */
const ODD_VALUES = [
  ...[null, true, 0, -1, 1.5, 1e308, Number.MAX_SAFE_INTEGER + 2],
  ...['', ' ', '\u0000', '\ud800', '\r\n', '😀', '__proto__', 'constructor', 'CRYPTO', 'x'.repeat(300)],
  ...['0000-01-01T00:00:00Z', '9999-12-31T23:59:60Z', '2026-01-01T00:00:00+99:99', '-271821-04-20T00:00:00Z'],
  ...[[], {}, [null], { id: null }, { id: { id: 'x' } }, JSON.parse('{"__proto__":{"id":"cus_other"}}')],
]

const types = fc.constantFrom(...WIRE_TYPES.v2, ...WIRE_TYPES.v3)
const oddValue = fc.oneof(fc.constantFrom(...ODD_VALUES), fc.jsonValue(), fc.string({ unit: 'binary' }))

/** A documented event of which any fields, however deep, hold something odd. */
const oddEvent = fc
  .tuple(types, fc.array(fc.tuple(fc.nat(60), oddValue), { minLength: 1, maxLength: 4 }))
  .map(([type, changes]) => {
    const changed = new Map(changes)
    let place = -1
    const change = (_key: string, value: unknown): unknown => {
      place += 1
      // A copy: one value at two places, one within the other, would hold itself.
      return place > 0 && changed.has(place) ? JSON.parse(JSON.stringify(changed.get(place))) : value
    }
    return Buffer.from(JSON.stringify(JSON.parse(wireEvent(type)), change))
  })

const anyBody: fc.Arbitrary<Buffer> = fc.oneof(
  { weight: 8, arbitrary: oddEvent },
  { weight: 1, arbitrary: oddEvent.chain((body) => fc.nat(body.length).map((at) => body.subarray(0, at))) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
  { weight: 1, arbitrary: fc.json().map((text) => Buffer.from(text)) },
)

it('whatever is signed is answered 200, kept byte for byte, and keeps nobody from their access', async () => {
  const daemon = await runDaemon()
  let customers = 0
  const property = fc.asyncProperty(fc.array(anyBody, { minLength: 1, maxLength: 12 }), async (bodies) => {
    customers += 1
    const customer = `cus_good_${customers}`
    const good = wireEvent('payment.authorized', { customer, payment: `pay_${customer}` })
    const answers = await Promise.all([...bodies, good].map((body) => send(daemon, body)))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))

    const kept = await daemon.stored(async (db) => [
      ...(await db.selectFrom('events').select('body').execute()),
      ...(await db.selectFrom('event_conflicts').select('body').execute()),
    ])
    const texts = new Set(kept.map(({ body }) => body?.toString('hex')))
    for (const body of bodies) expect(texts).toContain(body.toString('hex'))
    const answer = await ask(daemon, `/entitlements/${customer}/${PRODUCT}`)
    expect(await answer.json()).toMatchObject({ active: true, status: 'active' })
  })
  await fc.assert(property, { numRuns: 60 })

  const reasons = (await storedEvents(daemon)).map(({ reason }) => reason)
  expect(reasons).not.toContain('normalizer_failed')
  expect(warnings(daemon).filter(({ msg }) => /could not|bug/.test(String(msg)))).toEqual([])
})
