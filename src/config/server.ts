import { z } from 'zod'
import { describeIssue, type Problem, problemsIn } from '../handlers/problem.js'
import { durationSchema, withFallback } from './fields.js'
import { formatPath, type Usable } from './problems.js'

export const DEFAULT_HOST = '127.0.0.1'
export const DEFAULT_PORT = 4680

const hostSchema = z.string().trim().min(1)
const portSchema = z.int().min(0).max(65_535)
const logLevelSchema = z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])

/** With port 0 the system chooses one. */
const listenerSchema = z.strictObject({ host: hostSchema.default(DEFAULT_HOST), port: portSchema })

/** If a listener is null, the main one serves webhooks, or metrics, too. */
export const serverSchema = z.strictObject({
  host: hostSchema.default(DEFAULT_HOST),
  port: portSchema.default(DEFAULT_PORT),
  trustProxy: z.int().min(0).max(100).default(0).describe('How many proxies are in front of the daemon.'),
  accessLog: z.boolean().default(false).describe('Logs a line for each request.'),
  webhooks: withFallback(listenerSchema, null).describe('A listener for webhooks alone.'),
  metrics: withFallback(listenerSchema, null).describe('A listener for metrics alone.'),
})

/** The address may contain a password: no message quotes it. */
const databaseUrlSchema = z.string().superRefine((url, context) => {
  const file = sqlitePath(url)
  if (isPostgres(url)) {
    if (!URL.canParse(url) || !new URL(url).pathname.slice(1)) {
      context.addIssue('must name a host and a database: postgres://user:password@host:5432/database')
    }
  } else if (!url.startsWith('sqlite:')) {
    context.addIssue('must be sqlite:<path>, such as sqlite:./data/latchkey.db, or postgres://…')
  } else if (file === '' || file.startsWith(':')) {
    context.addIssue('must name a file: acknowledged events must survive a restart')
  }
})

/** Leases and their holders take three connections, listening takes one, and questions need two or more. */
const NOT_FOR_DELIVERIES = 6
const LEAST_CONNECTIONS = 10

export const databaseSchema = z
  .strictObject({
    url: databaseUrlSchema.default('sqlite:./data/latchkey.db'),
    connections: z
      .int()
      .min(LEAST_CONNECTIONS)
      .max(1_000)
      .default(16)
      .describe('How many connections to PostgreSQL each daemon opens, at most.'),
    writers: z
      .int()
      .min(1)
      .max(64)
      .default(4)
      .describe('How many transactions with deliveries each daemon has under way on PostgreSQL, at most.'),
    statementTimeout: durationSchema('must be a duration, such as "30s"')
      .describe('PostgreSQL ends a statement that takes longer.')
      .prefault('30s'),
  })
  .superRefine(({ connections, writers }, context) => {
    const least = writers + NOT_FOR_DELIVERIES
    if (connections < LEAST_CONNECTIONS || connections >= least) return
    const message = `must be at least ${least}: database.writers, and ${NOT_FOR_DELIVERIES} more`
    context.addIssue({ code: 'custom', path: ['connections'], message })
  })
  .transform(({ statementTimeout, ...database }) => ({ ...database, statementTimeoutMs: statementTimeout }))

export function isPostgres(url: string): boolean {
  return /^postgres(ql)?:/.test(url)
}

export const logSchema = z.strictObject({ level: logLevelSchema.default('info') })

/** The path in a `sqlite:` address, as written; `sqlite:///srv/latchkey.db` is `/srv/latchkey.db`. */
export function sqlitePath(url: string): string {
  return url.replace(/^sqlite:(\/\/)?/, '')
}

/** Values from the environment that override the file's; null: no override. */
export type Overrides = ReturnType<typeof readOverrides>['overrides']

/** Reads the `LATCHKEY_*` overrides. An empty variable counts as not set. */
export function readOverrides(env: Readonly<Record<string, string | undefined>>) {
  const problems: Problem[] = []
  const read = <T>(name: string, schema: z.ZodType<T>, parse: (text: string) => unknown): T | null => {
    const text = env[name]
    if (text === undefined || text === '') return null
    const { data = null, error } = schema.safeParse(parse(text), { error: describeIssue })
    if (error) problems.push(...problemsIn(error).map(({ message }) => ({ path: [name], message })))
    return data
  }
  const overrides = {
    host: read('LATCHKEY_HOST', hostSchema, String),
    port: read('LATCHKEY_PORT', portSchema, (text) => (/^[0-9]+$/.test(text) ? Number(text) : text)),
    databaseUrl: read('LATCHKEY_DATABASE_URL', databaseUrlSchema, String),
    logLevel: read('LATCHKEY_LOG_LEVEL', logLevelSchema, String),
  }
  return { overrides, problems }
}

/** Two listeners can't share a port if their hosts overlap. Overrides by the environment count. */
export function findSharedPorts(
  server: Usable<z.input<typeof serverSchema>>,
  overrides: Pick<Overrides, 'host' | 'port'>,
): Problem[] {
  const { host, port = DEFAULT_PORT, webhooks, metrics } = server
  const listeners = [
    { path: ['server'], host: overrides.host ?? host, port: overrides.port ?? port },
    { path: ['server', 'webhooks'], ...webhooks },
    { path: ['server', 'metrics'], ...metrics },
  ].map((one) => ({ ...one, host: one.host === undefined ? DEFAULT_HOST : one.host?.trim() }))
  return listeners.flatMap(({ path, host, port }, position) => {
    const other = listeners
      .slice(0, position)
      .find((earlier) => earlier.port === port && overlap(earlier.host, host))
    // The system chooses another port for each 0.
    if (other === undefined || !port) return []
    const message = `is also the port of ${formatPath(other.path)} (${other.host}:${port}): each listener needs its own`
    return [{ path: [...path, 'port'], message }]
  })
}

/** `::` includes IPv4, and `0.0.0.0` all IPv4 addresses. Other spellings of one address only fail at the start. */
function overlap(one: string | undefined, other: string | undefined): boolean {
  if (one === undefined || other === undefined) return false
  const [a, b] = [one, other].map((host) => host.toLowerCase().replace(/^localhost$/, '127.0.0.1'))
  const takesAll = (wildcard = '', host = '') =>
    wildcard === '::' || (wildcard === '0.0.0.0' && !host.includes(':'))
  return a === b || takesAll(a, b) || takesAll(b, a)
}
