import type { Command } from 'commander'
import { entitlementFor } from '../entitlements/entitlement.js'
import type { AccessAnswer, Entitlement, SourceView } from '../entitlements/model.js'
import { accessJson, entitlementJson } from '../handlers/entitlement-json.js'
import type { Environment } from '../provider/event.js'
import {
  defaultEnvironment,
  environmentOption,
  jsonLine,
  loadNamedConfig,
  otherThan,
  parseId,
  parseInstant,
  type SharedOptions,
  withSharedOptions,
} from './command.js'
import type { CliContext } from './context.js'

interface CheckOptions extends SharedOptions {
  readonly at?: number
  readonly environment?: Environment
}

/** `latchkey check`: what a customer may use. No access is an answer too, and no failure. */
export function checkCommand(program: Command, context: CliContext): void {
  const command = program.command('check')
  withSharedOptions(command, 'check cus_1', 'check cus_1 pro_1 --at 2026-01-31T00:00:00Z')
    .description('show what a customer may use')
    .argument('<customer>', 'the customer id', parseId)
    .argument('[product]', 'the product id (default: every product)', parseId)
    .option('--at <time>', 'as of that instant (default: now)', parseInstant)
    .addOption(environmentOption())
    .action(async (customerId: string, productId: string | undefined, options: CheckOptions) => {
      const { readAccess } = await import('./read-access.js')
      const { config } = await loadNamedConfig(options, context)
      const environment = options.environment ?? defaultEnvironment(config.endpoints)
      const query = { customerId, at: options.at ?? null }
      const answer = await readAccess(config, { ...query, environment }, context)
      const other = options.json
        ? null
        : await readAccess(config, { ...query, environment: otherThan(environment) }, context)
      context.out(
        productId === undefined
          ? showAll(answer, other, options)
          : showOne(answer, other, productId, options),
      )
      const isConfigured = config.endpoints.some((endpoint) => endpoint.environment === environment)
      if (!isConfigured && !options.json)
        context.err(`note: no endpoint of the environment ${environment} is configured\n`)
    })
}

/** @param other what they have in the other environment, where that is to be shown */
function showAll(answer: AccessAnswer, other: AccessAnswer | null, { json }: CheckOptions): string {
  if (json) return jsonLine(accessJson(answer))
  if (answer.entitlements.length > 0)
    return answer.entitlements.map((entitlement) => entitlementLine(entitlement)).join('')
  const elsewhere = productsText(other?.entitlements ?? [])
  const hint = elsewhere === null ? '' : ` (in ${other?.environment}: ${elsewhere})`
  return `${answer.customerId} has no access in ${answer.environment}${hint}\n`
}

function showOne(
  answer: AccessAnswer,
  other: AccessAnswer | null,
  productId: string,
  { json }: CheckOptions,
): string {
  const entitlement = entitlementFor(productId, answer)
  if (json) return jsonLine(entitlementJson(entitlement))
  const elsewhere = other?.entitlements.find((one) => one.productId === productId)
  if (elsewhere === undefined || entitlement.status !== 'none') return entitlementLine(entitlement)
  return entitlementLine(entitlement, `(in ${other?.environment}: ${elsewhere.status})`)
}

/** `pro_1  active  past due  since 2026-01-31T00:00:00.000Z  (payment pay_2; ended: payment pay_1)`. */
function entitlementLine(
  { productId, status, pastDue, since, until, sources }: Entitlement,
  ...hints: readonly string[]
): string {
  const active = sources.filter((source) => source.active).map(sourceName)
  const ended = sources.filter((source) => !source.active).map(sourceName)
  const grounds = [
    ...(active.length === 0 ? [] : [active.join(', ')]),
    ...(ended.length === 0 ? [] : [`ended: ${ended.join(', ')}`]),
  ]
  const parts = [
    productId,
    status,
    ...(pastDue ? ['past due'] : []),
    ...(since === null ? [] : [`since ${new Date(since).toISOString()}`]),
    ...(until === null ? [] : [`until ${new Date(until).toISOString()}`]),
    ...(grounds.length === 0 ? [] : [`(${grounds.join('; ')})`]),
    ...hints,
  ]
  return `${parts.join('  ')}\n`
}

/** `pro_1, pro_2`: the products with access, or all with their status where none has any; null: there is none at all. */
function productsText(entitlements: readonly Entitlement[]): string | null {
  if (entitlements.length === 0) return null
  const active = entitlements.filter((one) => one.active)
  if (active.length > 0) return active.map(({ productId }) => productId).join(', ')
  return entitlements.map(({ productId, status }) => `${productId} ${status}`).join(', ')
}

function sourceName({ kind, id }: SourceView): string {
  return `${kind} ${id}`
}
