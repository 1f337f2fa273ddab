import type { Command } from 'commander'
import type { AccessAnswer } from '../entitlements/answer.js'
import { entitlementFor } from '../entitlements/entitlement.js'
import type { Entitlement, SourceView } from '../entitlements/model.js'
import { accessJson, entitlementJson } from '../handlers/entitlement-json.js'
import type { Environment } from '../provider/event.js'
import {
  defaultEnvironment,
  environmentOption,
  jsonLine,
  loadNamedConfig,
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
      const answer = await readAccess(config, { customerId, environment, at: options.at ?? null }, context)
      context.out(productId === undefined ? showAll(answer, options) : showOne(answer, productId, options))
      const isConfigured = config.endpoints.some((endpoint) => endpoint.environment === environment)
      if (!isConfigured && !options.json)
        context.err(`note: no endpoint of the environment ${environment} is configured\n`)
    })
}

function showAll(answer: AccessAnswer, { json }: CheckOptions): string {
  if (json) return jsonLine(accessJson(answer))
  if (answer.entitlements.length > 0) return answer.entitlements.map(entitlementLine).join('')
  return `${answer.customerId} has no access in ${answer.environment}\n`
}

function showOne(answer: AccessAnswer, productId: string, { json }: CheckOptions): string {
  const entitlement = entitlementFor(productId, answer)
  return json ? jsonLine(entitlementJson(entitlement)) : entitlementLine(entitlement)
}

/** `pro_1  active  since 2026-01-31T00:00:00.000Z  (payment pay_2; ended: payment pay_1)`. */
function entitlementLine({ productId, status, since, until, sources }: Entitlement): string {
  const active = sources.filter((source) => source.active).map(sourceName)
  const ended = sources.filter((source) => !source.active).map(sourceName)
  const grounds = [
    ...(active.length === 0 ? [] : [active.join(', ')]),
    ...(ended.length === 0 ? [] : [`ended: ${ended.join(', ')}`]),
  ]
  const parts = [
    productId,
    status,
    ...(since === null ? [] : [`since ${new Date(since).toISOString()}`]),
    ...(until === null ? [] : [`until ${new Date(until).toISOString()}`]),
    ...(grounds.length === 0 ? [] : [`(${grounds.join('; ')})`]),
  ]
  return `${parts.join('  ')}\n`
}

function sourceName({ kind, id }: SourceView): string {
  return `${kind} ${id}`
}
