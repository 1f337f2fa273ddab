import type { Config } from '../config/schema.js'
import type { DeliveryGaps } from '../operations/delivery-gaps.js'
import type { Endpoint } from '../provider/endpoint.js'
import { USUAL_AHEAD_MS } from '../provider/envelope.js'
import { countRows } from '../store/bulk.js'
import { loadNewestTimes } from '../store/deliveries.js'
import { countWaitingByReason, firstConflicts, type WaitingReason } from '../store/event-questions.js'
import type { Db } from '../store/schema.js'
import {
  counted,
  type DaemonFacts,
  durationText,
  type Finding,
  fail,
  instantText,
  ok,
  warn,
} from './finding.js'

/** Long enough to have a secret changed by hand, weekends included. */
const SOON_MS = 14 * 86_400_000

/** The daemon's log names the failed check; bots that know no secret fail an earlier one. */
const WORTH_A_LOOK: readonly string[] = ['signature_invalid', 'timestamp_out_of_tolerance']

/** Checks the secrets of each endpoint. An expired one is kept to verify imports of older deliveries. */
export function checkSecrets(endpoints: readonly Endpoint[], now: number): readonly Finding[] {
  return endpoints.map(({ name, environment, secrets }) => {
    const what = `endpoint ${name}`
    const ends = secrets.map(({ notAfter }) => notAfter ?? Number.POSITIVE_INFINITY)
    const last = Math.max(...ends)
    if (last <= now) {
      const detail = `${environment}, every secret expired by ${instantText(last)}, every delivery is refused`
      return fail(
        what,
        detail,
        `add the current secret to endpoints.${name}.secrets, and run \`latchkey reload\``,
      )
    }
    if (last - now < SOON_MS) {
      const detail = `${environment}, the last secret expires at ${instantText(last)}`
      return warn(what, detail, `add its successor to endpoints.${name}.secrets before then`)
    }
    const ended = ends.filter((end) => end <= now).length
    const all = counted(ends.length, 'secret')
    const proving = `${ended === 1 ? 'has expired, but still verifies' : 'have expired, but still verify'} imports`
    return ok(what, `${environment}, ${ended === 0 ? all : `${ended} of ${all} ${proving}`}`)
  })
}

/** Checks when the last event of each endpoint came, and whether the next is overdue. */
export function checkDeliveries(
  { endpoints, provider }: Pick<Config, 'endpoints' | 'provider'>,
  gaps: DeliveryGaps,
): readonly Finding[] {
  return endpoints.map(({ name, environment }) => {
    const what = `deliveries ${name}`
    const gap = gaps.get(name)
    if (gap === undefined) return ok(what, 'none yet')
    const { lastAt, current, usualInterval, isUnusual } = gap
    const usual = usualInterval === null ? '' : `, usually every ${durationText(usualInterval)}`
    const detail = `last at ${instantText(lastAt)}${usual}, now ${durationText(current)} ago`
    if (!isUnusual) return ok(what, detail)
    const path = 'check the path to here: proxy, certificate, firewall'
    const backfill = `what was missed comes by \`latchkey backfill --environment ${environment}\``
    const todo = `ask the sender what it delivered, and ${path}; ${backfill}`
    const isAskable = provider[environment] !== null
    return warn(
      what,
      `${detail}, unusually long`,
      isAskable ? todo : `${todo}, once provider.${environment} is set`,
    )
  })
}

/** Checks what the running daemon has refused at each endpoint since its start. */
export function checkRefusals(endpoints: readonly Endpoint[], { rejected }: DaemonFacts): readonly Finding[] {
  return endpoints.map(({ name }) => {
    const what = `refused ${name}`
    const own = rejected.filter(({ endpoint, count }) => endpoint === name && count > 0)
    if (own.length === 0) return ok(what, 'none')
    const detail = own.map(({ code, count }) => `${count} ${code}`).join(', ')
    const isSuspicious = own.some(({ code }) => WORTH_A_LOOK.includes(code))
    const todo = 'see the daemon’s log for the cause of each: a secret, or a clock'
    return isSuspicious ? warn(what, detail, todo) : ok(what, detail)
  })
}

const SANE_FROM = Date.UTC(2025, 0, 1)
const SANE_UNTIL = Date.UTC(2100, 0, 1)

/** Routine clock adjustments are smaller than this. */
const STEP_MS = 60_000

