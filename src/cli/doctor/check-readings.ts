import type { Kysely } from 'kysely'
import type { Config } from '../../config/types.js'
import { compareReadings, endpointsOf } from '../../recompute/read-again.js'
import type { Database } from '../../store/schema.js'
import { counted } from './amounts.js'
import { type Finding, ok, warn } from './finding.js'

/** Whether every event is stored as its bytes are understood today. Reads every body. */
export async function checkReadings(
  db: Kysely<Database>,
  { endpoints }: Pick<Config, 'endpoints'>,
): Promise<readonly Finding[]> {
  const { read, otherwise, first } = await compareReadings(db, endpointsOf(endpoints))
  if (first === null) return [ok('readings', `as the bytes say, of ${counted(read, 'event')}`)]
  const where = `the first ${first.eventId} in ${first.environment}`
  const detail = `${otherwise} of ${counted(read, 'event')} stored otherwise than the bytes say, ${where}`
  return [warn('readings', detail, 'see what reading them again would change: `latchkey replay --dry-run`')]
}
