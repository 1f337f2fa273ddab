import { getSystemErrorMap } from 'node:util'

/** Whether the system refused it: a file, a folder or a connection. */
export function isSystemRefusal(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error
}

/**
 * What the system said, without the call and the path, which may be of a file that nobody has named:
 * `permission denied (EACCES)`. Of anything else its message.
 */
export function refusalText(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { errno, code } = error as NodeJS.ErrnoException
  const known = errno === undefined ? undefined : getSystemErrorMap().get(errno)
  return known === undefined ? error.message : `${known[1]} (${code})`
}

/** What to do where `isOfAnotherUser` holds. */
export const AS_ITS_USER = 'run this as the user whom it belongs to'

/** Whether another user may do what this one may not. */
export function isOfAnotherUser(error: unknown): boolean {
  return isSystemRefusal(error) && (error.code === 'EACCES' || error.code === 'EPERM')
}
