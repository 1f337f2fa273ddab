import type { Config } from '../config/types.js'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import type { StateDifference } from '../recompute/compare.js'
import { createRecompute } from '../recompute/recompute.js'
import { ENVIRONMENTS } from '../store/keys.js'
import type { SharedOptions } from './command.js'
import type { CliContext } from './context.js'
import { readStore } from './read-store.js'

/**
 * Compares what is stored with what its events say, in both environments unless one is named, and tells each difference as it is found, in either form: in a
 * damaged store there may be one for every event.
 * @throws {LatchkeyError} `rebuild_differs`; `rebuild_running` while sources move to another policy; `store_unavailable`
 */
export async function verifyStore(
  config: Config,
  { json, environment: only }: SharedOptions & { readonly environment?: Environment },
  { out, now }: CliContext,
): Promise<void> {
  let count = 0
  const tell = (difference: StateDifference): void => {
    const { environment, kind, id } = difference
    if (json) out(`${count === 0 ? '' : ','}${JSON.stringify(difference)}`)
    else out(`${environment}  ${kind}  ${id}\n`)
    count += 1
  }
  await readStore(config, async (db) => {
    if (json) out('{"differences":[')
    try {
      const scope = only === undefined ? ENVIRONMENTS : [only]
      const plan = { scope, endpoints: null, policy: null, mode: 'compare' } as const
      await createRecompute({ db, clock: now })(plan, { onDifference: tell })
    } finally {
      // Those found before a failure are JSON too.
      if (json) out(']}\n')
    }
  })
  if (count > 0) {
    const counted = count === 1 ? 'one thing is stored' : `${count} things are stored`
    const message = `${counted} differently from what the stored events say: latchkey rebuild corrects that`
    throw new LatchkeyError('rebuild_differs', message)
  }
  if (!json) out(`everything${only === undefined ? '' : ` in ${only}`} is stored as the events say\n`)
}
