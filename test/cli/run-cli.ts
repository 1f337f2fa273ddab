import { checkCommand } from '../../src/cli/check.js'
import type { RegisterCommand } from '../../src/cli/command.js'
import { configCheckCommand } from '../../src/cli/config-check.js'
import { eventsBodyCommand } from '../../src/cli/events-body.js'
import { eventsExportCommand } from '../../src/cli/events-export.js'
import { eventsListCommand } from '../../src/cli/events-list.js'
import { eventsShowCommand } from '../../src/cli/events-show.js'
import { explainCommand } from '../../src/cli/explain.js'
import { keysCreateCommand } from '../../src/cli/keys-create.js'
import { keysListCommand } from '../../src/cli/keys-list.js'
import { policyApplyCommand } from '../../src/cli/policy-apply.js'
import { policyDiffCommand } from '../../src/cli/policy-diff.js'
import { policyShowCommand } from '../../src/cli/policy-show.js'
import { runCli } from '../../src/cli/program.js'
import { createFileReadAccess, createFileReadExplanation } from '../../src/cli/read-access.js'
import { rebuildCommand } from '../../src/cli/rebuild.js'
import { triggerCommand } from '../../src/cli/trigger.js'

export const NOW = Date.UTC(2026, 0, 31, 12)

export interface CliRun {
  readonly exitCode: number
  readonly out: string
  readonly err: string
}

const COMMANDS: readonly RegisterCommand[] = [
  triggerCommand,
  checkCommand(createFileReadAccess(() => NOW)),
  explainCommand(createFileReadExplanation(() => NOW)),
  eventsListCommand,
  eventsShowCommand,
  eventsBodyCommand,
  eventsExportCommand,
  keysCreateCommand,
  keysListCommand,
  configCheckCommand,
  policyShowCommand,
  policyDiffCommand,
  policyApplyCommand,
  rebuildCommand,
]

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
