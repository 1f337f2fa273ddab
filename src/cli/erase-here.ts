import type { Config } from '../config/types.js'
import { type ErasureJson, erasureJson } from '../handlers/erase-customer.js'
import { systemUser } from '../handlers/local-access.js'
import { createErase } from '../ingest/erase.js'
import { loadErasure } from '../store/erasures.js'
import type { ActHere } from './act-here.js'
import { defaultEnvironment } from './command.js'
import type { CliContext } from './context.js'
import { openIngest } from './open-ingest.js'

/** Erases from the database of no daemon, to the end; answers as a daemon does. */
export async function eraseHere(
  { customerId, reason, environment }: Omit<ActHere, 'act'>,
  config: Config,
  { now: clock }: CliContext,
): Promise<ErasureJson> {
  const { store, ingest, close } = await openIngest(config, clock)
  try {
    const erase = createErase({
      write: ingest,
      findErasure: (...whom) => loadErasure(store.reader, ...whom),
      finish: async () => {
        await store.writer.finishErasures()
      },
    })
    return erasureJson(
      await erase({
        environment: environment ?? defaultEnvironment(config.endpoints),
        customerId,
        actor: systemUser(),
        reason,
      }),
    )
  } finally {
    await close()
  }
}
