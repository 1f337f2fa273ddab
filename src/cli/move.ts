import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { resolveReferences } from '../config/references.js'
import type { Config } from '../config/schema.js'
import { databaseSchema, isPostgres, sqlitePath } from '../config/server.js'
import { openWriter } from '../daemon/writer.js'
import { counted } from '../doctor/finding.js'
import { LatchkeyError } from '../errors.js'
import { describeIssue } from '../handlers/problem.js'
import { assertDatabase } from '../operations/assert-database.js'
import { erasureListOf, readErasureList } from '../people/erasure-list.js'
import { compareStored } from '../recompute/compare.js'
import { isStoreBroken, placeIn } from '../store/engine.js'
import { assertCurrent } from '../store/migrate.js'
import type { PostgresOptions } from '../store/postgres/dialect.js'
import { copyToPostgres } from '../store/postgres/move.js'
import { openReader } from '../store/postgres/store.js'
import { loadJob } from '../store/recompute.js'
import { ENVIRONMENTS } from '../store/schema.js'
import { damaged } from '../store/sqlite/connection.js'
import { openDatabase } from '../store/sqlite/dialect.js'
import { openStore } from '../store/sqlite/store.js'
import type { GivenCommand } from './command.js'
import { type CliContext, loadNamedConfig, type SharedOptions } from './context.js'
import { type Progress, withProgress } from './progress.js'
import { assertNoDifference, differenceLines } from './recompute.js'
import { linesText } from './text.js'

/** All differences are counted. */
const DIFFERENCES_NAMED = 1_000

/** Each is the address of a database, as in the config; if omitted, it is the configured one. */
type MoveOptions = SharedOptions & Readonly<Partial<Record<'from' | 'to', string | undefined>>>

/**
 * Moves a whole store from SQLite to PostgreSQL, and compares what is stored there with what its events say.
 * @throws {LatchkeyError} `usage`; as `copyFile` and `copyToPostgres` do; `rebuild_differs`, once it is moved
 */
export async function moveStore(
  options: MoveOptions,
  context: CliContext,
  show: GivenCommand<Record<never, never>>['show'],
): Promise<void> {
  const { config } = await loadNamedConfig(options, context)
  const { file, postgres } = placesOf(options, config.database, context)
  const { differences, ...moved } = await withProgress(context, async (progress) => ({
    ...(await copyFile(file, postgres, config, context.now, progress)),
    differences: await compare(postgres, context.now, progress),
  }))
  const to = placeIn(postgres.url)
  const counts = Object.values(moved.rows)
  const rows = counts.reduce((sum, count) => sum + count, 0)
  show({ from: file, to, ...moved, differences: differences.named }, () =>
    linesText([
      `moved ${file} to ${to}: ${rows} rows of ${counts.length} tables`,
      moved.erasedAgain > 0 && `customers erased first, from the list of erasures: ${moved.erasedAgain}`,
      ...differenceLines(differences),
      differences.count === 0 && 'everything stored there matches the events',
      config.database.postgres?.url !== postgres.url && 'set database.url to the new database',
      'start all daemons on the new database, and none on the old file',
    ]),
  )
  assertNoDifference(differences, context)
}

/** @throws {LatchkeyError} `usage` */
function placesOf(options: MoveOptions, configured: Config['database'], context: CliContext) {
  const given = { from: addressIn(options, 'from', context), to: addressIn(options, 'to', context) }
  const from = given.from?.url ?? (configured.postgres === undefined ? `sqlite:${configured.file}` : null)
  const to = given.to ?? configured.postgres
  if (from === null)
    throw new LatchkeyError('usage', '--from is missing: name the file, as in --from sqlite:./latchkey.db')
  if (to === undefined)
    throw new LatchkeyError('usage', `--to is missing: name PostgreSQL, as in --to '\${env:DATABASE_URL}'`)
  if (!isPostgres(from) && isPostgres(to.url))
    return { file: resolve(context.folder, sqlitePath(from)), postgres: to }
  const instead = !isPostgres(from)
    ? 'copy a file with `latchkey backup`'
    : isPostgres(to.url)
      ? 'use pg_dump and pg_restore'
      : 'move the events with `latchkey events export` and `latchkey import`'
  throw new LatchkeyError('usage', `a store can only be moved from SQLite to PostgreSQL: ${instead}`)
}

/** A reference keeps a password out of the command line, which other users of the machine can see. */
function addressIn(options: MoveOptions, name: 'from' | 'to', { env, folder }: CliContext) {
  if (options[name] === undefined) return undefined
  const readFile = (path: string) => readFileSync(path, 'utf8')
  const whole = { env, folder, readFile, mayLackSecrets: false }
  const { value, problems } = resolveReferences(options[name], whole)
  const { data, error } = databaseSchema.safeParse({ url: value }, { error: describeIssue })
  const wrong = problems[0] ?? error?.issues[0]
  if (data === undefined || wrong !== undefined)
    throw new LatchkeyError('usage', `--${name} ${wrong?.message}`)
  return data
}

/** @throws {LatchkeyError} `store_missing`, `schema_too_old`, `store_in_use`, `rebuild_running` */
async function copyFile(
  file: string,
  target: PostgresOptions,
  { policy }: Config,
  clock: () => number,
  progress: Progress,
) {
  assertDatabase(file, 'write')
  await assertCurrentFile(file)
  const store = await openStore(file, policy, (own) => openWriter(own, clock))
  try {
    const unreadable = readErasureList(erasureListOf(store.file))?.unreadable ?? 0
    if (unreadable > 0) {
      const lines = counted(unreadable, 'line')
      const message = `${lines} of ${erasureListOf(store.file)} can't be read, and there is no list beside PostgreSQL: replace the list with a good copy, or delete what can't be read`
      throw new LatchkeyError('store_unavailable', message)
    }
    if ((await loadJob(store.reader))?.isMoving) {
      const message =
        'Not every source has been moved to the policy in force yet: run `latchkey policy apply`.'
      throw new LatchkeyError('rebuild_running', message)
    }
    const erasedAgain = await store.writer.applyErasureList()
    const rows = await copyToPostgres(store.reader, target, (done, total) =>
      progress.show(done / total, `moving: ${done} of ${total} rows`),
    )
    return { rows, erasedAgain }
  } finally {
    await store.close()
  }
}

async function assertCurrentFile(file: string): Promise<void> {
  const db = openDatabase(file, { readOnly: true }, (error) =>
    isStoreBroken(error) ? damaged(file, error) : error,
  )
  try {
    await assertCurrent(db, file)
  } finally {
    await db.destroy()
  }
}

/** As `latchkey rebuild --verify` does. */
async function compare(target: PostgresOptions, clock: () => number, progress: Progress) {
  const db = openReader(target)
  try {
    const plan = { scope: ENVIRONMENTS, endpoints: null, policy: null, mode: 'verify' } as const
    const onProgress = (done: number, total: number) =>
      progress.show(total === 0 ? null : done / total, `comparing: ${done} of ${total} events`)
    const report = await compareStored(db, { ...plan, sampleSize: DIFFERENCES_NAMED }, { clock, onProgress })
    return report.differences
  } finally {
    await db.destroy()
  }
}
