import type { Command } from 'commander'
import type { Config } from '../config/types.js'
import { LatchkeyError } from '../errors.js'
import { stateDifferences } from '../ingest/verify-state.js'
import { policyInForce } from '../store/policy.js'
import { jsonLine, loadNamedConfig, withSharedOptions } from './command.js'
import type { CliContext } from './context.js'
import { type ChangeOptions, withDaemonOption } from './daemon-client.js'
import { differenceText } from './difference-text.js'
import { readStore } from './read-store.js'
import { runRebuild } from './run-rebuild.js'

interface RebuildOptions extends ChangeOptions {
  readonly verify?: true
}

/** `latchkey rebuild`: folds all stored events anew under the policy in force. */
export function rebuildCommand(program: Command, context: CliContext): void {
  withDaemonOption(withSharedOptions(program.command('rebuild'), 'rebuild', 'rebuild --verify'))
    .description('fold all stored events anew, beside the live state, and swap')
    .option('--verify', 'only compare: names what differs, changes nothing, and exits 1 if anything does')
    .action(async (options: RebuildOptions) => {
      if (options.verify) return verify(loadNamedConfig(options, context).config, options, context)
      const summary = await runRebuild('in force', options, context)
      context.out(options.json ? jsonLine(summary) : differenceText(summary, { conditional: false }))
    })
}

/** Tells each difference as it is found, in either form: in a damaged store there may be one for every event. */
async function verify(config: Config, { json }: RebuildOptions, { out, now }: CliContext): Promise<void> {
  let count = 0
  if (json) out('{"differences":[')
  await readStore(config, async (db) => {
    for await (const difference of stateDifferences(db, await policyInForce(db), now())) {
      const { environment, kind, id } = difference
      if (!json) out(`${environment}  ${kind}  ${id}\n`)
      else out(`${count === 0 ? '' : ','}${JSON.stringify(difference)}`)
      count += 1
    }
  })
  if (json) out(']}\n')
  if (count > 0) {
    const counted = count === 1 ? 'one thing stands' : `${count} things stand`
    throw new LatchkeyError('rebuild_differs', `${counted} otherwise than the stored events say`)
  }
  if (!json) out('everything stands as the stored events say\n')
}
