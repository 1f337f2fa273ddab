import { setTimeout as wait } from 'node:timers/promises'
import type { ErasureJson } from '../handlers/erase-customer.js'
import { reasonText } from '../handlers/manual-act.js'
import type { ActOptions } from './act.js'
import { checkedOption } from './checked-option.js'
import { jsonLine } from './command.js'
import type { CliContext } from './context.js'
import { throughDaemon } from './daemon-client.js'
import { noteOtherEnvironment } from './other-environment.js'

const ASK_EVERY_MS = 500

/** Erases through the running daemon, or on its stopped database; shows progress to a person. */
export async function runErase(customerId: string, options: ActOptions, context: CliContext): Promise<void> {
  const progress = createProgress(context)
  try {
    const erased = await erase(customerId, options, context, progress.show)
    progress.clear()
    context.out(options.json ? jsonLine(erased) : describe(erased))
    if (!erased.wasKnown) await noteOtherEnvironment(erased, options, context)
  } finally {
    progress.clear()
  }
}

type Show = (erased: ErasureJson) => void

/** The daemon is asked again until it is done. */
async function erase(
  customerId: string,
  options: ActOptions,
  context: CliContext,
  show: Show,
): Promise<ErasureJson> {
  const { environment } = options
  const reason = checkedOption('--reason', reasonText, options.reason)
  const query = environment === undefined ? '' : `?environment=${environment}`
  const request = {
    method: 'DELETE',
    path: `/customers/${encodeURIComponent(customerId)}${query}`,
    body: reason === null ? {} : { reason },
  } as const
  for (;;) {
    const answer = await throughDaemon(options, context, request, async (config) => {
      const { eraseHere } = await import('./erase-here.js')
      return eraseHere({ customerId, reason, environment }, config, context)
    })
    const erased = answer as ErasureJson
    if (erased.finishedAt !== null) return erased
    show(erased)
    await wait(ASK_EVERY_MS)
  }
}

function describe({ customerId, environment, eventId, erasedAt, wasKnown }: ErasureJson): string {
  const erased = `erased ${customerId} in ${environment} at ${erasedAt} (${eventId})\n`
  if (wasKnown) return erased
  return `${erased}No purchase and no detail of theirs was stored: see that the id and the environment are the ones meant.\n`
}

/** One line that overwrites itself; nothing where no person looks. */
function createProgress({ isTerminal, err }: CliContext): { show: Show; clear: () => void } {
  if (!isTerminal) return { show: () => {}, clear: () => {} }
  return {
    show: ({ progress: { reached, total } }) =>
      err(`\r\u001b[Kaccess has ended; ${Math.floor((100 * reached) / total)} % of the store looked through`),
    clear: () => err('\r\u001b[K'),
  }
}
