import type { Command } from 'commander'
import type { Environment } from '../provider/event.js'
import { type DaemonOptions, environmentOption, withDaemonOption, withSharedOptions } from './command.js'

export interface ActOptions extends DaemonOptions {
  readonly environment?: Environment
  readonly reason?: string
}

/** The options that every command by which an operator acts has. */
export function withActOptions(command: Command, example: string): Command {
  return withDaemonOption(withSharedOptions(command, example)).addOption(environmentOption())
}
