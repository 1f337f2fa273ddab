import { Command } from 'commander'
import type { RegisterCommand } from './command.js'
import type { CliContext } from './context.js'
import { reportFailure } from './failure.js'
import { packageVersion } from './package-version.js'

/** Runs one command line (without the program's own name) and resolves to its exit code; never rejects. */
export async function runCli(
  args: readonly string[],
  context: CliContext,
  commands: readonly RegisterCommand[],
): Promise<number> {
  const program = new Command('latchkey')
    .description('Turns signed payment webhooks into access.')
    .version(packageVersion())
    .exitOverride()
    // Errors are told in one place, with an exit code and, if asked for, as JSON.
    .configureOutput({ writeOut: context.out, writeErr: context.err, outputError: () => {} })
  for (const register of commands) register(program, context)
  try {
    await program.parseAsync(args, { from: 'user' })
    return 0
  } catch (error) {
    return reportFailure(error, context, args.includes('--json'))
  }
}
