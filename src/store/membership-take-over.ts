import { type Kysely, sql } from 'kysely'
import { type Membership, type MembershipKey, membershipOf, saveMemberships } from './membership.js'
import { keepMovedGroup, loadMovedGroups } from './moved-groups.js'
import { loadOwedUnbans, oweUnban } from './owed-unbans.js'
import type { Database } from './schema.js'
import { openDatabase } from './sqlite/dialect.js'
import { markForSync } from './sync-marks.js'

/** Bounds memory, whatever the size of the community. */
const CHUNK = 1_000

/**
 * Takes over from the database that a backup replaces what it knows of roles and groups. The backup is too old to know
 * whom Latchkey let in since, and would take all of them for let in by staff, whom nobody ever takes out again. What is
 * desired of each is to be worked out anew: that follows from access and links, as the backup has them.
 *
 * @returns how many memberships that is; null: the old database could not be read to its end
 */
export async function takeOverMemberships(db: Kysely<Database>, oldFile: string): Promise<number | null> {
  const old = await readable(() => openDatabase(oldFile, { readOnly: true }))
  if (old === null) return null
  try {
    // One from before there were memberships has none to tell of.
    const tables = await readable(() => old.introspection.getTables())
    if (tables === null) return null
    const has = (name: keyof Database) => tables.some((table) => table.name === name)
    if (has('moved_groups') && !(await takeOverGroups(db, old))) return null
    return has('memberships') ? await takeOverAll(db, old) : 0
  } finally {
    await old.destroy()
  }
}

async function takeOverAll(db: Kysely<Database>, old: Kysely<Database>): Promise<number | null> {
  let count = 0
  let after: MembershipKey | null = null
  do {
    const page: readonly Membership[] | null = await readable(() => loadAfter(old, after))
    if (page === null) return null
    await db.transaction().execute(async (trx) => {
      await saveMemberships(trx, page)
      await markForSync(trx, distinctCustomers(page))
    })
    count += page.length
    after = page.at(-1) ?? null
  } while (after !== null)
  return count
}

async function loadAfter(db: Kysely<Database>, after: MembershipKey | null): Promise<readonly Membership[]> {
  const rows = await db
    .selectFrom('memberships')
    .selectAll()
    .where(
      sql<boolean>`(environment, target, account_id) > (${after?.environment ?? ''}, ${after?.target ?? ''}, ${after?.accountId ?? ''})`,
    )
    .orderBy('environment')
    .orderBy('target')
    .orderBy('account_id')
    .limit(CHUNK)
    .execute()
  return rows.map(membershipOf)
}

/** Where groups went, and bans of Latchkey's own that may stand. @returns whether they could be read */
async function takeOverGroups(db: Kysely<Database>, old: Kysely<Database>): Promise<boolean> {
  const moved = await readable(() => loadMovedGroups(old))
  const owed = await readable(() => loadOwedUnbans(old))
  if (moved === null || owed === null) return false
  await db.transaction().execute(async (trx) => {
    for (const [groupId, movedTo] of moved) await keepMovedGroup(trx, { groupId, movedTo })
    for (const one of owed) await oweUnban(trx, one)
  })
  return true
}

function distinctCustomers(memberships: readonly Membership[]) {
  const byKey = memberships.map(
    ({ environment, customerId }) =>
      [JSON.stringify([environment, customerId]), { environment, customerId }] as const,
  )
  return [...new Map(byKey).values()]
}

/** Null where it can't be read: whatever is wrong with it, what takes its place must not fail for that. */
async function readable<Answer>(read: () => Answer | Promise<Answer>): Promise<Answer | null> {
  try {
    return await read()
  } catch {
    return null
  }
}
