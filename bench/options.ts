import { parseArgs } from 'node:util'
import type { RoundOptions } from './rounds.js'

export const ROUND_DEFAULTS = { rounds: 3, requests: 20_000, 'warm-up': 3_000, connections: 64 }

export interface Options<Name extends string> {
  /** A folder on a disk; left out, the system's for temporary files. */
  readonly folder: string | undefined
  /** The folder of another build of the program, to compare with. */
  readonly against: string | undefined
  /** Of a PostgreSQL that runs already. */
  readonly url: string | undefined
  /** The folder of an installed `@supabase/stripe-sync-engine`. */
  readonly stripeSync: string | undefined
  /** The one part of a benchmark to run; left out, all of them. */
  readonly part: string | undefined
  readonly numbers: Readonly<Record<Name, number>>
}

const TEXTS = ['folder', 'against', 'url', 'stripe-sync', 'part'] as const

/** Reads these texts, and whole numbers over zero by their names. Throws at anything else. */
export function readOptions<Name extends string>(defaults: Readonly<Record<Name, number>>): Options<Name> {
  const names = Object.keys(defaults) as Name[]
  const flags = Object.fromEntries([...TEXTS, ...names].map((name) => [name, { type: 'string' as const }]))
  const { values } = parseArgs({ options: flags })
  const numbers = names.map((name) => [name, wholeNumber(name, values[name], defaults[name])])
  const [folder, against, url, stripeSync, part] = TEXTS.map((name) => values[name] as string | undefined)
  return {
    folder,
    against,
    url,
    stripeSync,
    part,
    numbers: Object.fromEntries(numbers) as Record<Name, number>,
  }
}

export function roundOptions(numbers: Readonly<Record<keyof typeof ROUND_DEFAULTS, number>>): RoundOptions {
  const { 'warm-up': warmUp, rounds, requests, connections } = numbers
  return { rounds, warmUp, requests, connections }
}

function wholeNumber(name: string, value: unknown, otherwise: number): number {
  const number = value === undefined ? otherwise : Number(value)
  if (!Number.isSafeInteger(number) || number < 1) throw new Error(`--${name} is a whole number over zero.`)
  return number
}
