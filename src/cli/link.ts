import type { Command } from 'commander'
import { withActOptions } from './act.js'
import { parseId } from './command.js'
import type { CliContext } from './context.js'
import type { LinkOptions } from './run-link.js'

/** `latchkey link`: says which platform accounts are a customer's. */
export function linkCommand(program: Command, context: CliContext): void {
  withActOptions(program.command('link'), 'link cus_1 --community 80351110224678912')
    .description("link a customer's platform accounts; what is left out stays as it is")
    .argument('<customer>', 'the customer id', parseId)
    .option('--community <id>', "the account's id in the community", parseId)
    .option('--messenger <id>', "the account's id in the messenger", parseId)
    .option('--reason <text>', 'why, for whoever asks later')
    .action(async (customerId: string, options: LinkOptions) => {
      const { runLink } = await import('./run-link.js')
      await runLink(customerId, options, context)
    })
}
