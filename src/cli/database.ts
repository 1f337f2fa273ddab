import { resolve } from 'node:path'
import { LatchkeyError } from '../errors.js'
import { isSystemRefusal, refusalText } from '../system-refusal.js'
import { command, flag } from './command.js'
import { type CliContext, loadNamedConfig } from './context.js'
import { withProgress } from './progress.js'
import { linesText } from './text.js'

/** `latchkey backup`: copies the database to a file, beside a running daemon or with none. */
const backupCommand = command('backup <file>', {
  about: 'copy the database to one file, and look at every page of the copy',
  examples: ['backup /srv/backups/monday.db', 'backup monday.db --force'],
  arguments: { file: 'where to; its folder is made if it is missing' },
  options: { force: flag('replace the file if it is there, once the new one is whole') },
  async run({ options, args: [to = ''], context, show }) {
    const { assertDatabase } = await import('../operations/assert-database.js')
    const { backUp } = await import('../store/sqlite/copy.js')
    const { database } = (await loadNamedConfig(options, context)).config
    const target = resolve(context.folder, to)
    assertDatabase(database.file, 'read')
    const copied = await withBytes(context, (onProgress) =>
      backUp(database.file, target, { overwrite: options.force ?? false, onProgress }),
    ).catch((cause: unknown) => {
      if (!isSystemRefusal(cause)) throw cause
      // Under the name that was given: what failed may be of its folder, or of the file that was to get the name.
      const message = `${target} can't be written: ${refusalText(cause)}`
      throw new LatchkeyError('backup_failed', message, { cause })
    })
    const { file, bytes } = copied
    show({ file, bytes }, () => `backed up to ${file}: ${megabytes(bytes)}, intact\n`)
  },
})

/** `latchkey restore`: puts a backup in the place of the database, which no daemon may be serving. */
const restoreCommand = command('restore <file>', {
  about: 'put a backup in the place of the database, and keep what was there; no daemon may be running',
  examples: ['restore /srv/backups/monday.db'],
  arguments: { file: 'a file that `latchkey backup` made' },
  async run({ options, args: [file = ''], context, show }) {
    const { restore } = await import('../operations/restore.js')
    const { database, products } = (await loadNamedConfig(options, context)).config
    const from = resolve(context.folder, file)
    const restored = await withBytes(context, (onProgress) =>
      restore(database.file, from, {
        now: context.now(),
        onProgress,
        eraseAgain: (part, place) => eraseAgain(part, place, context.now),
      }),
    )
    const { keptAs, migrated, membershipsKept, erasedAgain } = restored
    const follows = products.some(({ targets }) => targets.length > 0)
    show({ ...restored, from }, () =>
      linesText([
        `restored ${restored.file} from ${from}`,
        ...(migrated.length === 0 ? [] : [`brought its schema up to date: ${migrated.join(', ')}`]),
        ...(erasedAgain === 0
          ? []
          : [`customers erased since the backup, and so erased in it too: ${erasedAgain}`]),
        keptAs === null ? 'there was no database before' : `the database that was there is kept as ${keptAs}`,
        'cursors of the change log from before are unknown now: its readers start again',
        ...(follows ? followLines(membershipsKept) : []),
      ]),
    )
  },
})

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

function followLines(membershipsKept: number | null): readonly string[] {
  return [
    membershipsKept === null
      ? 'a role or group that somebody got after the backup counts as given by your staff, and is not taken back: compare by hand'
      : `memberships of roles and groups, as the replaced database knew them: ${membershipsKept}`,
    'sync is paused: see `latchkey sync plan`, and then `latchkey sync resume`',
  ]
}

/** `latchkey compact`: rewrites the database without what is not in use; no daemon may be serving it. */
const compactCommand = command('compact', {
  about: 'rewrite the database without unused space and what may be left in it; no daemon may run',
  examples: ['compact'],
  async run({ options, context, show }) {
    const { assertDatabase } = await import('../operations/assert-database.js')
    const { compactFile } = await import('../store/sqlite/store.js')
    const { database } = (await loadNamedConfig(options, context)).config
    assertDatabase(database.file, 'write')
    const sizes = await withProgress(context, (progress) => {
      progress.show(null, `rewriting ${database.file} …`)
      return compactFile(database.file)
    })
    show(sizes, () => `${sizes.file}: ${sizes.before} bytes, now ${sizes.after}\n`)
  },
})

/** `latchkey migrate`: what the daemon's start does to the schema, without the daemon. */
const migrateCommand = command('migrate', {
  about: 'bring the schema of the stopped database up to date; every start of the daemon does so too',
  examples: ['migrate'],
  async run({ options, context, show }) {
    const { assertDatabase } = await import('../operations/assert-database.js')
    const { bringFileUpToDate } = await import('../store/sqlite/store.js')
    const { database } = (await loadNamedConfig(options, context)).config
    assertDatabase(database.file, 'write')
    const done = await bringFileUpToDate(database.file)
    const { steps, backup } = done
    const ran = [
      ...steps.map((step) => `ran ${step}`),
      ...(backup === null ? [] : [`as it was before: ${backup}`]),
    ]
    show(done, () => (steps.length === 0 ? 'the schema is up to date\n' : linesText(ran)))
  },
})

/** Shows how far a copy is while it is made. */
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

export const databaseCommands = [backupCommand, restoreCommand, compactCommand, migrateCommand]
