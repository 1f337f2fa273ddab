import { z } from 'zod'
import { LOG_LEVELS } from './types.js'

export const DEFAULT_HOST = '127.0.0.1'
export const DEFAULT_PORT = 4680

export const hostSchema = z.string().trim().min(1)
export const portSchema = z.int().min(0).max(65_535)
export const logLevelSchema = z.enum(LOG_LEVELS)

export const listenerSchema = z.strictObject({ host: hostSchema.default(DEFAULT_HOST), port: portSchema })

export const serverSchema = z.strictObject({
  host: hostSchema.default(DEFAULT_HOST),
  port: portSchema.default(DEFAULT_PORT),
  trustProxy: z.int().min(0).max(100).default(0).describe('How many proxies stand in front of the daemon.'),
  webhooks: listenerSchema.optional().describe('A listener for webhooks alone.'),
  metrics: listenerSchema.optional().describe('A listener for metrics alone.'),
})

/** Says why a database address can't be used, or null. The address itself may hold a password. */
export function databaseUrlProblem(url: string): string | null {
  if (/^postgres(ql)?:/i.test(url)) return 'PostgreSQL is not supported by this version: use sqlite:<path>'
  if (!url.startsWith('sqlite:')) return 'must be sqlite:<path>, such as sqlite:./data/latchkey.db'
  const file = sqlitePath(url)
  if (file === '' || file.startsWith(':')) return 'must name a file, since acknowledged events have to last'
  return null
}

/** The path in a `sqlite:` address, as written; `sqlite:///srv/latchkey.db` is `/srv/latchkey.db`. */
export function sqlitePath(url: string): string {
  return url.replace(/^sqlite:(\/\/)?/, '')
}

export const databaseUrlSchema = z.string().superRefine((url, context) => {
  const problem = databaseUrlProblem(url)
  if (problem !== null) context.addIssue(problem)
})

export const databaseSchema = z.strictObject({
  url: databaseUrlSchema.default('sqlite:./data/latchkey.db'),
})

export const logSchema = z.strictObject({ level: logLevelSchema.default('info') })
