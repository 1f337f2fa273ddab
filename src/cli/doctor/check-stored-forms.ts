import type { Kysely } from 'kysely'
import { type RowCheck, readEventForms, readSourceForms } from '../../store/damaged-rows.js'
import type { Database } from '../../store/schema.js'
import { counted } from './amounts.js'
import { type Finding, fail, ok } from './finding.js'

const READ_ANEW = 'restore a backup; `latchkey replay` reads them anew where their bodies are there'
const FOLD_ANEW = 'fold them anew: `latchkey rebuild`'

/** Whether what was understood of every event, and the state of every source, can be read. Reads all of them. */
export async function checkStoredForms(db: Kysely<Database>): Promise<readonly Finding[]> {
  const events = await readEventForms(db)
  const sources = await readSourceForms(db)
  // In the order in which they are mended: a replay needs the state of each source that it touches.
  const found = [...unreadable('source', sources, FOLD_ANEW), ...unreadable('event', events, READ_ANEW)]
  if (found.length > 0) return found
  const all = `${counted(events.read, 'event')} and ${counted(sources.read, 'source')}`
  return [ok('stored forms', `all can be read, of ${all}`)]
}

function unreadable(
  noun: string,
  { read, damaged: count, first }: RowCheck,
  todo: string,
): readonly Finding[] {
  if (count === 0) return []
  const more = count > first.length ? `, and ${count - first.length} more` : ''
  const detail = `${count} of ${counted(read, noun)} can’t be read (${first.join(', ')}${more})`
  return [fail('stored forms', detail, todo)]
}
