import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Difference } from '../../src/backfill/reporter.js'
import type { Policy } from '../../src/entitlements/policy.js'
import type { NormalizedEvent } from '../../src/provider/event.js'
import { plainSources } from '../entitlements/plain/ask.js'
import { plainEntitlements } from '../entitlements/plain/entitlements.js'
import { EXAMPLE_POLICY, policies } from '../entitlements/policies.js'
import { backfill } from './records.js'
import { type Chance, chanceOf, type Life, liveThrough } from './service.js'

/** `LIVES=0-5000` tries these seeds, and prints what it counted. */
const [FROM = 0, TO = 300] = (process.env.LIVES ?? '').split('-').filter(Boolean).map(Number)

const MINUTE = 60_000

/** What the customer may use, by the plain reading of the rules. */
function accessBy(events: readonly NormalizedEvent[], now: number): string {
  return plainEntitlements(plainSources(events, EXAMPLE_POLICY), now)
    .filter(({ active }) => active)
    .map(({ productId }) => productId)
    .join(' ')
}

function shuffled<One>(all: readonly One[], chance: Chance): readonly One[] {
  return all
    .map((one) => [chance.next(), one] as const)
    .sort(([a], [b]) => a - b)
    .map(([, one]) => one)
}

function fillBack(
  { payments, subscriptions, now }: Life,
  stored: readonly NormalizedEvent[],
  policy: Policy = EXAMPLE_POLICY,
) {
  const records = [
    ...payments.map((payment) => ({ kind: 'payment', ...payment }) as const),
    ...subscriptions.map((json) => ({ kind: 'subscription', json }) as const),
  ]
  const { events, differences } = backfill(records, stored, { at: now, policy })
  return { reported: events.map(({ event }) => event), differences }
}

/** Differences with which access may be wrong: see each code's text. */
const MAY_BE_WRONG: readonly Difference['code'][] = [
  'term_end_unknown',
  'cycle_payment_unclear',
  'plan_charge_unclear',
  'chargeback_date_unknown',
  'cancellation_end_unknown',
]

/** What a life, of which some webhooks were lost, comes to. */
function outcomeOf(seed: number) {
  const chance = chanceOf(seed)
  const life = liveThrough(chance)
  const rate = 0.05 + 0.25 * chance.next()
  const lost = new Set(life.webhooks.filter(() => chance.hits(rate)).map(({ event }) => event))
  const all = life.webhooks.map(({ event }) => event)
  const stored = shuffled(
    all.filter((event) => !lost.has(event)),
    chance,
  )
  const now = life.now + MINUTE
  const want = accessBy(life.truth, now)
  const before = accessBy(stored, now)
  const { reported, differences } = fillBack(life, stored)
  const filled = shuffled([...stored, ...reported], chance)
  const again = fillBack(life, filled)
  const after = accessBy(filled, now)
  const someLate = [...lost].filter(() => chance.hits(0.5))
  const late = [someLate, [...lost]].map((more) => accessBy(shuffled([...filled, ...more], chance), now))
  return {
    ...{ seed, reported: reported.length, repeated: again.reported.map(({ type }) => type) },
    wasWrong: before !== want,
    isWrong: after !== want,
    isHarmed: before === want && after !== want,
    isChangedLate: late.some((access) => access !== after),
    isListed: differences.some(({ code }) => MAY_BE_WRONG.includes(code)),
    dependsOnOrder: accessBy([...stored, ...reported], now) !== after,
  }
}

const outcomes = Array.from({ length: TO - FROM }, (_, i) => outcomeOf(FROM + i))
const seedsOf = (matches: (one: (typeof outcomes)[number]) => boolean) =>
  outcomes.filter(matches).map(({ seed }) => seed)

it('a backfill stores nothing the second time, and the order of arrival does not matter', () => {
  expect(seedsOf(({ repeated }) => repeated.length > 0)).toEqual([])
  expect(seedsOf(({ dependsOnOrder }) => dependsOnOrder)).toEqual([])
})

it('a backfill stores nothing the second time whatever the policy', () => {
  const drawn = fc.sample(policies, { seed: 1, numRuns: Math.ceil((TO - FROM) / 4) })
  const repeating = drawn.flatMap((policy, i) => {
    const chance = chanceOf(FROM + i)
    const life = liveThrough(chance)
    const stored = life.webhooks.filter(() => chance.hits(0.8)).map(({ event }) => event)
    const { reported } = fillBack(life, stored, policy)
    return fillBack(life, [...stored, ...reported], policy).reported.length === 0 ? [] : FROM + i
  })
  expect(repeating).toEqual([])
})

it('access is what the service says after a backfill, or what may be wrong is listed', () => {
  const wrongBefore = seedsOf(({ wasWrong }) => wasWrong)
  expect(wrongBefore.length).toBeGreaterThan((TO - FROM) / 20)
  expect(seedsOf(({ isWrong, isListed }) => isWrong && !isListed)).toEqual([])
  expect(seedsOf(({ isHarmed, isListed }) => isHarmed && !isListed)).toEqual([])
})

it('a webhook that comes late, of what was reported, changes no access, or what may be wrong is listed', () => {
  expect(seedsOf(({ isChangedLate, isListed }) => isChangedLate && !isListed)).toEqual([])
})

it('only few are wrong', () => {
  const counts = {
    lives: outcomes.length,
    reported: outcomes.reduce((sum, { reported }) => sum + reported, 0),
    wasWrong: seedsOf(({ wasWrong }) => wasWrong).length,
    isWrong: seedsOf(({ isWrong }) => isWrong).length,
    isHarmed: seedsOf(({ isHarmed }) => isHarmed).length,
    isChangedLate: seedsOf(({ isChangedLate }) => isChangedLate).length,
  }
  if (process.env.LIVES) process.stdout.write(`${JSON.stringify(counts)}\n`)
  expect(counts.isWrong).toBeLessThan(counts.wasWrong / 20)
})
