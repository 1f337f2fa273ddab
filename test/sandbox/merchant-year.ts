/*
 * A year of a merchant, drawn from a seed: what buyers, banks and operators do to the payments service over its HTTP API,
 * and what a daemon that hears of it answers, beside the truth.
 */

import { expect } from 'vitest'
import { type AskedDaemon, ask } from '../world.js'
import { DAY_MS, type Json, type Service } from './service.js'

type Asked = Pick<Service, 'call' | 'data'>

export interface YearOptions {
  readonly seed: number
  readonly customers: number
  readonly months: number
  /** How many things happen in a week. */
  readonly pace: number
  /** Everyone of whom buys a plan at some time of the year; left out: 0. Things happen to them, too. */
  readonly newcomers?: number
  /** Whether a plan may change within a cycle: the legacy vocabulary has no word for it. */
  readonly swapsPlans: boolean
  /** The share of deliveries that is lost for good; one whole day is lost, too. Left out: none. */
  readonly loses?: number
}

const CARD_AND_CRYPTO = ['CARD', 'CRYPTO']
const PLANS = {
  basic: { priceCents: '900', frequencyInDays: 30, paymentMethods: CARD_AND_CRYPTO },
  pro: { priceCents: '1900', frequencyInDays: 30, paymentMethods: CARD_AND_CRYPTO },
  team: { priceCents: '4900', frequencyInDays: 30, paymentMethods: ['CARD'] },
  yearly: { priceCents: '19000', frequencyInDays: 365, paymentMethods: CARD_AND_CRYPTO },
  coins: { priceCents: '2500', frequencyInDays: 30, paymentMethods: ['CRYPTO'] },
  course: { priceCents: '3000', frequencyInDays: 30, paymentMethods: ['CARD'] },
}
const ONE_TIME = {
  book: { priceCents: '1500', frequencyInDays: null, paymentMethods: CARD_AND_CRYPTO },
  ticket: { priceCents: '700', frequencyInDays: null, paymentMethods: CARD_AND_CRYPTO },
}
export type ProductName = keyof typeof PLANS | keyof typeof ONE_TIME

const CARD_PLANS = ['basic', 'pro', 'team'] as const
const PLAN_NAMES = Object.keys(PLANS) as readonly (keyof typeof PLANS)[]

const CHECKS_AT_ONCE = 1_000
const MONTH_MS = 30.4 * DAY_MS
const WEEKS = 4
const FOUNDERS = 8

/**
 * Between two changes of a plan. No event says which charge paid which change, so the rules take the nearest one within
 * a day: a change without a charge would get that of another one.
 */
const APART_MS = DAY_MS + 60 * 60 * 1000

/** Numbers from 0 to 1, the same for the same seed. */
function drawing(seed: number): () => number {
  let state = (seed * 7_919 + 1) % 2_147_483_647
  return () => {
    state = (state * 48_271 + 11) % 2_147_483_647
    return state / 2_147_483_647
  }
}

/** What is on record at the beginning of a week, and what a merchant remembers. */
export interface Ledger {
  subscriptions: readonly Json[]
  payments: readonly Json[]
  /** Of plan changes. */
  readonly charges: Set<string>
  /** When each subscription changed its plan within a cycle, by its id. */
  readonly swappedAt: Map<string, number>
}

export type Chance = ReturnType<typeof chanceOf>

function chanceOf(seed: number) {
  const draw = drawing(seed)
  return {
    is: (share: number): boolean => draw() < share,
    below: (count: number): number => Math.floor(draw() * count),
    pick: <Item>(items: readonly Item[]): Item | undefined => items[Math.floor(draw() * items.length)],
  }
}

/** Something that happens, or finds nobody to happen to; true: it did. */
type Act = () => Promise<boolean>

