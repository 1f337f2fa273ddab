/* A story: what happens in a world, and when. It follows from a seed, and plays again with some of its steps alone. */

import { type Chance, chanceOf, mixed } from './machine/chance.js'
import { numberIn, UsageError } from './options.js'

export const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS

/** By how often each kind of step happens. */
export const ON_SQLITE = {
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
export const ON_POSTGRES = {
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
  between(): number
  /** How long it takes until all is quiet. */
  untilQuiet(): number
  /** From when all is quiet to the next moment. */
  readonly restMs: number
}

/** Steps of one moment begin together, and so many come at a time at most. */
const TOGETHER_AT_MOST = 5
/** In so many worlds each kind of step happens at all, but acts in all: one kind may heal, or hide, what another breaks. */
const HAPPENS_SHARE = 0.85
/** In a world where much happens. */
const MOMENTS_A_DAY = 3
/** Worlds of so few days are all like that. */
const SHORT_DAYS = 10
/** In a longer one where little does, in all. */
const FEW_MOMENTS = 6
/** The higher, the fewer worlds are busy. Some bugs need much to happen, and others that nothing does for weeks. */
const RARELY_BUSY = 16
/** Most moments follow the one before them while what that one began still goes on. */
const SOON_SHARE = 0.65
export const SOON_MS = 180_000
/** All is quiet after so many days at least, and at most. */
const [QUIET_SOON, QUIET_LATE] = [10, 50]

const exponential = (chance: Chance, meanMs: number): number => -Math.log(1 - chance.draw()) * meanMs

function virtualPace(days: number, chance: Chance): Pace {
  const most = MOMENTS_A_DAY * days
  const few = days > SHORT_DAYS ? FEW_MOMENTS : most
  const moments = Math.max(1, few + (most - few) * chance.draw() ** RARELY_BUSY)
  const usualMs = (days * DAY_MS) / moments / (1 - SOON_SHARE)
  return {
    weights: ON_SQLITE,
    between: () => (chance.is(SOON_SHARE) ? chance.draw() ** 3 * SOON_MS : exponential(chance, usualMs)),
    untilQuiet: () => (QUIET_SOON + chance.below(QUIET_LATE - QUIET_SOON)) * DAY_MS,
    // All is quiet for as long as a delivery may be held back.
    restMs: 2 * DAY_MS,
  }
}

/** Much goes on between two moments: a daemon starts within a second. */
const REAL_BETWEEN_MS = 1_200

const realPace = (chance: Chance): Pace => ({
  weights: ON_POSTGRES,
  between: () => exponential(chance, REAL_BETWEEN_MS),
  untilQuiet: () => Number.POSITIVE_INFINITY,
  restMs: 0,
})

/** What a story draws from. */
const chanceFor = (seed: number): Chance => chanceOf(mixed(seed, 2))

/** @param kinds null: some, drawn from the seed */
export function storyOf(seed: number, days: number, kinds: readonly Kind[] | null = null): readonly Step[] {
  const chance = chanceFor(seed)
  return stepsOf(seed, days * DAY_MS, virtualPace(days, chance), chance, kinds)
}

/** Of a world in real time. */
export function realStoryOf(seed: number, seconds: number, kinds: readonly Kind[] | null): readonly Step[] {
  const chance = chanceFor(seed)
  return stepsOf(seed, seconds * 1_000, realPace(chance), chance, kinds)
}

function stepsOf(
  seed: number,
  lengthMs: number,
  pace: Pace,
  chance: Chance,
  kinds: readonly Kind[] | null,
): readonly Step[] {
  const weights = (Object.entries(pace.weights) as [Kind, number][]).filter(
    ([kind]) => kinds?.includes(kind) ?? (kind === 'act' || chance.is(HAPPENS_SHARE)),
  )
  const steps: Step[] = []
  const add = (at: number, kind: Kind): void => {
    const number = steps.length + 1
    steps.push({ number, at: Math.floor(at), kind, seed: mixed(seed, 1_000 + number) })
  }
  let quietAt = pace.untilQuiet()
  for (let at = 0; ; ) {
    at += pace.between()
    if (at > quietAt || at > lengthMs) {
      at = Math.min(quietAt, lengthMs)
      add(at, 'quiet')
      if (at >= lengthMs) return steps
      quietAt += pace.untilQuiet()
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

/** The kinds of steps that the command line asks for, between commas; null: it asks for none. */
export function kindsIn(text: string | undefined, weights: Pace['weights']): readonly Kind[] | null {
  const known = Object.keys(weights)
  const kinds = text?.split(',').map((kind) => kind.trim()) ?? null
  const strange = kinds?.find((kind) => !known.includes(kind))
  if (strange === undefined) return kinds as readonly Kind[] | null
  throw new UsageError(`--kinds has "${strange}", which is none of ${known.join(', ')}`)
}

/** The steps of a story that the command line asks for by their numbers, between commas. */
export function stepsIn(story: readonly Step[], text: string | undefined): readonly Step[] {
  if (text === undefined) return story
  const steps = text.split(',').map((number) => story[numberIn('only', number) - 1])
  if (steps.includes(undefined))
    throw new UsageError(`--only asks for a step above ${story.length}, the last of this story`)
  return story.filter((step) => steps.includes(step))
}
