import { resolve } from 'node:path'
import type { Config } from '../config/schema.js'
import { LatchkeyError } from '../errors.js'
import type { MadeReady } from '../store/sqlite/restored.js'
import { isSystemRefusal, refusalText } from '../system-refusal.js'
import { command, flag, value } from './command.js'
import { type CliContext, loadNamedConfig, type SharedOptions } from './context.js'
import { withProgress } from './progress.js'
import { linesText } from './text.js'

export const databaseCommands = [
  command('backup <file>', {
    about: 'copy the database to one file, and check every page of the copy',
    examples: ['backup /srv/backups/monday.db', 'backup monday.db --force'],
    arguments: { file: 'the new file; a missing folder is created' },
    options: { force: flag('replace an existing file, once the new one is complete') },
    async run({ options, args: [to = ''], context, show }) {
      const { assertDatabase } = await import('../operations/assert-database.js')
      const { backUp } = await import('../store/sqlite/copy.js')
      const database = await fileOf(options, context, 'back it up with its own tools, such as pg_dump')
      const target = resolve(context.folder, to)
      assertDatabase(database.file, 'read')
      const copied = await withBytes(context, (onProgress) =>
        backUp(database.file, target, { overwrite: options.force ?? false, onProgress }),
      ).catch((cause: unknown) => {
        if (!isSystemRefusal(cause)) throw cause
        // Names the target, since the failure may concern its folder or the temporary file.
        const message = `${target} can't be written: ${refusalText(cause)}`
        throw new LatchkeyError('backup_failed', message, { cause })
      })
      const { file, bytes } = copied
      show({ file, bytes }, () => `backed up to ${file}: ${megabytes(bytes)}, intact\n`)
    },
  }),
  command('restore <file>', {
    about: 'replace the database with a backup, and keep the old one; no daemon may be running',
    examples: ['restore /srv/backups/monday.db'],
    arguments: { file: 'a file created by `latchkey backup`' },
    options: { force: flag('restore a backup even if event bodies in it were altered') },
    async run({ options, args: [file = ''], context, show }) {
      const { restore } = await import('../operations/restore.js')
      const { products } = (await loadNamedConfig(options, context)).config
      const database = await fileOf(options, context, 'restore it with its own tools, such as pg_restore')
      const from = resolve(context.folder, file)
      const restored = await withBytes(context, (onProgress) =>
        restore(database.file, from, {
          now: context.now(),
          onProgress,
          acceptAltered: options.force ?? false,
          eraseAgain: (part, place) => eraseAgain(part, place, context.now),
        }),
      )
      const { keptAs, migrated, altered, membershipsKept, erasedAgain, eventsLeft } = restored
      const { erasureListOf, readErasureList } = await import('../people/erasure-list.js')
      const list = erasureListOf(restored.file)
      const unreadable = readErasureList(list)?.unreadable ?? 0
      const follows = products.some(({ targets }) => targets.length > 0)
      show({ ...restored, unreadableErasures: unreadable, syncPaused: true, from }, () =>
        linesText([
          `restored ${restored.file} from ${from}`,
          migrated.length > 0 && `brought its schema up to date: ${migrated.join(', ')}`,
          erasedAgain > 0 && `customers erased since the backup, now erased in it too: ${erasedAgain}`,
          unreadable > 0 &&
            `lines of ${list} that can't be read: ${unreadable}. Customers erased by them may be back: replace the list with a good copy, and restore again`,
          altered > 0 &&
            `event bodies that were altered since they were received, also in the backup: ${altered}; see \`latchkey doctor --thorough\``,
          keptAs === null ? 'there was no database before' : `the old database is kept as ${keptAs}`,
          ...(keptAs === null ? [] : takeOverLines(keptAs, eventsLeft ?? {}, options.config)),
          'old cursors of the change log are no longer valid: its readers must start again',
          follows && followLine(membershipsKept),
          'sync is paused: see `latchkey sync plan`, then run `latchkey sync resume`',
        ]),
      )
    },
  }),
  command('compact', {
    about: 'rewrite the database without unused space and deleted data; no daemon may be running',
    async run({ options, context, show }) {
      const { assertDatabase } = await import('../operations/assert-database.js')
      const { compactFile } = await import('../store/sqlite/store.js')
      const database = await fileOf(options, context, 'its autovacuum does this')
      assertDatabase(database.file, 'write')
      const sizes = await withProgress(context, (progress) => {
        progress.show(null, `rewriting ${database.file} …`)
        return compactFile(database.file)
      })
      show(sizes, () => `${sizes.file}: ${sizes.before} bytes, now ${sizes.after}\n`)
    },
  }),
  command('migrate', {
    about: 'bring the schema up to date, as every start of the daemon does; or move the store to PostgreSQL',
    examples: ['migrate', `migrate --from sqlite:./data/latchkey.db --to '\${env:DATABASE_URL}'`],
    options: {
      from: value('<url>', 'move the store of this SQLite file (default: that of the config)'),
      to: value('<url>', 'move the store to this empty PostgreSQL database (default: that of the config)'),
    },
    async run({ options, context, show }) {
      if (options.from !== undefined || options.to !== undefined) {
        const { moveStore } = await import('./move.js')
        return moveStore(options, context, show)
      }
      const done = await bringUpToDate((await loadNamedConfig(options, context)).config.database)
      const { steps, backup } = done
      const ran = [...steps.map((step) => `ran ${step}`), backup !== null && `backup from before: ${backup}`]
      show(done, () => (steps.length === 0 ? 'the schema is up to date\n' : linesText(ran)))
    },
  }),
]