/** Everything by name. The service may refuse what does not fit: then nothing happened. */
export function actsOf(
  { call }: Asked,
  { is, below, pick }: Chance,
  products: Readonly<Record<ProductName, string>>,
  ledger: Ledger,
  { customers, swapsPlans }: YearOptions,
): Readonly<Record<string, Act>> {
  const does = async (words: string, body?: object): Promise<Json> => {
    const { status, body: answer } = await call(words, body)
    return status < 300 ? (answer.data ?? {}) : null
  }
  const did = async (words: string, body?: object): Promise<boolean> => (await does(words, body)) !== null
  const pay = (id: string | undefined, how: object = {}) => does(`POST /sandbox/payments/${id}/pay`, how)
  const advance = (by: string) => does('POST /sandbox/clock/advance', { by })
  const customerEmail = () => `customer-${below(customers)}@example.com`
  const buy = (name: ProductName, how: object) =>
    does(`POST /v3/${name in PLANS ? 'subscriptions' : 'payments'}`, {
      productId: products[name],
      customerEmail: customerEmail(),
      externalRef: `ref-${below(1_000)}`,
      ...how,
    })
  const oneOf = (status: string, isMeant: (subscription: Json) => boolean = () => true): Json =>
    pick(ledger.subscriptions.filter((one) => one.status === status && isMeant(one)))
  const isOn =
    (...names: readonly ProductName[]) =>
    ({ productId }: Json) =>
      names.some((name) => products[name] === productId)
  /** By card, the newest first. */
  const paidFor = ({ id }: Json): readonly Json[] =>
    ledger.payments.filter(
      (one) => one.subscriptionId === id && one.status === 'COMPLETED' && one.deposit === null,
    )
  const ofAny = (state: string, which: (paid: readonly Json[]) => Json): string | undefined => {
    const subscription = oneOf(state)
    return subscription && which(paidFor(subscription))?.id
  }
  const isCycle = ({ id }: Json): boolean => !ledger.charges.has(id)
  const refund = (id: string | undefined, body: object = {}) =>
    did(`POST /sandbox/payments/${id}/refund`, body)
  const changePlan = async (subscription: Json, name: ProductName, how: object): Promise<Json> => {
    const changed = await does(`POST /v3/subscriptions/${subscription?.id}/change-plan`, {
      productId: products[name],
      ...how,
    })
    if (changed?.payment) ledger.charges.add(changed.payment.id)
    return changed
  }
  const swap = async (subscription: Json, name: ProductName, how: object): Promise<Json> => {
    const [one, clock] = [
      await does(`GET /v3/subscriptions/${subscription?.id}`),
      await does('GET /sandbox/clock'),
    ]
    const plan = PLAN_NAMES.find((known) => products[known] === one?.productId)
    if (plan === undefined) return null
    const now = Date.parse(clock.now)
    const left = Date.parse(one.currentCycleDueAt) - now
    const isMidCycle = left > APART_MS && left < PLANS[plan].frequencyInDays * DAY_MS - APART_MS
    if (!isMidCycle || now - (ledger.swappedAt.get(one.id) ?? 0) < APART_MS) return null
    const changed = await changePlan(one, name, how)
    if (changed !== null) ledger.swappedAt.set(one.id, now)
    return changed
  }
  const card = (token: string) => ({ card: { tokenizedInstrument: token } })
  const setCard = (customerId: string | undefined, outcome: string) =>
    did(`POST /sandbox/customers/${customerId}/card`, { outcome })
  const renewalOf = ({ id }: Json): Json =>
    ledger.payments.find((one) => one.subscriptionId === id && ['PENDING', 'PARTIAL'].includes(one.status))

  const bought: Readonly<Record<string, Act>> = {
    'a plan by card': async () => (await buy(pick(CARD_PLANS) ?? 'pro', card('tok_good'))) !== null,
    'a year': async () => {
      if (is(0.7)) return (await buy('yearly', card('tok_good'))) !== null
      return (await pay((await buy('yearly', { crypto: {} }))?.payment.id)) !== null
    },
    'a plan by wallet': async () => (await buy('pro', { ...card('tok_good'), method: 'WALLET_B' })) !== null,
    'a plan with 3DS': async () => {
      const created = await buy('team', card('tok_3ds'))
      return (await pay(created?.payment.id, { outcome: is(0.7) ? 'success' : '3ds_failed' })) !== null
    },
    'a plan, declined at first': async () => {
      const created = await buy('basic', {})
      await pay(created?.payment.id, { method: 'CARD', outcome: 'soft_decline' })
      return is(0.8) && (await pay(created?.payment.id, { method: 'CARD' })) !== null
    },
    'a fixed term': async () =>
      (await buy('course', { ...card('tok_good'), totalCycles: 1 + below(4) })) !== null,
    'a crypto plan, exactly': async () => {
      const created = await buy('coins', { crypto: { mode: is(0.3) ? 'AUTOSWAP' : 'DIRECT' } })
      return (await pay(created?.payment.id)) !== null
    },
    'a crypto plan, in two deposits': async () => {
      const created = await buy('basic', { crypto: {} })
      await pay(created?.payment.id, { share: 0.4 })
      return (await pay(created?.payment.id, { share: 0.6 })) !== null
    },
    'a crypto plan, too late': async () => {
      const created = await buy('coins', { crypto: {} })
      await pay(created?.payment.id, { share: 0.5 })
      await advance('2h')
      return (await pay(created?.payment.id)) === null
    },
    'a crypto plan, confirmed slowly': async () => {
      const created = await buy('pro', { crypto: {} })
      return (await pay(created?.payment.id, { confirmations: 1 })) !== null
    },
    'once, by card': async () => (await buy(is(0.5) ? 'book' : 'ticket', card('tok_good'))) !== null,
    'once, by crypto': async () => (await pay((await buy('book', { crypto: {} }))?.id)) !== null,
    'once, authorized': async () => {
      const { id } =
        (await buy('ticket', { card: { capture: 'manual', tokenizedInstrument: 'tok_good' } })) ?? {}
      return did(`POST /sandbox/payments/${id}/${is(0.5) ? 'capture' : 'void'}`)
    },
  }
  const swaps: Readonly<Record<string, Act>> = {
    upgrade: async () => (await swap(oneOf('ACTIVE', isOn('basic')), 'pro', {})) !== null,
    'upgrade without a charge': async () =>
      (await swap(oneOf('ACTIVE', isOn('basic', 'pro', 'coins')), 'team', { proration: 'none' })) !== null,
    'upgrade to a year': async () =>
      (await swap(oneOf('ACTIVE', isOn('pro', 'team')), 'yearly', {})) !== null,
    'upgrade with 3DS': async () => {
      const changed = await swap(oneOf('ACTIVE', isOn('basic', 'pro')), 'team', card('tok_3ds'))
      return (await pay(changed?.payment?.id, { outcome: is(0.7) ? 'success' : '3ds_failed' })) !== null
    },
    'refund of an upgrade': () => refund(pick([...ledger.charges])),
  }
  return {
    ...bought,
    ...(swapsPlans && swaps),
    downgrade: async () =>
      (await changePlan(oneOf('ACTIVE', isOn('pro', 'team')), 'basic', { effective: 'period_end' })) !== null,
    'upgrade at the period’s end': async () =>
      (await changePlan(oneOf('ACTIVE', isOn('basic')), 'team', { effective: 'period_end' })) !== null,
    'change called off': async () => {
      const subscription = oneOf('ACTIVE', isOn('pro'))
      await changePlan(subscription, 'basic', {})
      return did(`POST /v3/subscriptions/${subscription?.id}/cancel-plan-change`)
    },
    'cancel now': () => did(`POST /v3/subscriptions/${oneOf('ACTIVE')?.id}/cancel`),
    'cancel at the period’s end': () =>
      did(`POST /v3/subscriptions/${oneOf('ACTIVE')?.id}/cancel`, { atPeriodEnd: true }),
    'cancel while past due': () => did(`POST /v3/subscriptions/${oneOf('PAST_DUE')?.id}/cancel`),
    'refund of this cycle': () => refund(ofAny('ACTIVE', (paid) => paid.find(isCycle))),
    'refund of an older cycle': () => refund(ofAny('ACTIVE', (paid) => paid.filter(isCycle).slice(1).at(-1))),
    'refund in part': () =>
      refund(
        ofAny('ACTIVE', (paid) => paid[0]),
        { amountInCents: 100 },
      ),
    'refund after the end': () => refund(ofAny('CANCELED', (paid) => paid[0])),
    'refund of a one-time payment': () =>
      refund(pick(ledger.payments.filter((one) => one.subscriptionId === null))?.id),
    dispute: () => did(`POST /sandbox/payments/${ofAny('ACTIVE', (paid) => paid[0])}/chargeback`),
    payout: () => did(`POST /sandbox/payments/${ofAny('ACTIVE', (paid) => paid[0])}/settle`),
    'dunning begins': () =>
      setCard(oneOf('ACTIVE')?.customerId, is(0.5) ? 'soft_decline' : 'technical_failure'),
    'dunning recovers': () => setCard(oneOf('PAST_DUE')?.customerId, 'success'),
    'card stolen': () =>
      is(0.3) ? setCard(oneOf('ACTIVE')?.customerId, 'hard_decline') : Promise.resolve(false),
    'customer deleted': async () => is(0.1) && did(`DELETE /v3/customers/${oneOf('ACTIVE')?.customerId}`),
    'renewals by deposit': async () => {
      const due = ledger.subscriptions.filter(({ status }) => status === 'PAST_DUE').map(renewalOf)
      const paid: Json[] = []
      for (const one of due) {
        if (!one?.deposit || is(0.15)) continue
        if (is(0.3)) await pay(one.id, { share: 0.5 })
        paid.push(await pay(one.id, is(0.3) ? { confirmations: 1 } : {}))
      }
      return paid.some((one) => one !== null)
    },
  }
}

