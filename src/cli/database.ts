import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Config } from '../config/schema.js'
import { LatchkeyError } from '../errors.js'
import type { BroughtUpToDate } from '../store/sqlite/store.js'
import { isSystemRefusal, refusalText } from '../system-refusal.js'
import { jsonLine, withSharedOptions } from './command.js'
import { type CliContext, loadNamedConfig, type SharedOptions } from './context.js'
import { createProgress } from './follow.js'

interface BackupOptions extends SharedOptions {
  readonly force?: true
}

/** `latchkey backup`: copies the database to a file, beside a running daemon or with none. */
export function backupCommand(program: Command, context: CliContext): void {
  withSharedOptions(program.command('backup'), 'backup /srv/backups/monday.db', 'backup monday.db --force')
    .argument('<file>', 'where to; its folder is made if it is missing')
    .description('copy the database to one file, and look at every page of the copy')
    .option('--force', 'replace the file if it is there, once the new one is whole')
    .action((file: string, options: BackupOptions) => backup(file, options, context))
}

async function backup(to: string, options: BackupOptions, context: CliContext): Promise<void> {
  const { assertDatabase } = await import('../operations/assert-database.js')
  const { backUp } = await import('../store/sqlite/copy.js')
  const { database } = (await loadNamedConfig(options, context)).config
  const target = resolve(context.folder, to)
  assertDatabase(database.file, 'read')
  const { file, bytes } = await withByteProgress(context, (onProgress) =>
    backUp(database.file, target, { overwrite: options.force ?? false, onProgress }),
  ).catch((error: unknown) => {
    throw isSystemRefusal(error) ? notWritten(target, error) : error
  })
  const text = `backed up to ${file}: ${megabytes(bytes)}, intact\n`
  context.out(options.json ? jsonLine({ file, bytes }) : text)
}

/** Under the name that was given: what failed may be of its folder, or of the file that was to get the name. */
function notWritten(target: string, cause: Error): LatchkeyError {
  return new LatchkeyError('backup_failed', `${target} can't be written: ${refusalText(cause)}`, { cause })
}

/** `latchkey restore`: puts a backup in the place of the database, which no daemon may be serving. */
export function restoreCommand(program: Command, context: CliContext): void {
  withSharedOptions(program.command('restore'), 'restore /srv/backups/monday.db')
    .argument('<file>', 'a file that `latchkey backup` made')
    .description(
      'put a backup in the place of the database, and keep what was there; no daemon may be running',
    )
    .action((file: string, options: SharedOptions) => runRestore(file, options, context))
}

async function runRestore(from: string, options: SharedOptions, context: CliContext): Promise<void> {
  const { restore } = await import('../operations/restore.js')
  const { database, products } = (await loadNamedConfig(options, context)).config
  const backup = resolve(context.folder, from)
  const restored = await withByteProgress(context, (onProgress) =>
    restore(database.file, backup, {
      now: context.now(),
      onProgress,
      eraseAgain: (part, file) => eraseAgain(part, file, context.now),
    }),
  )
  if (options.json) return context.out(jsonLine({ ...restored, from: backup }))
  const { file, keptAs, migrated, membershipsKept, erasedAgain } = restored
  const lines = [
    `restored ${file} from ${backup}`,
    ...(migrated.length === 0 ? [] : [`brought its schema up to date: ${migrated.join(', ')}`]),
    ...(erasedAgain === 0
      ? []
      : [`customers erased since the backup, and so erased in it too: ${erasedAgain}`]),
    keptAs === null ? 'there was no database before' : `the database that was there is kept as ${keptAs}`,
    'cursors of the change log from before are unknown now: its readers start again',
    ...(hasTargets(products) ? followLines(membershipsKept) : []),
  ]
  context.out(`${lines.join('\n')}\n`)
}

/** The list of erasures beside the database stays, and says who was erased since the backup. */
async function eraseAgain(part: string, file: string, clock: () => number): Promise<number> {
  const { openWriter } = await import('../daemon/writer.js')
  const { erasureListOf, listErasuresOf } = await import('../people/erasure-list.js')
  const list = erasureListOf(file)
  await listErasuresOf(file, list)
  const writer = openWriter(part, clock, list)
  try {
    return await writer.applyErasureList()
  } finally {
    await writer.close()
  }
}

function hasTargets(products: Config['products']): boolean {
  return products.some(({ targets }) => targets.length > 0)
}

function followLines(membershipsKept: number | null): readonly string[] {
  return [
    membershipsKept === null
      ? 'a role or group that somebody got after the backup counts as given by your staff, and is not taken back: compare by hand'
      : `memberships of roles and groups, as the replaced database knew them: ${membershipsKept}`,
    'sync is paused: see `latchkey sync plan`, and then `latchkey sync resume`',
  ]
}

/** `latchkey compact`: rewrites the database without what is not in use; no daemon may be serving it. */
export function compactCommand(program: Command, context: CliContext): void {
  withSharedOptions(program.command('compact'), 'compact')
    .description('rewrite the database without unused space and what may be left in it; no daemon may run')
    .action(async (options: SharedOptions) => {
      const { assertDatabase } = await import('../operations/assert-database.js')
      const { compactFile } = await import('../store/sqlite/store.js')
      const { database } = (await loadNamedConfig(options, context)).config
      assertDatabase(database.file, 'write')
      const sizes = await compactFile(database.file)
      context.out(
        options.json ? jsonLine(sizes) : `${sizes.file}: ${sizes.before} bytes, now ${sizes.after}\n`,
      )
    })
}

/** `latchkey migrate`: what the daemon's start does to the schema, without the daemon. */
export function migrateCommand(program: Command, context: CliContext): void {
  withSharedOptions(program.command('migrate'), 'migrate')
    .description('bring the schema of the stopped database up to date; every start of the daemon does so too')
    .action(async (options: SharedOptions) => {
      const { assertDatabase } = await import('../operations/assert-database.js')
      const { bringFileUpToDate } = await import('../store/sqlite/store.js')
      const { config } = await loadNamedConfig(options, context)
      assertDatabase(config.database.file, 'write')
      const done = await bringFileUpToDate(config.database.file)
      context.out(options.json ? jsonLine(done) : describe(done))
    })
}

function describe({ steps, backup }: BroughtUpToDate): string {
  if (steps.length === 0) return 'the schema is up to date\n'
  const kept = backup === null ? [] : [`as it was before: ${backup}`]
  return [...steps.map((step) => `ran ${step}`), ...kept, ''].join('\n')
}

/** Shows how far a copy is while it is made. */
async function withByteProgress<T>(
  context: CliContext,
  copy: (show: (copied: number, total: number) => void) => Promise<T>,
): Promise<T> {
  const progress = createProgress(context)
  try {
    return await copy((copied, total) => progress.show(`${megabytes(copied)} of ${megabytes(total)}`))
  } finally {
    progress.clear()
  }
}

/** `12.3 MB`. */
function megabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(1)} MB`
}
