import type { Kysely } from 'kysely'
import { loadNewestTimes } from '../../store/deliveries.js'
import type { Database } from '../../store/schema.js'
import { durationText, instantText } from './amounts.js'
import type { DaemonFacts } from './daemon-facts.js'
import { type Finding, fail, ok, warn } from './finding.js'

const SANE_FROM = Date.UTC(2025, 0, 1)
const SANE_UNTIL = Date.UTC(2100, 0, 1)

/** Clocks are set by steps of less than this all the time. */
const STEP_MS = 60_000

/** As far as the sender lets two clocks be apart. */
const AHEAD_MS = 300_000

const SET_CLOCK = 'set this machine’s clock, and keep it set (NTP)'

/** Whether the clock can be right: signatures are checked by it, and access ends by it. */
export async function checkClock(
  db: Kysely<Database>,
  facts: DaemonFacts | null,
  now: number,
): Promise<readonly Finding[]> {
  const skews = (facts?.skews ?? []).map(({ endpoint, seconds }) => {
    const offset = `${durationText(Math.abs(seconds) * 1000)} ${seconds > 0 ? 'ahead of' : 'behind'}`
    return warn('clock', `a delivery to ${endpoint} was refused: its clock was ${offset} ours`, SET_CLOCK)
  })
  return [await checkNow(db, now), ...skews]
}

async function checkNow(db: Kysely<Database>, now: number): Promise<Finding> {
  const shown = instantText(now)
  if (now < SANE_FROM || now > SANE_UNTIL) return fail('clock', `it shows ${shown}`, SET_CLOCK)
  const newest = await loadNewestTimes(db)
  if (newest === null) return ok('clock', shown)
  const { receivedAt, createdAt } = newest
  if (receivedAt > now + STEP_MS) {
    return fail('clock', `it shows ${shown}, and an event arrived at ${instantText(receivedAt)}`, SET_CLOCK)
  }
  if (createdAt !== null && createdAt > now + AHEAD_MS) {
    return warn('clock', `it shows ${shown}, and an event is of ${instantText(createdAt)}`, SET_CLOCK)
  }
  return ok('clock', shown)
}
