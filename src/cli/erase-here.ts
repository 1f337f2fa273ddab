import type { Config } from '../config/types.js'
import { type ErasureJson, erasureJson } from '../handlers/erase-customer.js'
import { systemUser } from '../handlers/local-access.js'
import { createErase } from '../people/erase.js'
import type { ActHere } from './act-here.js'
import { defaultEnvironment } from './command.js'
import type { CliContext } from './context.js'
import { openIngest } from './open-ingest.js'

/** Erases from the database of no daemon; answers as a daemon does. */
export async function eraseHere(
  { customerId, reason, environment }: Omit<ActHere, 'act'>,
  config: Config,
  { now }: CliContext,
): Promise<ErasureJson> {
  const { store, ingest, close } = await openIngest(config, now)
  try {
    const erase = createErase({ db: store.reader, write: ingest, finish: store.writer.finishErasures })
    const whose = environment ?? defaultEnvironment(config.endpoints)
    return erasureJson(await erase({ environment: whose, customerId, actor: systemUser(), reason }))
  } finally {
    await close()
  }
}
