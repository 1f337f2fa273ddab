import type { Command } from 'commander'
import { explanationJson } from '../handlers/entitlement-json.js'
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
import { explanationText } from './explanation-text.js'

interface ExplainOptions extends SharedOptions {
  readonly at?: number
  readonly environment?: Environment
}

/** `latchkey explain`: why a customer may use a product, or may not. Nothing known is an answer too. */
export function explainCommand(program: Command, context: CliContext): void {
  const command = program.command('explain')
  withSharedOptions(command, 'explain cus_1 pro_1', 'explain cus_1 pro_1 --at 2026-01-31T00:00:00Z')
    .description('show why a customer may use a product, or may not, event by event')
    .argument('<customer>', 'the customer id', parseId)
    .argument('<product>', 'the product id', parseId)
    .option('--at <time>', 'as of that instant (default: now)', parseInstant)
    .addOption(environmentOption())
    .action(async (customerId: string, productId: string, options: ExplainOptions) => {
      const { readExplanation } = await import('./read-access.js')
      const { config } = await loadNamedConfig(options, context)
      const environment = options.environment ?? defaultEnvironment(config.endpoints)
      const query = { customerId, productId, environment, at: options.at ?? null }
      const explanation = await readExplanation(config, query, context)
      context.out(options.json ? jsonLine(explanationJson(explanation)) : explanationText(explanation))
      if (options.json || explanation.entitlement.status !== 'none') return
      const other = otherThan(environment)
      const { entitlement } = await readExplanation(config, { ...query, environment: other }, context)
      if (entitlement.status !== 'none')
        context.out(`In ${other}: ${productId} ${entitlement.status} (--environment ${other} explains it)\n`)
    })
}
