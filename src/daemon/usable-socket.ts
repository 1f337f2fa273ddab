import type { Logger } from 'pino'

/** The least that any supported system takes, less its final NUL. */
const MAX_SOCKET_PATH_BYTES = 103

/** A socket's path has few bytes on every system; a longer one would stop the start for what few need. */
export function usableSocket(file: string, log: Logger): string | null {
  if (Buffer.byteLength(file) <= MAX_SOCKET_PATH_BYTES) return file
  log.warn({ file }, 'the path is too long for a local socket: commands need --url')
  return null
}
