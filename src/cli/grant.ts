import { type Command, InvalidArgumentError } from 'commander'
import { DURATION_PATTERN, parseDuration } from '../config/duration.js'
import { type ActOptions, withActOptions } from './act.js'
import { instantIn, parseId } from './command.js'
import type { CliContext } from './context.js'

interface GrantOptions extends ActOptions {
  /** Epoch milliseconds. */
  readonly until?: number
}

const NO_END = 'It is no ISO 8601 time, such as 2026-01-31T00:00:00Z, and no duration, such as 30d.'

/** `latchkey grant`: gives a product by hand, until a time or for good. */
export function grantCommand(program: Command, context: CliContext): void {
  // The clock is asked as the option is read, so that a duration counts from now.
  const parseUntil = (text: string): number => {
    const until = DURATION_PATTERN.test(text) ? context.now() + parseDuration(text) : instantIn(text)
    if (until === null) throw new InvalidArgumentError(NO_END)
    return until
  }

  withActOptions(program.command('grant'), 'grant cus_1 pro_1 --until 30d --reason "support case 17"')
    .description('grant a product to a customer by hand')
    .argument('<customer>', 'the customer id', parseId)
    .argument('<product>', 'the product id', parseId)
    .option('--until <time>', 'an instant, or a duration such as 30d (default: for good)', parseUntil)
    .requiredOption('--reason <text>', 'why, for whoever asks later')
    .action(async (customerId: string, productId: string, options: GrantOptions) => {
      const { runAct } = await import('./run-act.js')
      const { until = null } = options
      const end = until === null ? {} : { until: new Date(until).toISOString() }
      const act = { type: 'manual.granted', productId, until } as const
      const request = { method: 'POST', path: 'grants', body: { productId, ...end } } as const
      await runAct({ customerId, act, ...request }, options, context)
    })
}
