import type { Readable } from 'node:stream'
import { accessCommands } from './access.js'
import { actsCommands } from './acts.js'
import type { RegisterCommand } from './command.js'
import { configCommands } from './config.js'
import { controlCommands } from './control.js'
import { databaseCommands } from './database.js'
import { doctorCommand } from './doctor.js'
import { eventsCommands } from './events.js'
import { importCommand } from './import.js'
import { recomputeCommands } from './recompute.js'
import { syncCommands } from './sync.js'
import { triggerCommand } from './trigger.js'

export interface CommandsDeps {
  /** Standard input, for a command that reads it. */
  readonly openInput: () => Readable
}

/** Every command, in the order of the help. */
export function createCommands({ openInput }: CommandsDeps): readonly RegisterCommand[] {
  return [
    ...controlCommands,
    triggerCommand,
    ...accessCommands,
    ...eventsCommands,
    ...actsCommands,
    ...configCommands,
    ...recomputeCommands,
    importCommand(openInput),
    ...syncCommands,
    ...databaseCommands,
    doctorCommand,
  ]
}
