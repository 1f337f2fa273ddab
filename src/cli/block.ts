import type { Command } from 'commander'
import { type ActOptions, withActOptions } from './act.js'
import { parseId } from './command.js'
import type { CliContext } from './context.js'

/** `latchkey block`: no access, whatever is paid for or granted, until unblocked. */
export function blockCommand(program: Command, context: CliContext): void {
  withActOptions(program.command('block'), 'block cus_1 --reason "chargeback under review"')
    .description('block a customer, for one product or for all')
    .argument('<customer>', 'the customer id', parseId)
    .argument('[product]', 'the product id (default: every product)', parseId)
    .requiredOption('--reason <text>', 'why, for whoever asks later')
    .action(async (customerId: string, productId: string | undefined, options: ActOptions) => {
      const { runAct } = await import('./run-act.js')
      const act = { type: 'manual.blocked', productId: productId ?? null } as const
      const request = { method: 'PUT', path: blockPath(productId), body: {} } as const
      await runAct({ customerId, act, ...request }, options, context)
    })
}

/** Below the customer: the block on one product, or on all. */
export function blockPath(productId: string | undefined): string {
  return productId === undefined ? 'blocks' : `blocks/${encodeURIComponent(productId)}`
}
