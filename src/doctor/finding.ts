import type { readRefusals } from '../operations/metrics.js'

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** `3d 4h`, `12m`, `0s`: the two largest units. */
export function durationText(ms: number): string {
  const first = UNITS.findIndex(([, size]) => ms >= size)
  if (first === -1) return '0s'
  let left = ms
  const parts = UNITS.slice(first, first + 2).map(([name, size]) => {
    const count = Math.floor(left / size)
    left -= count * size
    return [count, name] as const
  })
  return parts.flatMap(([count, name]) => (count === 0 ? [] : [`${count}${name}`])).join(' ')
}

/** `1.5 GB`, in powers of 1024. */
export function bytesText(bytes: number): string {
  const names = ['B', 'kB', 'MB', 'GB', 'TB']
  const power = bytes < 1 ? 0 : Math.min(names.length - 1, Math.floor(Math.log2(bytes) / 10))
  const amount = bytes / 1024 ** power
  return `${amount < 10 && power > 0 ? amount.toFixed(1) : Math.round(amount)} ${names[power]}`
}

/** `1 event`, `2 events`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

export function instantText(at: number): string {
  return new Date(at).toISOString()
}

/** What one check found. */
export interface Finding {
  /** `fail`: something is wrong now. `warn`: it works, but somebody should look. */
  readonly level: 'ok' | 'warn' | 'fail'
  /** The subject, in a word or two. */
  readonly what: string
  readonly detail: string
  /** What to do about it; null: nothing. */
  readonly todo: string | null
}

export function ok(what: string, detail: string): Finding {
  return { level: 'ok', what, detail, todo: null }
}

export function warn(what: string, detail: string, todo: string | null): Finding {
  return { level: 'warn', what, detail, todo }
}

export function fail(what: string, detail: string, todo: string): Finding {
  return { level: 'fail', what, detail, todo }
}

/** What only the running daemon knows: it counts since its start, and stores none of it. */
export type DaemonFacts = Awaited<ReturnType<typeof readRefusals>>