export async function everyItem(
  { data }: Asked,
  path: string,
  filter = 'limit=100',
): Promise<readonly Json[]> {
  const items: Json[] = []
  let cursor = ''
  do {
    const page = await data(`GET ${path}?${filter}${cursor}`)
    items.push(...page.items)
    cursor = page.pagination.nextCursor && `&cursor=${page.pagination.nextCursor}`
  } while (cursor)
  return items
}

/** By name. */
export async function createProducts({ data }: Asked): Promise<Readonly<Record<ProductName, string>>> {
  const products = {} as Record<ProductName, string>
  for (const [name, terms] of Object.entries({ ...PLANS, ...ONE_TIME })) {
    const { id } = await data('POST /v3/products', { name, currency: 'EUR', ...terms })
    products[name as ProductName] = id
  }
  return products
}

/** @returns how often each thing happened */
export async function playYear(
  service: Asked,
  options: YearOptions,
  onMonthEnd: (at: string) => Promise<void> = async () => {},
) {
  const { seed, months, pace, newcomers = 0, loses: drop = 0 } = options
  const { data } = service
  const products = await createProducts(service)
  const chance = chanceOf(seed)
  const ledger: Ledger = { subscriptions: [], payments: [], charges: new Set(), swappedAt: new Map() }
  const byName = actsOf(service, chance, products, ledger, options)
  const acts = Object.entries(byName)
  const happened = new Map<string, number>(acts.map(([name]) => [name, 0]))
  const advance = (by: object) => data('POST /sandbox/clock/advance', by)
  const now = async (): Promise<number> => Date.parse((await data('GET /sandbox/clock')).now)
  const start = await now()
  // Early enough for a second one.
  for (let count = 0; count < FOUNDERS; count += 1) await byName['a year']?.()
  const faults = { duplicate: 0.3, reorder: true, drop }
  let arrived = 0
  for (let week = 1; week <= months * WEEKS; week += 1) {
    await data('POST /sandbox/faults', faults)
    for (; arrived < (newcomers * week) / (months * WEEKS); arrived += 1) {
      await data('POST /v3/subscriptions', {
        productId: products[chance.pick(CARD_PLANS) ?? 'pro'],
        customerEmail: `newcomer-${arrived}@example.com`,
        card: { tokenizedInstrument: 'tok_good' },
      })
    }
    ledger.subscriptions = await everyItem(service, '/v3/subscriptions')
    ledger.payments = await everyItem(service, '/v3/payments')
    for (let count = 0; count < pace; count += 1) {
      const [name = '', act] = chance.pick(acts) ?? []
      if (await act?.()) happened.set(name, (happened.get(name) ?? 0) + 1)
      if (chance.is(0.2)) await advance({ by: `${1 + chance.below(24)}h` })
    }
    if (drop > 0 && week === months * WEEKS - 1) {
      await data('POST /sandbox/faults', { ...faults, drop: 1 })
      await advance({ by: '24h' })
      await data('POST /sandbox/faults', faults)
    }
    const end = start + (week * MONTH_MS) / WEEKS
    if ((await now()) < end) await advance({ to: new Date(end).toISOString() })
    if (week % WEEKS > 0) continue
    // What was shuffled is at most a day late.
    await data('POST /sandbox/faults', { drop })
    await advance({ by: '25h' })
    await onMonthEnd(new Date(await now()).toISOString())
  }
  const years = (await everyItem(service, '/v3/payments')).filter(
    (one) => one.productId === products.yearly && one.status === 'COMPLETED',
  )
  const renewed = [...Map.groupBy(years, (one) => one.subscriptionId).values()].filter(
    (own) => own.length > 1,
  )
  return happened.set('renewal of a year', renewed.length)
}

