import type { z } from 'zod'
import { LatchkeyError } from '../errors.js'

/**
 * The value of an option by the rule that holds over HTTP too; null where it is left out.
 * @throws {LatchkeyError} `usage`
 */
export function checkedOption(
  name: string,
  rule: z.ZodType<string>,
  text: string | undefined,
): string | null {
  if (text === undefined) return null
  const parsed = rule.safeParse(text)
  if (parsed.success) return parsed.data
  throw new LatchkeyError('usage', `${name} ${parsed.error.issues[0]?.message}`)
}
