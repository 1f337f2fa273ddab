import type { z } from 'zod'
import type { Issue } from '../errors.js'
import { describeIssue, toIssues } from './issues.js'
import { databaseUrlSchema, hostSchema, logLevelSchema, portSchema } from './server-schema.js'
import type { LogLevel } from './types.js'

/** What the environment puts in place of the file's values; null leaves them. */
export interface Overrides {
  readonly host: string | null
  readonly port: number | null
  readonly databaseUrl: string | null
  readonly logLevel: LogLevel | null
}

/** Reads the `LATCHKEY_*` overrides. An empty variable counts as not set. */
export function readOverrides(env: Readonly<Record<string, string | undefined>>): {
  readonly overrides: Overrides
  readonly issues: readonly Issue[]
} {
  const issues: Issue[] = []
  const read = <T>(
    name: string,
    schema: z.ZodType<T>,
    parse: (text: string) => unknown = String,
  ): T | null => {
    const text = env[name]
    if (text === undefined || text === '') return null
    const result = schema.safeParse(parse(text), { error: describeIssue })
    if (result.success) return result.data
    issues.push(...toIssues(result.error).map(({ message }) => ({ path: name, message })))
    return null
  }
  const overrides = {
    host: read('LATCHKEY_HOST', hostSchema),
    port: read('LATCHKEY_PORT', portSchema, (text) => (/^[0-9]+$/.test(text) ? Number(text) : text)),
    databaseUrl: read('LATCHKEY_DATABASE_URL', databaseUrlSchema),
    logLevel: read('LATCHKEY_LOG_LEVEL', logLevelSchema),
  }
  return { overrides, issues }
}
