import { resolve } from 'node:path'
import type { Command } from 'commander'
import { megabytes, withByteProgress } from './byte-progress.js'
import { jsonLine, loadNamedConfig, type SharedOptions, withSharedOptions } from './command.js'
import type { CliContext } from './context.js'

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
  const { backUp } = await import('../store/backup.js')
  const { database } = (await loadNamedConfig(options, context)).config
  const target = resolve(context.folder, to)
  const { file, bytes } = await withByteProgress(context, (onProgress) =>
    backUp(database.file, target, { overwrite: options.force ?? false, onProgress }),
  )
  const text = `backed up to ${file}: ${megabytes(bytes)}, intact\n`
  context.out(options.json ? jsonLine({ file, bytes }) : text)
}
