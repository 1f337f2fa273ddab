import { setTimeout as wait } from 'node:timers/promises'
import { type ErrorCode, isLatchkeyError, LatchkeyError } from '../errors.js'
import type { CliContext } from './context.js'

/** One line that overwrites itself; nothing where no person looks. */
export interface Progress {
  show(text: string): void
  clear(): void
}

export function createProgress({ isTerminal, err }: CliContext): Progress {
  if (!isTerminal) return { show() {}, clear() {} }
  let shown = 0
  return {
    show(text) {
      err(`\r${text.padEnd(shown)}`)
      shown = text.length
    },
    clear: () => err('\r\u001b[K'),
  }
}

/** A short job is seen to have ended at once, and a long one does not ask for more than it must. */
const FIRST_WAIT_MS = 10
const LONGEST_WAIT_MS = 200

/** A long job of the daemon's, as its answers tell it. */
export interface Job {
  readonly state: string
}

export interface Followed<Status extends Job> {
  /** Asks how it stands. */
  readonly ask: () => Promise<Status>
  readonly textOf: (status: Status) => string
  /** What it is, and the code of its failure. */
  readonly name: string
  readonly code: ErrorCode
}

/**
 * Asks how a job stands until it has ended, and shows it.
 * @throws {LatchkeyError} `code` where the daemon ends before it
 */
export async function follow<Status extends Job>(
  started: Status,
  { ask, textOf, name, code }: Followed<Status>,
  context: CliContext,
): Promise<Status> {
  const progress = createProgress(context)
  let status = started
  try {
    for (let ms = FIRST_WAIT_MS; status.state === 'running'; ms = Math.min(2 * ms, LONGEST_WAIT_MS)) {
      progress.show(textOf(status))
      await wait(ms)
      status = await ask()
    }
    return status
  } catch (error) {
    if (!isLatchkeyError(error, 'daemon_unreachable')) throw error
    throw new LatchkeyError(code, `the daemon has stopped: run it again, and the ${name} goes on`)
  } finally {
    progress.clear()
  }
}
