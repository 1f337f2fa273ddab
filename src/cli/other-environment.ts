import type { customerJson } from '../handlers/entitlement-json.js'
import type { Environment } from '../provider/event.js'
import type { ActOptions } from './act.js'
import { otherThan } from './command.js'
import type { CliContext } from './context.js'
import { throughDaemon } from './daemon-client.js'

type Known = ReturnType<typeof customerJson>

/**
 * Reads what is known of a customer through the daemon, or from its stopped database. Null where nothing is, and where
 * the key may not ask: a hint must not fail the command.
 */
async function readKnown(
  customerId: string,
  environment: Environment,
  options: ActOptions,
  context: CliContext,
): Promise<Known | null> {
  const path = `/customers/${encodeURIComponent(customerId)}?environment=${environment}`
  try {
    const known = await throughDaemon(options, context, { method: 'GET', path }, async (config) => {
      const { readKnownCustomer } = await import('./read-access.js')
      const { customerJson } = await import('../handlers/entitlement-json.js')
      const customer = await readKnownCustomer(config, { environment, customerId }, context)
      return customer && customerJson(customer)
    })
    return known as Known | null
  } catch {
    return null
  }
}

/**
 * Notes after an act that the customer is known in the other environment alone, unless the environment was named.
 * @param eventId the act's own, which makes nobody known
 */
export async function noteOtherEnvironment(
  {
    customerId,
    environment,
    eventId,
  }: Pick<Known, 'customerId' | 'environment'> & { readonly eventId: string },
  options: ActOptions,
  context: CliContext,
): Promise<void> {
  if (options.environment !== undefined || options.json) return
  const here = await readKnown(customerId, environment, options, context)
  if (here?.sources.some((source) => source.eventId !== eventId)) return
  const other = otherThan(environment)
  const there = await readKnown(customerId, other, options, context)
  if (there === null) return
  const active = there.sources.filter((source) => source.active).map(({ productId }) => productId)
  const what = active.length === 0 ? 'is known' : `has ${[...new Set(active)].join(', ')}`
  context.err(
    `note: ${customerId} ${what} in ${other}, and has nothing else in ${environment}: to act there, add --environment ${other}\n`,
  )
}

/** Notes after a refusal to revoke in which environment there is such a grant, unless the environment was named. */
export async function noteOtherGrant(
  customerId: string,
  productId: string,
  options: ActOptions,
  context: CliContext,
): Promise<void> {
  if (options.environment !== undefined || options.json) return
  for (const environment of ['live', 'sandbox'] as const) {
    const known = await readKnown(customerId, environment, options, context)
    const isGranted = known?.sources.some(
      (source) => source.kind === 'manual' && source.active && source.productId === productId,
    )
    if (isGranted)
      context.err(
        `note: ${productId} was granted to ${customerId} in ${environment}: add --environment ${environment}\n`,
      )
  }
}
