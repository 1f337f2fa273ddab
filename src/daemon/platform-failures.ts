import { LatchkeyError } from '../errors.js'
import { ActionRequiredError, RetryableError } from '../sync/platform.js'
import type { Guard } from './guards.js'

/** Tells whoever asked for something on a platform why it could not be had. */
export const orPlatformFailure: Guard =
  (ask) =>
  async (...args) => {
    try {
      return await ask(...args)
    } catch (error) {
      if (error instanceof RetryableError) throw new LatchkeyError('platform_unavailable', error.message)
      if (error instanceof ActionRequiredError) throw new LatchkeyError('platform_refused', error.message)
      throw error
    }
  }
