import { ask, type RunningDaemon } from './running-daemon.js'
import { CUSTOMER, PRODUCT } from './wire-events.js'

/** The value of one series, such as `latchkey_conflicts_total{endpoint="live"}`; null where there is none yet. */
export async function metric(daemon: RunningDaemon, series: string): Promise<number | null> {
  const answer = await ask(daemon, '/metrics')
  const line = (await answer.text()).split('\n').find((one) => one.startsWith(`${series} `))
  return line === undefined ? null : Number(line.slice(series.length))
}

/** What an operator is warned of, or worse. */
export function warnings(daemon: RunningDaemon): readonly Record<string, unknown>[] {
  return daemon.logged().filter(({ level }) => ['warn', 'error', 'fatal'].includes(String(level)))
}

/** An answer of `GET /entitlements/:customerId/:productId`, as far as these tests look at it. */
export interface ShownEntitlement {
  readonly active: boolean
  readonly status: string
  readonly since: string | null
  readonly until: string | null
}

export async function entitlement(
  daemon: RunningDaemon,
  { customer = CUSTOMER, product = PRODUCT, query = '' } = {},
): Promise<ShownEntitlement> {
  const answer = await ask(daemon, `/entitlements/${customer}/${product}${query}`)
  // Neither says anything of the access.
  const {
    asOf: _asOf,
    cursor: _cursor,
    ...shown
  } = (await answer.json()) as ShownEntitlement & Record<'asOf' | 'cursor', unknown>
  return shown
}
