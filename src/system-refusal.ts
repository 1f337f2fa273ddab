import { getSystemErrorMap } from 'node:util'

/** Whether the system refused it: a file, a folder or a connection. */
export function isSystemRefusal(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error
}

/**
 * The system's reason, such as `permission denied (EACCES)`, without the call and the path, which may be internal. For
 * any other error its message.
 */
export function refusalText(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { errno, code } = error as NodeJS.ErrnoException
  const known = errno === undefined ? undefined : getSystemErrorMap().get(errno)
  return known === undefined ? error.message : `${known[1]} (${code})`
}

/** What to do if `isOfAnotherUser` holds. */
export const AS_ITS_USER = 'run this as the user that owns it'

/** Whether another user may be allowed to do it. */
export function isOfAnotherUser(error: unknown): boolean {
  return isSystemRefusal(error) && (error.code === 'EACCES' || error.code === 'EPERM')
}
