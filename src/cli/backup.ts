import { resolve } from 'node:path'
import type { Command } from 'commander'
import { LatchkeyError } from '../errors.js'
import { megabytes, withByteProgress } from './byte-progress.js'
import { jsonLine, withSharedOptions } from './command.js'
import type { CliContext } from './context.js'
import { loadNamedConfig, type SharedOptions } from './context.js'
import { isSystemRefusal, refusalText } from './system-refusal.js'

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
  const { assertDatabase } = await import('./assert-database.js')
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
