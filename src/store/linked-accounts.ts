import { type Kysely, sql } from 'kysely'
import type { Environment } from '../provider/event.js'
import { bulkStatement } from './bulk.js'
import type { Database } from './schema.js'

/** The fact of a customer that names an account of theirs. */
export type AccountFact = 'communityId' | 'messengerId'

/** A platform account, and a customer to whom it belongs: it may belong to several. */
export interface LinkedAccount {
  readonly fact: AccountFact
  readonly accountId: string
  readonly customerId: string
}

interface LinkRow {
  readonly customer_id: string
  readonly community_id: string | null
  readonly messenger_id: string | null
}

const selectOfCustomers = bulkStatement(
  (keys) => sql<LinkRow>`
    select customer_id, community_id, messenger_id from customers where (environment, customer_id) in (${keys})`,
)

/** The accounts that belong to these customers now. */
export async function loadAccountsOf(
  db: Kysely<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<readonly LinkedAccount[]> {
  const rows = await selectOfCustomers(
    db,
    customerIds.map((id) => [environment, id]),
  )
  return rows.flatMap((row) => [
    ...linkOf('communityId', row.community_id, row.customer_id),
    ...linkOf('messengerId', row.messenger_id, row.customer_id),
  ])
}

function linkOf(fact: AccountFact, accountId: string | null, customerId: string): LinkedAccount[] {
  return accountId === null ? [] : [{ fact, accountId, customerId }]
}

interface AccountRow {
  readonly account_id: string
  readonly customer_id: string
}

const SELECT_LINKED = {
  communityId: bulkStatement(
    (keys) => sql<AccountRow>`
      select community_id as account_id, customer_id from customers where (environment, community_id) in (${keys})
        and community_id is not null`,
  ),
  messengerId: bulkStatement(
    (keys) => sql<AccountRow>`
      select messenger_id as account_id, customer_id from customers where (environment, messenger_id) in (${keys})
        and messenger_id is not null`,
  ),
} as const satisfies Record<AccountFact, unknown>

/** All customers to whom these accounts belong. */
export async function loadLinkedCustomers(
  db: Kysely<Database>,
  environment: Environment,
  fact: AccountFact,
  accountIds: readonly string[],
): Promise<readonly LinkedAccount[]> {
  const rows = await SELECT_LINKED[fact](
    db,
    accountIds.map((id) => [environment, id]),
  )
  return rows.map((row) => ({ fact, accountId: row.account_id, customerId: row.customer_id }))
}
