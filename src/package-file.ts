import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The version of the package that this program is part of. */
export function packageVersion(): string {
  return String(JSON.parse(readFileSync(packageFile('package.json'), 'utf8')).version)
}

/** A file beside the nearest package.json above: the built program is one folder deeper than its source. */
export function packageFile(name: string, below = fileURLToPath(import.meta.url)): string {
  const folder = dirname(below)
  if (existsSync(join(folder, 'package.json'))) return join(folder, name)
  if (folder === below) throw new Error('there is no package.json above the program')
  return packageFile(name, folder)
}

type Thread =
  | 'daemon/writer-thread'
  | 'doctor/examine-thread'
  | 'operations/backup-thread'
  | 'recompute/compare-thread'
  | 'store/sqlite/checkpoint-thread'

/** The built file of a thread, even if the sources themselves run, as in tests: threads only run built files. */
export function threadFile(name: Thread): string {
  return packageFile(join('dist', 'src', `${name}.js`))
}
