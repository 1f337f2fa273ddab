/** `fail`: something is wrong now. `warn`: it works, and somebody should look. */
export type Level = 'ok' | 'warn' | 'fail'

/** What one check found. */
export interface Finding {
  readonly level: Level
  /** What was looked at, in a word or two. */
  readonly what: string
  readonly detail: string
  /** What to do about it; null where there is nothing to do. */
  readonly todo: string | null
}

/** Enough for most names of endpoints. */
const WHAT_WIDTH = 18

const LABELS: Readonly<Record<Level, string>> = { ok: 'ok  ', warn: 'warn', fail: 'FAIL' }

export function ok(what: string, detail: string): Finding {
  return { level: 'ok', what, detail, todo: null }
}

export function warn(what: string, detail: string, todo: string | null): Finding {
  return { level: 'warn', what, detail, todo }
}

export function fail(what: string, detail: string, todo: string): Finding {
  return { level: 'fail', what, detail, todo }
}

/** `FAIL  schema              written by a newer Latchkey: install that one`. */
export function findingLine({ level, what, detail, todo }: Finding): string {
  // A sentence of a platform's goes on with what to do.
  const told = todo === null ? detail : `${detail.replace(/\.$/, '')}: ${todo}`
  return `${LABELS[level]}  ${what.padEnd(WHAT_WIDTH)}  ${told}\n`
}