/** Everyone who has bought anything: the list of customers leaves those out who were deleted. */
async function buyersIn(service: Asked): Promise<readonly string[]> {
  const bought = await everyItem(service, '/v3/payments')
  return [...new Set(bought.flatMap(({ customerId }) => customerId ?? []))].sort()
}

/** One customer's products in two views that differ. */
interface Disagreement {
  readonly at: string
  readonly customerId: string
  readonly daemon: readonly string[]
  readonly truth: readonly string[]
}

type Daemon = Pick<AskedDaemon, 'url'>

/** The products that each customer may use. */
type Access = ReadonlyMap<string, readonly string[]>

function byCustomer(access: readonly Json[]): Access {
  const grouped = Map.groupBy(access, ({ customerId }) => String(customerId))
  return new Map([...grouped].map(([id, own]) => [id, own.map(({ productId }) => String(productId)).sort()]))
}

async function truthAt({ data }: Asked, at: string): Promise<Access> {
  return byCustomer((await data(`GET /sandbox/truth?at=${encodeURIComponent(at)}`)).access)
}

function compared(at: string, truth: Access, given: Access): readonly Disagreement[] {
  return [...new Set([...truth.keys(), ...given.keys()])].flatMap((customerId) => {
    const [own, real] = [given.get(customerId) ?? [], truth.get(customerId) ?? []]
    return own.join() === real.join() ? [] : [{ at, customerId, daemon: own, truth: real }]
  })
}

