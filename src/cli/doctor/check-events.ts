import type { Kysely } from 'kysely'
import { countConflicts, countWaitingByReason, type WaitingReason } from '../../store/event-questions.js'
import type { Database } from '../../store/schema.js'
import { counted } from './amounts.js'
import { type Finding, ok, warn } from './finding.js'

/** What is missing in an event mostly comes within moments, with the next one. */
const HELD_LONG_MS = 86_400_000

/** Events that are stored and count nowhere, and bodies that contradict stored ones. */
export async function checkEvents(db: Kysely<Database>, now: number): Promise<readonly Finding[]> {
  const waiting = await countWaitingByReason(db)
  const held = waiting.filter(({ disposition }) => disposition === 'held')
  const quarantined = waiting.filter(({ disposition }) => disposition === 'quarantined')
  return [checkHeld(held, now), checkQuarantined(quarantined), checkConflicts(await countConflicts(db))]
}

function checkHeld(held: readonly WaitingReason[], now: number): Finding {
  const isLong = held.some(({ oldestAt }) => now - oldestAt > HELD_LONG_MS)
  if (!isLong) return ok('held', countsText(held))
  return warn('held', `${countsText(held)}, some for more than a day`, showing(held))
}

function checkQuarantined(quarantined: readonly WaitingReason[]): Finding {
  if (quarantined.length === 0) return ok('quarantined', countsText(quarantined))
  return warn('quarantined', countsText(quarantined), showing(quarantined))
}

/** No filter finds them: what is listed counts them. */
const FIND_CONFLICTS =
  'ask the sender which is right; the daemon’s log names the ids, and in `latchkey events list --json`, of either ' +
  'environment, they are the items whose `conflicts` is over 0'

function checkConflicts(count: number): Finding {
  if (count === 0) return ok('conflicts', 'none')
  const detail = `${count} other ${count === 1 ? 'body' : 'bodies'} came under ids of stored events, which stand`
  return warn('conflicts', detail, FIND_CONFLICTS)
}

/** `live 2 customer_unknown, sandbox 1 not_json`. */
function countsText(waiting: readonly WaitingReason[]): string {
  if (waiting.length === 0) return 'none'
  const parts = waiting.map(({ environment, reason, count }) => `${environment} ${count} ${reason}`)
  const total = waiting.reduce((sum, { count }) => sum + count, 0)
  return `${counted(total, 'event')}: ${parts.join(', ')}`
}

function showing(waiting: readonly WaitingReason[]): string {
  const commands = waiting.map(
    ({ environment, disposition }) =>
      `\`latchkey events list --disposition ${disposition} --environment ${environment}\``,
  )
  return `see ${[...new Set(commands)].join(' and ')}`
}
