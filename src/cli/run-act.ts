import { isLatchkeyError } from '../errors.js'
import { type actJson, reasonText } from '../handlers/manual-act.js'
import type { Act } from '../ingest/manual-acts.js'
import type { ActOptions } from './act.js'
import { checkedOption } from './checked-option.js'
import { jsonLine } from './command.js'
import type { CliContext } from './context.js'
import { type DaemonRequest, throughDaemon } from './daemon-client.js'
import { noteOtherEnvironment, noteOtherGrant } from './other-environment.js'

/** An act as both ways take it: as a request to a daemon, and as what is to be done. */
export interface CommandedAct {
  readonly customerId: string
  readonly act: Act
  readonly method: DaemonRequest['method']
  /** Below the customer, such as `grants`; its ids percent-encoded. */
  readonly path: string
  readonly body: object
}

/** Acts through the running daemon, or on its stopped database, and shows what the customer may use since. */
export async function runAct(done: CommandedAct, options: ActOptions, context: CliContext): Promise<void> {
  const { customerId, act, method, path, body } = done
  const { environment, json } = options
  const reason = checkedOption('--reason', reasonText, options.reason)
  const query = environment === undefined ? '' : `?environment=${environment}`
  const request = {
    method,
    path: `/customers/${encodeURIComponent(customerId)}/${path}${query}`,
    body: { ...body, ...(reason === null ? {} : { reason }) },
  }
  const answer = (await throughDaemon(options, context, request, async (config) => {
    const { actHere } = await import('./act-here.js')
    return actHere({ customerId, act, reason, environment }, config, context)
  }).catch(async (error: unknown) => {
    const isUngranted = act.type === 'manual.revoked' && isLatchkeyError(error, 'grant_not_found')
    if (isUngranted) await noteOtherGrant(customerId, act.productId, options, context)
    throw error
  })) as ReturnType<typeof actJson>
  context.out(json ? jsonLine(answer) : describe(answer))
  // Only what was granted there can be revoked.
  if (act.type !== 'manual.revoked') await noteOtherEnvironment(answer, options, context)
}

function describe({ eventId, customerId, environment, entitlements }: ReturnType<typeof actJson>): string {
  const lines = entitlements.map(({ productId, status, until }) =>
    [productId, status, ...(until === null ? [] : [`until ${until}`])].join('  '),
  )
  if (lines.length === 0) lines.push(`${customerId} has no access in ${environment}`)
  return `${[`done in ${environment}: ${eventId}`, ...lines].join('\n')}\n`
}
