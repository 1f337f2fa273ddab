import type { Command } from 'commander'
import { LatchkeyError } from '../errors.js'
import { type ActOptions, parseReason, runAct, withActOptions } from './act.js'
import { parseId } from './command.js'
import type { CliContext } from './context.js'

interface LinkOptions extends ActOptions {
  readonly community?: string
  readonly messenger?: string
}

/** `latchkey link`: says which platform accounts are a customer's. */
export function linkCommand(program: Command, context: CliContext): void {
  withActOptions(program.command('link'), 'link cus_1 --community 80351110224678912')
    .description("link a customer's platform accounts; what is left out stays as it is")
    .argument('<customer>', 'the customer id', parseId)
    .option('--community <id>', "the account's id in the community", parseId)
    .option('--messenger <id>', "the account's id in the messenger", parseId)
    .option('--reason <text>', 'why, for whoever asks later', parseReason)
    .action((customerId: string, options: LinkOptions) => {
      const { community: communityId = null, messenger: messengerId = null } = options
      if (communityId === null && messengerId === null) {
        throw new LatchkeyError('usage', 'name an account: --community, --messenger or both')
      }
      const act = { type: 'manual.identity_linked', communityId, messengerId } as const
      const request = { method: 'PUT', path: 'identities', body: { communityId, messengerId } } as const
      return runAct({ customerId, act, ...request }, options, context)
    })
}