/** Access as of an instant, of everyone. */
async function accessAt(daemon: Daemon, key: string, buyers: readonly string[], at: string): Promise<Access> {
  const given = new Map<string, readonly string[]>()
  for (const customerId of buyers) {
    const answer = await ask(daemon, `/entitlements/${customerId}?at=${encodeURIComponent(at)}`, key)
    const { entitlements } = (await answer.json()) as Json
    const active = entitlements.filter((one: Json) => one.active)
    given.set(customerId, active.map((one: Json) => String(one.productId)).sort())
  }
  return given
}

/** Access now, which the daemon answers as of the newest event of each source. */
async function accessNow(service: Asked, daemon: Daemon, key: string): Promise<Access> {
  const products = await everyItem(service, '/v3/products')
  const checks = (await buyersIn(service)).flatMap((customerId) =>
    products.map(({ id: productId }) => ({ customerId, productId })),
  )
  const results: Json[] = []
  while (results.length < checks.length) {
    const some = checks.slice(results.length, results.length + CHECKS_AT_ONCE)
    const answer = await fetch(`${daemon.url}/entitlements/check`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ checks: some }),
    })
    const { results: given } = (await answer.json()) as Json
    expect(given).toHaveLength(some.length)
    results.push(...given)
  }
  return byCustomer(results.filter((one) => one.active))
}

/** Who has other access now than by the truth. */
export async function differingNow(service: Asked, daemon: Daemon, key: string) {
  const { now } = await service.data('GET /sandbox/clock')
  return compared(now, await truthAt(service, now), await accessNow(service, daemon, key))
}

/** Plays a year, and compares what the daemon says with the truth, as of each month's end. */
export async function compareYear(
  service: Asked,
  daemon: Daemon,
  key: string,
  {
    isAhead,
    ...options
  }: YearOptions & {
    /** Whether the daemon's clock is behind the year, so that now is the month's end for it, too. */
    readonly isAhead: boolean
  },
) {
  const differing: Disagreement[] = []
  const ends: string[] = []
  const happened = await playYear(service, options, async (at) => {
    ends.push(at)
    if (isAhead)
      differing.push(...compared(at, await truthAt(service, at), await accessNow(service, daemon, key)))
  })
  const buyers = await buyersIn(service)
  let active = 0
  for (const at of ends) {
    const truth = await truthAt(service, at)
    active += [...truth.values()].flat().length
    differing.push(...compared(at, truth, await accessAt(daemon, key, buyers, at)))
  }
  // Neither side may agree by having nothing to say.
  expect(active).toBeGreaterThan(10 * ends.length)
  return { happened, months: ends.length, differing }
}
