import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The version of the package that this program is part of. */
export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(packageFile(fileURLToPath(import.meta.url)), 'utf8'))
  return String(version)
}

/** The nearest one above, since the built program stands one folder deeper than its source. */
function packageFile(below: string): string {
  const folder = dirname(below)
  const file = join(folder, 'package.json')
  if (existsSync(file)) return file
  if (folder === below) throw new Error('there is no package.json above the program')
  return packageFile(folder)
}
