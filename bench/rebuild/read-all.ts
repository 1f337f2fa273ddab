import Sqlite from 'better-sqlite3'
import { type Effort, effortOf } from './effort.js'

/*
 * Reads of every stored event what a rebuild reads, in the order in which the file has them, and parses it; does
 * nothing with it. In a process of its own: node --import ./scripts/typescript.js bench/rebuild/read-all.ts DATABASE
 */

interface EventRow {
  readonly normalized: string
}

function readAll(file: string): void {
  const db = new Sqlite(file, { readonly: true })
  const select = db.prepare<[], EventRow>(
    'select source_kind, source_id, normalized, disposition, reason from events',
  )
  for (const { normalized } of select.iterate()) JSON.parse(normalized)
  db.close()
}

const [file = ''] = process.argv.slice(2)
const effort: Effort = await effortOf(process.pid, () => readAll(file))
process.send?.(effort)
