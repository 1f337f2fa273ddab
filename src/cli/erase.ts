import { setTimeout as wait } from 'node:timers/promises'
import type { Command } from 'commander'
import type { Config } from '../config/types.js'
import { LatchkeyError } from '../errors.js'
import { type ErasureJson, erasureJson } from '../handlers/erase-customer.js'
import { systemUser } from '../handlers/local-access.js'
import { createErase } from '../ingest/erase.js'
import { loadErasure } from '../store/erasures.js'
import { type ActOptions, parseReason, withActOptions } from './act.js'
import { defaultEnvironment, jsonLine, parseId } from './command.js'
import type { CliContext } from './context.js'
import { throughDaemon } from './daemon-client.js'
import { openIngest } from './open-ingest.js'

const ASK_EVERY_MS = 500

interface EraseOptions extends ActOptions {
  readonly yes?: true
}

/** `latchkey erase`: ends what a customer has, and takes out of all that is stored who they are. */
export function eraseCommand(program: Command, context: CliContext): void {
  withActOptions(program.command('erase'), 'erase cus_1 --reason "asked for it on 3 March" --yes')
    .description('erase a customer: access ends, and nothing that is stored tells who they are')
    .argument('<customer>', 'the customer id', parseId)
    .option('--reason <text>', 'why, without anything personal: it is kept', parseReason)
    .option('--yes', 'do it: it can not be undone')
    .action(async (customerId: string, options: EraseOptions) => {
      if (!options.yes) throw needsYes(customerId)
      const progress = createProgress(context)
      try {
        const erased = await erase(customerId, options, context, progress.show)
        progress.clear()
        context.out(options.json ? jsonLine(erased) : describe(erased))
      } finally {
        progress.clear()
      }
    })
}

function needsYes(customerId: string): LatchkeyError {
  const what = `it ends what ${customerId} has, and takes who they are out of all that is stored`
  return new LatchkeyError('usage', `erase needs --yes: ${what}, which can not be undone`)
}

type Show = (erased: ErasureJson) => void

/** Through the running daemon, asked again until it is done; where none runs, on the database itself. */
async function erase(
  customerId: string,
  options: EraseOptions,
  context: CliContext,
  show: Show,
): Promise<ErasureJson> {
  const { environment, reason } = options
  const query = environment === undefined ? '' : `?environment=${environment}`
  const request = {
    method: 'DELETE',
    path: `/customers/${encodeURIComponent(customerId)}${query}`,
    body: reason === undefined ? {} : { reason },
  } as const
  for (;;) {
    const answer = await throughDaemon(options, context, request, (config) =>
      eraseDirectly(customerId, options, config, context),
    )
    const erased = answer as ErasureJson
    if (erased.finishedAt !== null) return erased
    show(erased)
    await wait(ASK_EVERY_MS)
  }
}

async function eraseDirectly(
  customerId: string,
  { environment, reason }: EraseOptions,
  config: Config,
  { now: clock }: CliContext,
): Promise<ErasureJson> {
  const { store, ingest, close } = await openIngest(config, clock)
  try {
    const eraseHere = createErase({
      write: ingest,
      findErasure: (...whom) => loadErasure(store.reader, ...whom),
      finish: async () => {
        await store.writer.finishErasures()
      },
    })
    return erasureJson(
      await eraseHere({
        environment: environment ?? defaultEnvironment(config.endpoints),
        customerId,
        actor: systemUser(),
        reason: reason ?? null,
      }),
    )
  } finally {
    await close()
  }
}

function describe({ customerId, environment, eventId, erasedAt }: ErasureJson): string {
  return `erased ${customerId} in ${environment} at ${erasedAt} (${eventId})\n`
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