/** The list of erasures beside the database survives, and says who was erased since the backup. */
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

/** An export is of one environment. */
function takeOverLines(
  keptAs: string,
  eventsLeft: NonNullable<MadeReady['eventsLeft']>,
  config: string | undefined,
): readonly string[] {
  const named = config === undefined ? '' : ` --config ${quoted(config)}`
  const url = quoted(`sqlite:${keptAs}`)
  return Object.entries(eventsLeft).flatMap(([environment, count]) => [
    `${count === 1 ? `one ${environment} event is` : `${count} ${environment} events are`} only in the old database. To recover ${count === 1 ? 'it' : 'them'}:`,
    `  LATCHKEY_DATABASE_URL=${url} latchkey events export --environment ${environment} --output left-${environment}.jsonl${named}`,
    `  latchkey import left-${environment}.jsonl --with-manual${named}`,
  ])
}

/** As one word for a shell. */
function quoted(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

function followLine(membershipsKept: number | null): string {
  return membershipsKept === null
    ? 'roles and groups given after the backup now count as given by your staff and are not removed: check them by hand'
    : `memberships of roles and groups kept from the replaced database: ${membershipsKept}`
}

async function bringUpToDate({ file, postgres }: Config['database']) {
  if (postgres !== undefined) {
    const { withCurrentSchema } = await import('../store/postgres/store.js')
    return withCurrentSchema(postgres, (_, steps) => ({ steps, backup: null }))
  }
  const { assertDatabase } = await import('../operations/assert-database.js')
  const { bringUpToDate, withStopped } = await import('../store/sqlite/store.js')
  assertDatabase(file, 'write')
  return withStopped(file, bringUpToDate)
}

/** @throws {LatchkeyError} `usage` if the database is not a file, but PostgreSQL, which has tools of its own */
async function fileOf(options: SharedOptions, context: CliContext, instead: string) {
  const { database } = (await loadNamedConfig(options, context)).config
  if (database.postgres === undefined) return database
  throw new LatchkeyError('usage', `the database is PostgreSQL: ${instead}`)
}

/** Shows the progress of a copy. */
function withBytes<T>(
  context: CliContext,
  copy: (show: (copied: number, total: number) => void) => Promise<T>,
): Promise<T> {
  return withProgress(context, (progress) =>
    copy((copied, total) =>
      progress.show(total === 0 ? null : copied / total, `${megabytes(copied)} of ${megabytes(total)}`),
    ),
  )
}

/** `12.3 MB`. */
function megabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(1)} MB`
}
