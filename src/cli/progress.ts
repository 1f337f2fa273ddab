import { setTimeout as wait } from 'node:timers/promises'
import { type ErrorCode, isLatchkeyError, LatchkeyError } from '../errors.js'
import type { CliContext } from './context.js'

/** One line that overwrites itself; nothing where no person looks. */
export interface Progress {
  /** @param share how much is done, from 0 to 1; null: nobody knows */
  show(share: number | null, text: string): void
  clear(): void
}

const BAR_WIDTH = 24

export function createProgress({ isTerminal, err }: Pick<CliContext, 'isTerminal' | 'err'>): Progress {
  if (!isTerminal) return { show() {}, clear() {} }
  let shown = 0
  return {
    show(share, text) {
      const line = share === null ? text : `${barOf(share)}  ${text}`
      err(`\r${line.padEnd(shown)}`)
      shown = line.length
    },
    clear: () => err('\r\u001b[K'),
  }
}

/** `████████░░░░░░░░░░░░░░░░  33 %`. */
function barOf(share: number): string {
  const done = Math.min(1, Math.max(0, share))
  const full = Math.floor(done * BAR_WIDTH)
  return `${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)} ${String(Math.floor(done * 100)).padStart(3)} %`
}

/** Shows how far some work is while it is done. */
export async function withProgress<T>(
  context: CliContext,
  work: (progress: Progress) => Promise<T>,
): Promise<T> {
  const progress = createProgress(context)
  try {
    return await work(progress)
  } finally {
    progress.clear()
  }
}

/** A short job is seen to have ended at once, and a long one does not ask for more than it must. */
const FIRST_WAIT_MS = 10
const LONGEST_WAIT_MS = 200

export interface Followed<Status> {
  /** Asks how far it is. */
  readonly ask: () => Promise<Status>
  readonly progressOf: (status: Status) => {
    readonly done: number
    readonly total: number
    readonly text?: string
  }
  /** What it is, and the code of its failure. */
  readonly name: string
  readonly code: ErrorCode
}

/**
 * Asks how far a long job of the daemon is until it has ended, and shows it.
 * @throws {LatchkeyError} `code` where the daemon ends before it
 */
export function follow<Status extends { readonly state: string }>(
  started: Status,
  { ask, progressOf, name, code }: Followed<Status>,
  context: CliContext,
): Promise<Status> {
  return withProgress(context, async (progress) => {
    let status = started
    try {
      for (let ms = FIRST_WAIT_MS; status.state === 'running'; ms = Math.min(2 * ms, LONGEST_WAIT_MS)) {
        const { done, total, text = '' } = progressOf(status)
        const all = Math.max(done, total)
        progress.show(all === 0 ? null : done / all, `${name}: ${done} of ${all} events${text}`)
        await wait(ms)
        status = await ask()
      }
      return status
    } catch (error) {
      if (!isLatchkeyError(error, 'daemon_unreachable')) throw error
      throw new LatchkeyError(code, `the daemon has stopped: run it again, and the ${name} goes on`)
    }
  })
}
