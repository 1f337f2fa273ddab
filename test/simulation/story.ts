/* A story: what happens in a world, and when. It follows from a seed, and plays again with some of its steps alone. */

import { type Chance, chanceOf, mixed } from './machine/chance.js'

export const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS

/** By how often each kind of step happens. */
const WEIGHTS = {
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
export type Kind = keyof typeof WEIGHTS | 'quiet'

export interface Step {
  /** Its place in the whole story. */
  readonly number: number
  /** Milliseconds since the beginning. */
  readonly at: number
  readonly kind: Kind
  /** What it draws from. */
  readonly seed: number
}

/** Steps of one moment begin together, and so many come at a time at most. */
const TOGETHER_AT_MOST = 5
/** In a world where much happens. */
const MOMENTS_A_DAY = 3
/** Worlds of so few days are all like that. */
const SHORT_DAYS = 10
/** In a longer one where little does, in all. */
const FEW_MOMENTS = 6
/** The higher, the fewer worlds are busy. Some bugs need much to happen, and others that nothing does for weeks. */
const RARELY_BUSY = 16
/** In so many worlds each kind of step happens at all, but acts in all: one kind may heal, or hide, what another breaks. */
const HAPPENS_SHARE = 0.85
/** Most moments follow the one before them while what that one began still goes on. */
const SOON_SHARE = 0.65
export const SOON_MS = 180_000
/** All is quiet after so many days at least, and at most. */
const [QUIET_SOON, QUIET_LATE] = [10, 50]

export function storyOf(seed: number, days: number, kinds: readonly Kind[] | null = null): readonly Step[] {
  const chance = chanceOf(mixed(seed, 2))
  const names = (Object.keys(WEIGHTS) as (keyof typeof WEIGHTS)[]).filter(
    (one) => kinds?.includes(one) ?? (one === 'act' || chance.is(HAPPENS_SHARE)),
  )
  const most = MOMENTS_A_DAY * days
  const few = days > SHORT_DAYS ? FEW_MOMENTS : most
  const moments = Math.max(1, few + (most - few) * chance.draw() ** RARELY_BUSY)
  const steps: Step[] = []
  const add = (at: number, kind: Kind): void => {
    const number = steps.length + 1
    steps.push({ number, at: Math.floor(at), kind, seed: mixed(seed, 1_000 + number) })
  }
  const quietDays = (): number => QUIET_SOON + chance.below(QUIET_LATE - QUIET_SOON)
  let quietAt = quietDays() * DAY_MS
  for (let at = 0; ; ) {
    at += chance.is(SOON_SHARE)
      ? chance.draw() ** 3 * SOON_MS
      : -Math.log(1 - chance.draw()) * ((days * DAY_MS) / moments / (1 - SOON_SHARE))
    if (at > quietAt || at > days * DAY_MS) {
      at = Math.min(quietAt, days * DAY_MS)
      add(at, 'quiet')
      if (at >= days * DAY_MS) return steps
      quietAt += quietDays() * DAY_MS
      // All is quiet for as long as a delivery may be held back.
      at += 2 * DAY_MS
      continue
    }
    for (let count = 1 + chance.below(TOGETHER_AT_MOST); count > 0; count -= 1) add(at, kindOf(chance, names))
  }
}

function kindOf(chance: Chance, names: readonly (keyof typeof WEIGHTS)[]): Kind {
  let left = chance.below(names.reduce((sum, name) => sum + WEIGHTS[name], 0))
  for (const name of names) {
    left -= WEIGHTS[name]
    if (left < 0) return name
  }
  return 'act'
}
