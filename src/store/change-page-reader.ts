import type { Kysely } from 'kysely'
import type { Environment } from '../provider/event.js'
import { changeLogEpoch, formatCursor, numberIn } from './change-cursor.js'
import { type Change, latestCursor, loadChanges } from './changes.js'
import type { Database } from './schema.js'

export interface ChangePageQuery {
  readonly environment: Environment
  /** As it was told, with a change or with an answer about access; null: from the first change. */
  readonly after: string | null
  readonly limit: number
}

/** A change with its cursor as it is told. */
export interface ToldChange extends Omit<Change, 'cursor'> {
  readonly cursor: string
}

/** The changes after a cursor, oldest first, at most `limit`; null for a cursor that this change log never told. */
export type ReadChangePage = (query: ChangePageQuery) => Promise<readonly ToldChange[] | null>

export function createChangePageReader(db: Kysely<Database>): ReadChangePage {
  return async ({ environment, after, limit }) => {
    const epoch = await changeLogEpoch(db)
    const number = after === null ? 0 : numberIn(epoch, after)
    if (number === null || number > (await latestCursor(db))) return null
    const changes = await loadChanges(db, environment, number, limit)
    return changes.map((change) => ({ ...change, cursor: formatCursor(epoch, change.cursor) }))
  }
}
