import type { Config } from '../config/types.js'
import { LatchkeyError } from '../errors.js'
import { stateDifferences } from '../ingest/verify-state.js'
import type { Environment } from '../provider/event.js'
import { policyInForce } from '../store/policy.js'
import type { SharedOptions } from './command.js'
import type { CliContext } from './context.js'
import { readStore } from './read-store.js'

/**
 * Compares what is stored with what its events say, in both environments unless one is named, and tells each difference as it is found, in either form: in a
 * damaged store there may be one for every event.
 * @throws {LatchkeyError} `rebuild_differs`, `store_unavailable`
 */
export async function verifyStore(
  config: Config,
  { json, environment: only }: SharedOptions & { readonly environment?: Environment },
  { out, now }: CliContext,
): Promise<void> {
  let count = 0
  let needsReplay = false
  await readStore(config, async (db) => {
    if (json) out('{"differences":[')
    try {
      for await (const difference of stateDifferences(db, await policyInForce(db), now)) {
        const { environment, kind, id } = difference
        if (only !== undefined && environment !== only) continue
        if (!json) out(`${environment}  ${kind}  ${id}\n`)
        else out(`${count === 0 ? '' : ','}${JSON.stringify(difference)}`)
        count += 1
        needsReplay ||= kind === 'link' || kind === 'place'
      }
    } finally {
      // Those found before a failure are JSON too.
      if (json) out(']}\n')
    }
  })
  if (count > 0) {
    const counted = count === 1 ? 'one thing stands' : `${count} things stand`
    const mend = `latchkey ${needsReplay ? 'replay, and then latchkey rebuild, mend' : 'rebuild mends'} that`
    throw new LatchkeyError('rebuild_differs', `${counted} otherwise than the stored events say: ${mend}`)
  }
  if (!json) out(`everything${only === undefined ? '' : ` in ${only}`} stands as the stored events say\n`)
}
