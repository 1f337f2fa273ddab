import { existsSync, statSync } from 'node:fs'
import type { Command } from 'commander'
import { LatchkeyError } from '../errors.js'
import { compact } from '../store/compact.js'
import { openDatabase } from '../store/dialect.js'
import { emptyLog } from '../store/empty-log.js'
import { lockStore } from '../store/lock.js'
import { placeOf } from '../store/place.js'
import { jsonLine, loadNamedConfig, type SharedOptions, withSharedOptions } from './command.js'
import type { CliContext } from './context.js'

/** `latchkey compact`: writes the database anew, without what is not in use; no daemon may be serving it. */
export function compactCommand(program: Command, context: CliContext): void {
  withSharedOptions(program.command('compact'), 'compact')
    .description(
      'write the database anew, without unused space and what may be left in it; no daemon may run',
    )
    .action(async (options: SharedOptions) => {
      const { database } = loadNamedConfig(options, context).config
      const sizes = await compactFile(database.file)
      context.out(
        options.json ? jsonLine(sizes) : `${sizes.file}: ${sizes.before} bytes, now ${sizes.after}\n`,
      )
    })
}

async function compactFile(path: string) {
  if (!existsSync(path)) throw new LatchkeyError('store_missing', `There is no database at ${path}.`)
  const file = placeOf(path)
  const lock = lockStore(file)
  try {
    const before = statSync(file).size
    const db = openDatabase(file, { readOnly: false })
    try {
      await compact(db)
      await emptyLog(db)
    } finally {
      await db.destroy()
    }
    return { file, before, after: statSync(file).size }
  } finally {
    lock.release()
  }
}
