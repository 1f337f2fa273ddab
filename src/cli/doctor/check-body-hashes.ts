import type { Kysely } from 'kysely'
import { compareBodies } from '../../store/damaged-rows.js'
import type { Database } from '../../store/schema.js'
import { type Finding, fail, ok } from './finding.js'

const MEND =
  'look at the disk; to mend it, `latchkey events export`, `latchkey restore` a backup from before, `latchkey import`'

/** Whether what was delivered is stored byte for byte, as its hashes tell. Reads every body. */
export async function checkBodyHashes(db: Kysely<Database>): Promise<readonly Finding[]> {
  const { read, damaged, first } = await compareBodies(db)
  if (damaged === 0) return [ok('body hashes', `none altered, of ${read}`)]
  const detail = `${damaged} of ${read} altered in the database, the first that of ${first[0]}`
  return [fail('body hashes', detail, MEND)]
}
