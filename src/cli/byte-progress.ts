import type { CliContext } from './context.js'

const MEGABYTE = 1_000_000

/** Shows how far a copy is while it is made: one line that overwrites itself, and nothing where no person looks. */
export async function withByteProgress<T>(
  { isTerminal, err }: CliContext,
  copy: (show: (copied: number, total: number) => void) => Promise<T>,
): Promise<T> {
  if (!isTerminal) return copy(() => {})
  try {
    return await copy((copied, total) => err(`\r${megabytes(copied)} of ${megabytes(total)}`))
  } finally {
    err('\r\u001b[K')
  }
}

/** `12.3 MB`. */
export function megabytes(bytes: number): string {
  return `${(bytes / MEGABYTE).toFixed(1)} MB`
}
