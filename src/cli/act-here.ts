import type { Config } from '../config/types.js'
import { systemUser } from '../handlers/local-access.js'
import { actJson } from '../handlers/manual-act.js'
import { type Act, createPerformAct } from '../ingest/manual-acts.js'
import type { Environment } from '../provider/event.js'
import { readAccess } from '../store/access.js'
import { loadErasure } from '../store/erasures.js'
import { loadManualEvent } from '../store/manual-events.js'
import { defaultEnvironment } from './command.js'
import type { CliContext } from './context.js'
import { openIngest } from './open-ingest.js'

export interface ActHere {
  readonly customerId: string
  readonly act: Act
  readonly reason: string | null
  /** Undefined: nobody has said. */
  readonly environment: Environment | undefined
}

/** Acts on the database of no daemon; answers as a daemon does. */
export async function actHere(
  { customerId, act, reason, environment }: ActHere,
  config: Config,
  { now: clock }: CliContext,
): Promise<ReturnType<typeof actJson>> {
  const { store, ingest, close } = await openIngest(config, clock)
  try {
    const performAct = createPerformAct({
      write: ingest,
      findAct: (asked, eventId) => loadManualEvent(store.reader, asked, eventId),
      readAccess: (query) => readAccess(store.reader, clock, query),
      isErased: async (...whom) => (await loadErasure(store.reader, ...whom)) !== null,
      clock,
    })
    return actJson(
      await performAct({
        environment: environment ?? defaultEnvironment(config.endpoints),
        customerId,
        act,
        actor: systemUser(),
        reason,
        idempotencyKey: null,
      }),
    )
  } finally {
    await close()
  }
}
