import type { DifferenceCode } from '../backfill/reporter.js'
import { type Backfill, isWhole, loadRuns, readIn, total } from '../backfill/run.js'
import type { Config } from '../config/schema.js'
import type { Environment } from '../provider/event.js'
import { type Db, ENVIRONMENTS } from '../store/schema.js'
import { counted, durationText, type Finding, instantText, ok, warn } from './finding.js'

/** With these, access may be other than the service has it. The others are listed where the backfill is shown. */
const MAY_BE_WRONG: readonly DifferenceCode[] = [
  'record_unusable',
  'read_again',
  'cancellation_end_unknown',
  'term_end_unknown',
  'cycle_payment_unclear',
  'plan_charge_unclear',
  'chargeback_date_unknown',
]

/** Checks how the newest backfills over everything ended, where the service may be asked. */
export async function checkBackfills(
  db: Db,
  { provider, backfill }: Pick<Config, 'provider' | 'backfill'>,
  now: number,
): Promise<readonly Finding[]> {
  const asked = ENVIRONMENTS.filter((environment) => provider[environment] !== null)
  if (asked.length === 0) return []
  const runs = (await loadRuns(db)).filter(isWhole)
  return asked.map((environment) => {
    const own = runs.filter(({ plan }) => plan.environment === environment)
    return findingOf(environment, own, backfill.schedule !== null, now)
  })
}

/** @param runs the newest first */
function findingOf(
  environment: Environment,
  runs: readonly Backfill[],
  isScheduled: boolean,
  now: number,
): Finding {
  const what = `backfill ${environment}`
  const run = `\`latchkey backfill --environment ${environment}\``
  const last = runs.find(({ outcome }) => outcome.state === 'done')
  const shown = last === undefined ? 'none has ended yet' : textOf(last, now)
  const [newest] = runs
  if (newest?.outcome.state === 'failed') {
    return warn(
      what,
      `the newest one failed: ${newest.outcome.reason} Of those before it, ${shown}`,
      `mend that, and ${run} goes on with it`,
    )
  }
  if (last === undefined) {
    return ok(what, isScheduled ? `${shown}; it is scheduled` : `${shown}, and none is scheduled`)
  }
  const { differences, unknown } = last.found
  const doubtful = MAY_BE_WRONG.reduce((sum, code) => sum + (differences[code] ?? 0), 0)
  if (doubtful + unknown === 0) return ok(what, shown)
  const wrong = `; access by ${counted(doubtful, 'record')} may be other than the service has it`
  const strange = `; ${counted(unknown, 'source')} of access here ${unknown === 1 ? 'is' : 'are'} not known to the service`
  const detail = `${shown}${doubtful === 0 ? '' : wrong}${unknown === 0 ? '' : strange}`
  return warn(what, detail, `${run} names them`)
}

function textOf(run: Backfill, now: number): string {
  const { outcome, found } = run
  if (outcome.state !== 'done') return ''
  const stored = total(outcome.result.stored)
  const different = total(found.differences)
  const ended = `the last one ended at ${instantText(outcome.endedAt)}, ${durationText(Math.max(0, now - outcome.endedAt))} ago`
  return `${ended}: ${counted(readIn(run), 'record')} read, ${counted(stored, 'event')} stored, ${counted(different, 'difference')} left`
}
