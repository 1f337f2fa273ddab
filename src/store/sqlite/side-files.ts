import { existsSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** What SQLite may keep beside a database file: a pattern of what follows its name. */
export const SIDE_FILE = '(-wal|-shm|-journal)?'

/** Removes the files in the same folder whose names are this one's and an ending, of which it takes the pattern. */
export function removeBeside(file: string, ending: string): void {
  const folder = dirname(file)
  if (!existsSync(folder)) return
  const name = basename(file)
  const pattern = new RegExp(`^(${ending})$`)
  for (const found of readdirSync(folder)) {
    if (found.startsWith(name) && pattern.test(found.slice(name.length)))
      rmSync(join(folder, found), { force: true })
  }
}