/** How far the sender lets two clocks differ. */
const AHEAD_MS = 300_000

const SET_CLOCK = 'set this machine’s clock, and keep it in sync (NTP)'

/** Checks whether the clock can be right: signatures and the end of access depend on it. */
export async function checkClock(
  db: Db,
  endpoints: readonly Endpoint[],
  facts: DaemonFacts | null,
  now: number,
): Promise<readonly Finding[]> {
  const skews = (facts?.skews ?? []).map(({ endpoint, seconds }) => {
    const offset = `${durationText(Math.abs(seconds) * 1000)} ${seconds > 0 ? 'ahead of' : 'behind'}`
    return warn('clock', `a delivery to ${endpoint} was refused: its clock was ${offset} ours`, SET_CLOCK)
  })
  return [await checkNow(db, endpoints, now), ...skews]
}

async function checkNow(db: Db, endpoints: readonly Endpoint[], now: number): Promise<Finding> {
  const shown = instantText(now)
  if (now < SANE_FROM || now > SANE_UNTIL) return fail('clock', `it shows ${shown}`, SET_CLOCK)
  const newest = await loadNewestTimes(db)
  if (newest === null) return ok('clock', shown)
  const { endpoint, receivedAt, createdAt } = newest
  if (receivedAt > now + STEP_MS) {
    return fail('clock', `it shows ${shown}, and an event arrived at ${instantText(receivedAt)}`, SET_CLOCK)
  }
  // A clock that may run days ahead says nothing about this one.
  const isMoved = endpoints.some((one) => one.name === endpoint && one.aheadAtMostMs > USUAL_AHEAD_MS)
  if (createdAt !== null && createdAt > now + AHEAD_MS && !isMoved) {
    return warn('clock', `it shows ${shown}, and an event is dated ${instantText(createdAt)}`, SET_CLOCK)
  }
  return ok('clock', shown)
}

/** Missing facts usually arrive within moments, with the next event. */
const HELD_LONG_MS = 86_400_000

/** Checks for events without effect, and bodies that contradict stored ones. */
export async function checkEvents(
  db: Db,
  { provider }: Pick<Config, 'provider'>,
  now: number,
): Promise<readonly Finding[]> {
  const waiting = await countWaitingByReason(db)
  const held = waiting.filter(({ disposition }) => disposition === 'held')
  const quarantined = waiting.filter(({ disposition }) => disposition === 'quarantined')
  const long = held.filter(({ oldestAt }) => now - oldestAt > HELD_LONG_MS)
  const isGivenUp = long.some(
    ({ environment, reason }) => provider[environment] !== null && mayBeAsked(reason),
  )
  const tried = isGivenUp ? ', and the service’s own records did not complete them' : ''
  const conflicts = await countRows(db, 'event_conflicts')
  const bodies = `${conflicts} other ${conflicts === 1 ? 'body' : 'bodies'} arrived with ids of stored events; the stored ones are kept`
  return [
    long.length > 0
      ? warn('held', `${countsText(held)}, some for more than a day${tried}`, showing(held))
      : ok('held', countsText(held)),
    quarantined.length === 0
      ? ok('quarantined', countsText(quarantined))
      : warn('quarantined', countsText(quarantined), showing(quarantined)),
    conflicts === 0
      ? ok('conflicts', 'none')
      : warn('conflicts', `${bodies}: ${await conflictsText(db)}`, FIND_CONFLICTS),
  ]
}

/** Whether a record of the service may say what an event waits for: see `loadAwaitedRecords`. */
function mayBeAsked(reason: WaitingReason['reason']): boolean {
  return reason === 'customer_unknown' || reason === 'product_unknown' || reason === 'rail_unknown'
}

const FIND_CONFLICTS =
  'ask the sender which is right; `latchkey events list --conflicts` lists them, for either environment'

const CONFLICTS_NAMED = 3

/** `evt_1 in live, evt_2 in sandbox, …`. */
async function conflictsText(db: Db): Promise<string> {
  const first = await firstConflicts(db, CONFLICTS_NAMED + 1)
  const names = first
    .slice(0, CONFLICTS_NAMED)
    .map(({ eventId, environment }) => `${eventId} in ${environment}`)
  return [...names, ...(first.length > CONFLICTS_NAMED ? ['…'] : [])].join(', ')
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
