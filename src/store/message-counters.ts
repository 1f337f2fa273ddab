/* How the delivery to each outbound webhook goes. */

import { sql } from 'kysely'
import type { Environment } from '../provider/event.js'
import { type Db, ENVIRONMENTS, type Tx } from './schema.js'
import { getSetting, setSetting } from './settings.js'

const LAST_DELIVERED = 'outbound_delivered'
const LAST_ERROR = 'outbound_error'

/** How the delivery to one address goes. Instants are epoch milliseconds. */
export interface WebhookState {
  /** Messages that are not delivered yet. */
  readonly waiting: number
  /** When the oldest of them was queued; null: there is none. */
  readonly oldestWaitingAt: number | null
  /** Messages in the log that were given up. */
  readonly failed: number
  /** The newest delivery; null: there was none. */
  readonly lastDeliveredAt: number | null
  /** The newest attempt that failed. */
  readonly lastError: { readonly at: number; readonly reason: string } | null
}

/** How one attempt ended; null: well. */
interface Outcome {
  readonly webhook: string
  readonly environment: Environment
  readonly at: number
  readonly error: string | null
}

/** Keeps the newest delivery to each address in each environment, and the newest failure. @param outcomes oldest first */
export async function noteOutcomes(trx: Tx, outcomes: readonly Outcome[]): Promise<void> {
  const settings = new Map<string, string>()
  for (const { webhook, environment, at, error } of outcomes) {
    const of = `${webhook} ${environment}`
    if (error === null) settings.set(`${LAST_DELIVERED} ${of}`, String(at))
    else settings.set(`${LAST_ERROR} ${of}`, JSON.stringify({ at, reason: error }))
  }
  for (const [key, value] of settings) await setSetting(trx, key, value)
}

/** @param environments whose messages are counted, and whose newest attempts are told */
export async function readWebhookState(
  db: Db,
  webhook: string,
  environments: readonly Environment[] = ENVIRONMENTS,
): Promise<WebhookState> {
  const { rows } = await sql<Pick<WebhookState, 'waiting' | 'oldestWaitingAt' | 'failed'>>`
    select count(case when status = 'pending' then 1 end) as waiting,
      min(case when status = 'pending' then queued_at end) as "oldestWaitingAt",
      count(case when status <> 'pending' then 1 end) as failed
    from messages where status in ('pending', 'gone', 'given_up') and webhook = ${webhook}
      and environment in (${sql.join(environments)})`.execute(db)
  const of = environments.map((environment) => `${webhook} ${environment}`)
  // Older versions keep one for both.
  if (environments.length === ENVIRONMENTS.length) of.push(webhook)
  const readAll = async (name: string): Promise<readonly string[]> =>
    (await Promise.all(of.map((one) => getSetting(db, `${name} ${one}`)))).filter((one) => one !== null)
  const deliveries = (await readAll(LAST_DELIVERED)).map(Number)
  const errors = (await readAll(LAST_ERROR)).map(
    (one) => JSON.parse(one) as NonNullable<WebhookState['lastError']>,
  )
  return {
    ...(rows[0] ?? { waiting: 0, oldestWaitingAt: null, failed: 0 }),
    lastDeliveredAt: deliveries.length === 0 ? null : Math.max(...deliveries),
    lastError: errors.toSorted((a, b) => b.at - a.at)[0] ?? null,
  }
}
