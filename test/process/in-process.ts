import { Readable } from 'node:stream'
import { createCommands } from '../../src/cli/commands.js'
import { runCli } from '../../src/cli/program.js'
import type { ProgramExit } from '../setup/program.js'

const COMMANDS = createCommands({ openInput: () => Readable.from([]) })

/** What of a command line does not hang on the process: run here, as if by the program in that folder. */
export async function runHere(
  folder: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<ProgramExit> {
  let stdout = ''
  let stderr = ''
  const code = await runCli(
    args,
    {
      env,
      folder,
      now: Date.now,
      isTerminal: false,
      out: (text) => {
        stdout += text
      },
      err: (text) => {
        stderr += text
      },
    },
    COMMANDS,
  )
  return { code, stdout, stderr }
}
