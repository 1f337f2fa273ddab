import type { CheckFinding } from './platform.js'
import { ActionRequiredError, RetryableError } from './platform-errors.js'

/** What a check found that the platform did not let be made. A bug is none of a check's findings: it is thrown. */
export function failedCheck(about: string, error: unknown): CheckFinding {
  if (error instanceof RetryableError) {
    return { about, isFine: false, isUnknown: true, message: error.message }
  }
  if (error instanceof ActionRequiredError) return { about, isFine: false, message: error.message }
  throw error
}
