/* A story: what happens in a world, and when. It follows from a seed, and plays again with some of its steps alone. */

import { type Chance, chanceOf, mixed } from './machine/chance.js'

export const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS

/** By how often each kind of step happens. */
const ON_SQLITE = {
  act: 50,
  operate: 16,
  community: 14,
  ask: 8,
  audit: 5,
  live: 4,
  receiver: 4,
  app: 2,
  faults: 6,
  kill: 5,
  'kill at a statement': 6,
  restart: 4,
  'disk full': 2,
  reload: 3,
  'clock set': 2,
} as const
/** There, two daemons are in trouble more often, and get much at once: fewer steps have to do. */
const ON_POSTGRES = {
  act: 50,
  operate: 20,
  community: 14,
  ask: 1,
  audit: 8,
  live: 5,
  receiver: 4,
  app: 4,
  faults: 8,
  'send again': 12,
  reload: 3,
  kill: 5,
  restart: 3,
  'stand still': 5,
  'cut off': 7,
  'held up': 3,
  'far away': 8,
} as const

/** What happens to a daemon itself. */
export type Fault =
  | 'kill'
  | 'kill at a statement'
  | 'restart'
  | 'disk full'
  | 'clock set'
  | 'stand still'
  | 'cut off'
  | 'held up'
  | 'far away'
export type Kind = keyof typeof ON_SQLITE | keyof typeof ON_POSTGRES | 'quiet'

export interface Step {
  /** Its place in the whole story. */
  readonly number: number
  /** Milliseconds since the beginning. */
  readonly at: number
  readonly kind: Kind
  /** What it draws from. */
  readonly seed: number
}

/** How a story goes on. */
interface Pace {
  readonly weights: Readonly<Partial<Record<Kind, number>>>
  /** How long it takes from one moment to the next. */
  between(chance: Chance): number
  readonly quietEveryMs: number
  /** From when all is quiet to the next moment. */
  readonly restMs: number
}

/** Steps of one moment begin together, and so many come at a time at most. */
const TOGETHER_AT_MOST = 5
/** On average. */
const MOMENTS_A_DAY = 3
/** Most moments follow the one before them while what that one began still goes on. */
const SOON_SHARE = 0.65
export const SOON_MS = 180_000
const QUIET_EVERY_DAYS = 10

const exponential = (chance: Chance, meanMs: number): number => -Math.log(1 - chance.draw()) * meanMs

const VIRTUAL: Pace = {
  weights: ON_SQLITE,
  between: (chance) =>
    chance.is(SOON_SHARE)
      ? chance.draw() ** 3 * SOON_MS
      : exponential(chance, DAY_MS / MOMENTS_A_DAY / (1 - SOON_SHARE)),
  quietEveryMs: QUIET_EVERY_DAYS * DAY_MS,
  // All is quiet for as long as a delivery may be held back.
  restMs: 2 * DAY_MS,
}

/** Much goes on between two moments: a daemon starts within a second. */
const REAL_BETWEEN_MS = 1_200

const REAL: Pace = {
  weights: ON_POSTGRES,
  between: (chance) => exponential(chance, REAL_BETWEEN_MS),
  quietEveryMs: Number.POSITIVE_INFINITY,
  restMs: 0,
}

/** @param kinds all if null */
export const storyOf = (seed: number, days: number, kinds: readonly Kind[] | null = null): readonly Step[] =>
  stepsOf(seed, days * DAY_MS, VIRTUAL, kinds)

/** Of a world in real time. */
export const realStoryOf = (seed: number, seconds: number, kinds: readonly Kind[] | null): readonly Step[] =>
  stepsOf(seed, seconds * 1_000, REAL, kinds)

function stepsOf(seed: number, lengthMs: number, pace: Pace, kinds: readonly Kind[] | null): readonly Step[] {
  const chance = chanceOf(mixed(seed, 2))
  const weights = (Object.entries(pace.weights) as [Kind, number][]).filter(
    ([kind]) => kinds?.includes(kind) ?? true,
  )
  const steps: Step[] = []
  const add = (at: number, kind: Kind): void => {
    const number = steps.length + 1
    steps.push({ number, at: Math.floor(at), kind, seed: mixed(seed, 1_000 + number) })
  }
  let quietAt = pace.quietEveryMs
  for (let at = 0; ; ) {
    at += pace.between(chance)
    if (at > quietAt || at > lengthMs) {
      at = Math.min(quietAt, lengthMs)
      add(at, 'quiet')
      if (at >= lengthMs) return steps
      quietAt += pace.quietEveryMs
      at += pace.restMs
      continue
    }
    for (let count = 1 + chance.below(TOGETHER_AT_MOST); count > 0; count -= 1)
      add(at, kindOf(chance, weights))
  }
}

function kindOf(chance: Chance, weights: readonly (readonly [Kind, number])[]): Kind {
  let left = chance.below(weights.reduce((sum, [, weight]) => sum + weight, 0))
  for (const [kind, weight] of weights) {
    left -= weight
    if (left < 0) return kind
  }
  return 'act'
}
