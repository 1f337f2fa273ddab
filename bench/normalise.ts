import { normalise } from '../src/provider/normalise.js'
import { buildSampleEvent } from '../src/provider/sample-event.js'
import { median } from './load/percentile.js'
import { withRealisticData } from './sample/realistic-data.js'

/* What it costs to read an event from its bytes, beside what parsing them as JSON costs alone. */

const TYPES = [
  'payment.succeeded',
  'subscription.renewed',
  'PAYMENT_SUCCESS',
  'SUBSCRIPTION_RENEWED',
] as const
const EVENTS = 200
const CALLS = 2_000
const ROUNDS = 60
const WARM_UP = 10
const CONTEXT = { environment: 'live', receivedAt: Number.MAX_SAFE_INTEGER } as const

function bodiesOf(type: string): readonly Buffer[] {
  return Array.from({ length: EVENTS }, (_, i) => {
    const sample = buildSampleEvent({
      type,
      eventId: `evt_${i}`,
      createdAt: Date.UTC(2026, 0, 1) + i * 1000,
      environment: 'live',
      customerId: `cus_${i}`,
      productId: 'pro_1',
      paymentId: `pay_${i}`,
      subscriptionId: `sub_${i}`,
      rail: 'card',
    })
    const { body } = type.includes('.') ? withRealisticData(sample, `key_${i}`) : sample
    return Buffer.from(body)
  })
}

/** In microseconds for one body. */
function measure(bodies: readonly Buffer[], work: (body: Buffer) => void): number {
  const startedAt = performance.now()
  for (let i = 0; i < CALLS; i += 1) work(bodies[i % EVENTS] as Buffer)
  return ((performance.now() - startedAt) * 1000) / CALLS
}

const measured = TYPES.map((type) => ({
  type,
  bodies: bodiesOf(type),
  normalise: [] as number[],
  parse: [] as number[],
}))
for (let round = 0; round < ROUNDS; round += 1) {
  for (const { bodies, ...rounds } of measured) {
    rounds.normalise.push(measure(bodies, (body) => void normalise(body, CONTEXT)))
    rounds.parse.push(measure(bodies, (body) => void JSON.parse(body.toString())))
  }
}
console.table(
  measured.map(({ type, bodies, normalise, parse }) => {
    const [normaliseUs, parseUs] = [median(normalise.slice(WARM_UP)), median(parse.slice(WARM_UP))]
    return {
      type,
      bytes: bodies[0]?.length,
      'normalise, µs': Number(normaliseUs.toFixed(2)),
      'parse only, µs': Number(parseUs.toFixed(2)),
      'normalise / parse': Number((normaliseUs / parseUs).toFixed(2)),
    }
  }),
)
