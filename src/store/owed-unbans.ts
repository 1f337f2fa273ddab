import type { Kysely, Transaction } from 'kysely'
import type { Database } from './schema.js'

/** One account in one group, by the id that the config has. */
interface GroupAccount {
  readonly groupId: string
  readonly accountId: string
}

/** Whether a ban of Latchkey's own may stand, which a removal did not get to lift. */
export async function isUnbanOwed(
  db: Kysely<Database>,
  { groupId, accountId }: GroupAccount,
): Promise<boolean> {
  const row = await db
    .selectFrom('owed_unbans')
    .select('group_id')
    .where('group_id', '=', groupId)
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  return row !== undefined
}

export async function oweUnban(
  trx: Transaction<Database>,
  { groupId, accountId }: GroupAccount,
): Promise<void> {
  await trx
    .insertInto('owed_unbans')
    .values({ group_id: groupId, account_id: accountId })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

export async function settleUnban(
  trx: Transaction<Database>,
  { groupId, accountId }: GroupAccount,
): Promise<void> {
  await trx
    .deleteFrom('owed_unbans')
    .where('group_id', '=', groupId)
    .where('account_id', '=', accountId)
    .execute()
}
