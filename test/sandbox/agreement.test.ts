import { describe, expect, it } from 'vitest'
import { ask, configuredFolder, keyEntry, serveHere } from '../world.js'
import { createProduct, day, type Json, MONTHLY, type Service, startService } from './service.js'

const READER = 'lk_agreement'
const POLICY = {
  grantOn: {
    card: ['payment.authorized', 'checkout.succeeded', 'payment.succeeded'],
    crypto: ['payment.succeeded'],
    unknown: ['payment.succeeded'],
  },
  revokeOn: {
    card: ['payment.failed', 'payment.refunded', 'subscription.expired', 'payment.chargeback'],
    crypto: ['payment.failed', 'subscription.expired'],
    unknown: ['payment.failed', 'payment.refunded', 'subscription.expired', 'payment.chargeback'],
  },
}
const SECRETS = { v3: 'whsec_agreement_current', v2: 'whsec_agreement_legacy' }

/** Of the daemon, and of the signatures: more than a year after the sandbox's start. */
const now = (): number => Date.parse(day(430))

/** A daemon, and a sandbox that began 13 months ago and delivers to it, shuffled and doubled. */
async function begin(generations: readonly ('v3' | 'v2')[], seed: number) {
  const folder = configuredFolder({
    endpoints: {
      v3: { environment: 'sandbox', secrets: [SECRETS.v3] },
      v2: { environment: 'sandbox', secrets: [SECRETS.v2] },
    },
    api: { keys: [{ ...keyEntry('app', READER), environments: ['sandbox'] }] },
    policy: POLICY,
  })
  const daemon = await serveHere(folder, { now })
  const endpoints = generations.map((generation) => ({
    url: `${daemon.url}/webhooks/${generation}`,
    secret: SECRETS[generation],
    generation,
  }))
  const service = await startService({ clock: now, seed, endpoints })
  await service.faults({ duplicate: 0.3, reorder: true })
  return { daemon, service }
}

/** Numbers from 0 to 1, the same for the same seed. */
function drawing(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 48_271 + 11) % 2_147_483_647
    return state / 2_147_483_647
  }
}

/** What happens to a service in a month, to whom by chance. */
async function act(
  service: Service,
  draw: () => number,
  plans: readonly string[],
  customers: number,
): Promise<void> {
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(draw() * items.length)] as Item
  const { items: subscriptions } = await service.data('GET /v3/subscriptions?limit=100')
  const { items: payments } = await service.data('GET /v3/payments?limit=100')
  const tried = (words: string, body: object = {}) => service.call(words, body)
  const subscription = () => pick(subscriptions as readonly Json[])?.id
  const steps: readonly (() => Promise<unknown>)[] = [
    () =>
      tried('POST /v3/subscriptions', {
        productId: pick(plans),
        customerEmail: `${Math.floor(draw() * customers)}@x.test`,
        card: { tokenizedInstrument: pick(['tok_good', 'tok_good', 'tok_soft_decline']) },
      }),
    async () => {
      const answer = await tried('POST /v3/subscriptions', {
        productId: pick(plans),
        customerEmail: `${Math.floor(draw() * customers)}@x.test`,
        crypto: {},
      })
      if (draw() < 0.8) await tried(`POST /sandbox/payments/${answer.body.data?.payment.id}/pay`)
    },
    () =>
      tried(`POST /v3/subscriptions/${subscription()}/change-plan`, {
        productId: pick(plans),
        proration: pick(['delta', 'delta', 'none']),
      }),
    () =>
      tried(`POST /v3/subscriptions/${subscription()}/change-plan`, {
        productId: pick(plans),
        effective: 'period_end',
      }),
    () => tried(`POST /v3/subscriptions/${subscription()}/cancel`, { atPeriodEnd: draw() < 0.5 }),
    () => tried(`POST /sandbox/payments/${pick(payments as readonly Json[])?.id}/refund`),
    () =>
      tried(`POST /sandbox/payments/${pick(payments as readonly Json[])?.id}/refund`, { amountInCents: 100 }),
    () => tried(`POST /sandbox/payments/${pick(payments as readonly Json[])?.id}/chargeback`),
    () =>
      tried(`POST /sandbox/customers/${pick(subscriptions as readonly Json[])?.customerId}/card`, {
        outcome: pick(['success', 'success', 'soft_decline', 'technical_failure', 'hard_decline']),
      }),
    async () => {
      for (const one of payments as readonly Json[]) {
        if (one.status === 'PENDING' && one.subscriptionId !== null)
          await tried(`POST /sandbox/payments/${one.id}/pay`)
      }
    },
  ]
  for (let count = 0; count < 12; count += 1) {
    await pick(steps)()
    await service.advance(`${Math.ceil(draw() * 120)}h`)
  }
}

describe('access in the daemon', () => {
  it.each([
    ['v3', ['v3'], 1],
    ['both generations', ['v3', 'v2'], 2],
  ] as const)(
    'is the truth of the sandbox at every month’s end, heard in %s',
    async (_name, generations, seed) => {
      const { daemon, service } = await begin(generations, seed)
      const draw = drawing(seed)
      const plans: string[] = []
      for (const [priceCents, frequencyInDays] of [
        ['900', 30],
        ['1900', 30],
        ['4900', 30],
        ['2500', 7],
        ['19000', 365],
      ] as const) {
        plans.push(await createProduct(service, { ...MONTHLY, priceCents, frequencyInDays }))
      }
      const ends: string[] = []
      for (let month = 0; month < 12; month += 1) {
        await act(service, draw, plans, 10)
        ends.push((await service.data('GET /sandbox/clock')).now)
      }
      const customers = (await service.data('GET /v3/customers?limit=100')).items.map(({ id }: Json) => id)
      let active = 0
      for (const at of ends) {
        const truth = await service.truth(at)
        for (const customerId of customers) {
          const answer = await ask(daemon, `/entitlements/${customerId}?at=${encodeURIComponent(at)}`, READER)
          const { entitlements } = (await answer.json()) as Json
          const given = entitlements.filter((one: Json) => one.active).map((one: Json) => one.productId)
          const expected = truth.filter((one) => one.customerId === customerId).map((one) => one.productId)
          active += given.length
          expect([at, customerId, given.sort()]).toEqual([at, customerId, [...expected].sort()])
        }
      }
      // Neither side may agree by having nothing to say.
      expect(active).toBeGreaterThan(10)
    },
  )
})
