import type { Command } from 'commander'
import { type ActOptions, withActOptions } from './act.js'
import { parseId } from './command.js'
import type { CliContext } from './context.js'

/** `latchkey revoke`: takes back what was granted by hand; what was paid for stays. */
export function revokeCommand(program: Command, context: CliContext): void {
  withActOptions(program.command('revoke'), 'revoke cus_1 pro_1 --reason "trial is over"')
    .description('revoke what was granted by hand')
    .argument('<customer>', 'the customer id', parseId)
    .argument('<product>', 'the product id', parseId)
    .option('--reason <text>', 'why, for whoever asks later')
    .action(async (customerId: string, productId: string, options: ActOptions) => {
      const { runAct } = await import('./run-act.js')
      const path = `grants/${encodeURIComponent(productId)}`
      const act = { type: 'manual.revoked', productId } as const
      await runAct({ customerId, act, method: 'DELETE', path, body: {} }, options, context)
    })
}
