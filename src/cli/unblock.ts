import type { Command } from 'commander'
import { type ActOptions, withActOptions } from './act.js'
import { blockPath } from './block.js'
import { parseId } from './command.js'
import type { CliContext } from './context.js'

/** `latchkey unblock`: lifts the block on one product, or every block. */
export function unblockCommand(program: Command, context: CliContext): void {
  withActOptions(program.command('unblock'), 'unblock cus_1 --reason "review is over"')
    .description('lift the block on one product, or every block on a customer')
    .argument('<customer>', 'the customer id', parseId)
    .argument('[product]', 'the product id (default: every block)', parseId)
    .option('--reason <text>', 'why, for whoever asks later')
    .action(async (customerId: string, productId: string | undefined, options: ActOptions) => {
      const { runAct } = await import('./run-act.js')
      const act = { type: 'manual.unblocked', productId: productId ?? null } as const
      const request = { method: 'DELETE', path: blockPath(productId), body: {} } as const
      await runAct({ customerId, act, ...request }, options, context)
    })
}
