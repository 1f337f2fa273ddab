import type { Kysely } from 'kysely'
import { compareBodies } from '../../store/altered-bodies.js'
import type { Database } from '../../store/schema.js'
import { type Finding, fail, ok } from './finding.js'

const MEND =
  'look at the disk; to mend it, `latchkey events export`, `latchkey restore` a backup from before, `latchkey import`'

/** Whether what was delivered is stored byte for byte, as its hashes tell. Reads every body. */
export async function checkBodyHashes(db: Kysely<Database>): Promise<readonly Finding[]> {
  const { compared, altered, first } = await compareBodies(db)
  if (first === null) return [ok('body hashes', `none altered, of ${compared}`)]
  const { environment, eventId } = first
  const detail = `${altered} of ${compared} altered in the database, the first that of ${eventId} in ${environment}`
  return [fail('body hashes', detail, MEND)]
}
