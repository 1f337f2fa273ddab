import type { DeliveryGap, DeliveryGaps } from '../../operations/delivery-gaps.js'
import type { Endpoint } from '../../provider/endpoint.js'
import { counted, durationText, instantText } from './amounts.js'
import type { DaemonFacts } from './daemon-facts.js'
import { type Finding, fail, ok, warn } from './finding.js'

/** Long enough to have a secret changed by hand, weekends and all. */
const SOON_MS = 14 * 86_400_000

/** The daemon's log names the failed check; bots that know no secret fail an earlier one. */
const WORTH_A_LOOK: readonly string[] = ['signature_invalid', 'timestamp_out_of_tolerance']

/** Of each endpoint: its secrets. */
export function checkSecrets(endpoints: readonly Endpoint[], now: number): readonly Finding[] {
  return endpoints.map((endpoint) => checkSecretsOf(endpoint, now))
}

function checkSecretsOf({ name, environment, secrets }: Endpoint, now: number): Finding {
  const what = `endpoint ${name}`
  const ends = secrets.map(({ notAfter }) => notAfter ?? Number.POSITIVE_INFINITY)
  const last = Math.max(...ends)
  if (last <= now) {
    const detail = `${environment}, no secret counts since ${instantText(last)}, every delivery is refused`
    return fail(what, detail, `add the current secret to endpoints.${name}.secrets, and send SIGHUP`)
  }
  if (last - now < SOON_MS) {
    const detail = `${environment}, the last secret ends at ${instantText(last)}`
    return warn(what, detail, `add its successor to endpoints.${name}.secrets before`)
  }
  return ok(what, `${environment}, ${endedText(ends, now)}`)
}

/** One that has ended is kept for what it signed, which may be to be imported still. */
function endedText(ends: readonly number[], now: number): string {
  const all = counted(ends.length, 'secret')
  const ended = ends.filter((end) => end <= now).length
  if (ended === 0) return all
  return `${ended} of ${all} ${ended === 1 ? 'has ended, and still proves' : 'have ended, and still prove'} imports`
}

/** Of each endpoint: when the last event came, and whether it is time for the next. */
export function checkDeliveries(endpoints: readonly Endpoint[], gaps: DeliveryGaps): readonly Finding[] {
  return endpoints.map(({ name }) => {
    const what = `deliveries ${name}`
    const gap = gaps.get(name)
    if (gap === undefined) return ok(what, 'none yet')
    if (!gap.isUnusual) return ok(what, gapText(gap))
    const todo = 'ask the sender what it delivered, and try its way here: proxy, certificate, firewall'
    return warn(what, `${gapText(gap)}, unusually long`, todo)
  })
}

function gapText({ lastAt, current, usualInterval }: DeliveryGap): string {
  const usual = usualInterval === null ? '' : `, usually every ${durationText(usualInterval)}`
  return `last at ${instantText(lastAt)}${usual}, now ${durationText(current)} ago`
}

/** Of each endpoint: what the running daemon has refused since its start. */
export function checkRefusals(endpoints: readonly Endpoint[], { rejected }: DaemonFacts): readonly Finding[] {
  return endpoints.map(({ name }) => {
    const what = `refused ${name}`
    const own = rejected.filter(({ endpoint, count }) => endpoint === name && count > 0)
    if (own.length === 0) return ok(what, 'none')
    const detail = own.map(({ code, count }) => `${count} ${code}`).join(', ')
    const isSuspicious = own.some(({ code }) => WORTH_A_LOOK.includes(code))
    const todo = 'the daemon’s log says what was wrong with each: a secret, or a clock'
    return isSuspicious ? warn(what, detail, todo) : ok(what, detail)
  })
}
