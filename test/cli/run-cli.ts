import { Readable } from 'node:stream'
import { createCommands } from '../../src/cli/commands.js'
import { runCli } from '../../src/cli/program.js'

export const NOW = Date.UTC(2026, 0, 31, 12)

export interface CliRun {
  readonly exitCode: number
  readonly out: string
  readonly err: string
}

const COMMANDS = createCommands({ openInput: () => Readable.from([]) })

/** Runs a command line in this process, at a fixed time, in a folder that holds no config. */
export async function cli(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CliRun> {
  let out = ''
  let err = ''
  const exitCode = await runCli(
    args,
    {
      env,
      folder: '/nowhere',
      now: () => NOW,
      isTerminal: false,
      out: (text) => {
        out += text
      },
      err: (text) => {
        err += text
      },
    },
    COMMANDS,
  )
  return { exitCode, out, err }
}
