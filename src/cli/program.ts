import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import type { RegisterCommand } from './command.js'
import type { CliContext } from './context.js'
import { reportFailure } from './failure.js'

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
    // Errors are reported in one place, with an exit code and, with `--json`, as JSON.
    .configureOutput({ writeOut: context.out, writeErr: context.err, outputError: () => {} })
  for (const register of commands) register(program, context)
  try {
    await program.parseAsync(args, { from: 'user' })
    return 0
  } catch (error) {
    return reportFailure(error, context, args.includes('--json'))
  }
}

/** The version of this program's package. */
export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(packageFile(fileURLToPath(import.meta.url)), 'utf8'))
  return String(version)
}

/** The nearest one above: the built program is one folder deeper than its source. */
function packageFile(below: string): string {
  const folder = dirname(below)
  const file = join(folder, 'package.json')
  if (existsSync(file)) return file
  if (folder === below) throw new Error('there is no package.json above the program')
  return packageFile(folder)
}
