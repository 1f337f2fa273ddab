import type { Kysely, Transaction } from 'kysely'
import type { Database } from './schema.js'

/** Where groups went that got another id, by the id that the config has. */
export async function loadMovedGroups(db: Kysely<Database>): Promise<ReadonlyMap<string, string>> {
  const rows = await db.selectFrom('moved_groups').selectAll().execute()
  return new Map(rows.map((row) => [row.group_id, row.moved_to]))
}

export async function keepMovedGroup(
  trx: Transaction<Database>,
  { groupId, movedTo }: { readonly groupId: string; readonly movedTo: string },
): Promise<void> {
  await trx
    .insertInto('moved_groups')
    .values({ group_id: groupId, moved_to: movedTo })
    .onConflict((conflict) => conflict.column('group_id').doUpdateSet({ moved_to: movedTo }))
    .execute()
}
