import { LatchkeyError } from '../errors.js'
import { communityIdText, messengerIdText } from '../handlers/identities.js'
import type { ActOptions } from './act.js'
import { checkedOption } from './checked-option.js'
import type { CliContext } from './context.js'
import { runAct } from './run-act.js'

export interface LinkOptions extends ActOptions {
  readonly community?: string
  readonly messenger?: string
}

/**
 * Links what is named, and leaves the rest as it is.
 * @throws {LatchkeyError} `usage` for no account, or what can't be the id of one
 */
export async function runLink(customerId: string, options: LinkOptions, context: CliContext): Promise<void> {
  const communityId = checkedOption('--community', communityIdText, options.community)
  const messengerId = checkedOption('--messenger', messengerIdText, options.messenger)
  if (communityId === null && messengerId === null) {
    throw new LatchkeyError('usage', 'name an account: --community, --messenger or both')
  }
  const act = { type: 'manual.identity_linked', communityId, messengerId } as const
  const request = { method: 'PUT', path: 'identities', body: { communityId, messengerId } } as const
  await runAct({ customerId, act, ...request }, options, context)
}
