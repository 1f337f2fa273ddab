import { setTimeout as wait } from 'node:timers/promises'
import { type ErrorCode, isLatchkeyError, LatchkeyError } from '../errors.js'
import type { CliContext } from './context.js'

/** One line that overwrites itself; nothing if standard error is not a terminal. */
export interface Progress {
  /** @param share how much is done, from 0 to 1; null: unknown */
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

export async function withProgress<T>(context: CliContext, work: (progress: Progress) => Promise<T>) {
  const progress = createProgress(context)
  try {
    return await work(progress)
  } finally {
    progress.clear()
  }
}

/** Polls soon at first, to notice the end of a short job at once, and less often later. */
const FIRST_WAIT_MS = 10
const LONGEST_WAIT_MS = 200

export interface Followed<Status> {
  readonly ask: () => Promise<Status>
  readonly progressOf: (status: Status) => {
    readonly done: number
    /** Null: unknown. */
    readonly total: number | null
    readonly text?: string
  }
  /** What it counts; by default events. */
  readonly unit?: string
  /** The name of the job, and the error code if it fails. */
  readonly name: string
  readonly code: ErrorCode
}

/**
 * Polls a long job of the daemon until it has ended, and shows its progress.
 * @throws {LatchkeyError} `code` if the daemon ends first
 */
export function follow<Status extends { readonly state: string }>(
  started: Status,
  { ask, progressOf, name, code, unit = 'events' }: Followed<Status>,
  context: CliContext,
): Promise<Status> {
  return withProgress(context, async (progress) => {
    let status = started
    try {
      for (let ms = FIRST_WAIT_MS; status.state === 'running'; ms = Math.min(2 * ms, LONGEST_WAIT_MS)) {
        const { done, total, text = '' } = progressOf(status)
        const all = Math.max(done, total ?? 0)
        const counted = total === null ? done : `${done} of ${all}`
        progress.show(total === null || all === 0 ? null : done / all, `${name}: ${counted} ${unit}${text}`)
        await wait(ms)
        status = await ask()
      }
      return status
    } catch (error) {
      if (!isLatchkeyError(error, 'daemon_unreachable')) throw error
      throw new LatchkeyError(code, `the daemon has stopped: run the ${name} again to continue it`)
    }
  })
}
