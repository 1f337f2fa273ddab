import type { Command } from 'commander'
import { LatchkeyError } from '../errors.js'
import { type ActOptions, withActOptions } from './act.js'
import { parseId } from './command.js'
import type { CliContext } from './context.js'

interface EraseOptions extends ActOptions {
  readonly yes?: true
}

/** `latchkey erase`: ends what a customer has, and removes from all that is stored who they are. */
export function eraseCommand(program: Command, context: CliContext): void {
  withActOptions(program.command('erase'), 'erase cus_1 --reason "asked for it on 3 March" --yes')
    .description('erase a customer: access ends, and nothing that is stored says who they are')
    .argument('<customer>', 'the customer id', parseId)
    .option('--reason <text>', 'why, without anything personal: it is kept')
    .option('--yes', 'do it: it can not be undone')
    .action(async (customerId: string, options: EraseOptions) => {
      if (!options.yes) throw needsYes(customerId)
      const { runErase } = await import('./run-erase.js')
      await runErase(customerId, options, context)
    })
}

function needsYes(customerId: string): LatchkeyError {
  const what = `it ends what ${customerId} has, and removes who they are from all that is stored`
  return new LatchkeyError('usage', `erase needs --yes: ${what}, which can not be undone`)
}
