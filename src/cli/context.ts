/** What a command knows of the world: given by the entry point, so that a command can be run by a test. */
export interface CliContext {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The current folder, absolute. */
  readonly folder: string
  /** Epoch milliseconds. */
  readonly now: () => number
  /** Whether a person reads standard output. */
  readonly isTerminal: boolean
  /** Writes to standard output: what was asked for, bytes as they are. */
  readonly out: (content: string | Uint8Array) => void
  /** Writes to standard error: what went wrong, and what else a person should know. */
  readonly err: (text: string) => void
}

/** The context of this process. */
export function processContext(): CliContext {
  return {
    env: process.env,
    folder: process.cwd(),
    now: Date.now,
    isTerminal: process.stdout.isTTY === true,
    out: (content) => void process.stdout.write(content),
    err: (text) => void process.stderr.write(text),
  }
}
