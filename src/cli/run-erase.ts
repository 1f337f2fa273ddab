import type { ErasureJson } from '../handlers/erase-customer.js'
import { reasonText } from '../handlers/manual-act.js'
import type { ActOptions } from './act.js'
import { checkedOption } from './checked-option.js'
import { jsonLine } from './command.js'
import type { CliContext } from './context.js'
import { throughDaemon } from './daemon-client.js'
import { noteOtherEnvironment } from './other-environment.js'

/** Erases through the running daemon, or on its stopped database. */
export async function runErase(customerId: string, options: ActOptions, context: CliContext): Promise<void> {
  const { environment } = options
  const reason = checkedOption('--reason', reasonText, options.reason)
  const query = environment === undefined ? '' : `?environment=${environment}`
  const request = {
    method: 'DELETE',
    path: `/customers/${encodeURIComponent(customerId)}${query}`,
    body: reason === null ? {} : { reason },
  } as const
  const erased = (await throughDaemon(options, context, request, async (config) => {
    const { eraseHere } = await import('./erase-here.js')
    return eraseHere({ customerId, reason, environment }, config, context)
  })) as ErasureJson
  context.out(options.json ? jsonLine(erased) : describe(erased))
  if (!erased.wasKnown) await noteOtherEnvironment(erased, options, context)
}

function describe({ customerId, environment, eventId, erasedAt, wasKnown }: ErasureJson): string {
  const erased = `erased ${customerId} in ${environment} at ${erasedAt} (${eventId})\n`
  if (wasKnown) return erased
  return `${erased}No purchase and no detail of theirs was stored: check that the id and the environment are right.\n`
}
