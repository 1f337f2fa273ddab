import type { Readable } from 'node:stream'
import { checkCommand, explainCommand } from './access.js'
import {
  blockCommand,
  eraseCommand,
  grantCommand,
  linkCommand,
  revokeCommand,
  unblockCommand,
} from './acts.js'
import type { RegisterCommand } from './command.js'
import { configCheckCommand, keysCreateCommand, keysListCommand } from './config.js'
import { reloadCommand, serveCommand, statusCommand, stopCommand } from './control.js'
import { backupCommand, compactCommand, migrateCommand, restoreCommand } from './database.js'
import { doctorCommand } from './doctor.js'
import { eventsBodyCommand, eventsExportCommand, eventsListCommand, eventsShowCommand } from './events.js'
import { importCommand } from './import.js'
import {
  policyApplyCommand,
  policyDiffCommand,
  policyShowCommand,
  rebuildCommand,
  replayCommand,
} from './recompute.js'
import {
  syncCheckCommand,
  syncPauseCommand,
  syncPlanCommand,
  syncResumeCommand,
  syncRunCommand,
  syncStatusCommand,
} from './sync.js'
import { triggerCommand } from './trigger.js'

export interface CommandsDeps {
  /** What is piped in, if a command is told to read it. */
  readonly openInput: () => Readable
}

/** Every command that there is, in the order in which the help lists them. */
export function createCommands({ openInput }: CommandsDeps): readonly RegisterCommand[] {
  return [
    serveCommand,
    statusCommand,
    reloadCommand,
    stopCommand,
    triggerCommand,
    checkCommand,
    explainCommand,
    eventsListCommand,
    eventsShowCommand,
    eventsBodyCommand,
    eventsExportCommand,
    grantCommand,
    revokeCommand,
    blockCommand,
    unblockCommand,
    linkCommand,
    eraseCommand,
    keysCreateCommand,
    keysListCommand,
    configCheckCommand,
    policyShowCommand,
    policyDiffCommand,
    policyApplyCommand,
    rebuildCommand,
    replayCommand,
    importCommand(openInput),
    syncStatusCommand,
    syncPlanCommand,
    syncRunCommand,
    syncCheckCommand,
    syncPauseCommand,
    syncResumeCommand,
    backupCommand,
    restoreCommand,
    compactCommand,
    migrateCommand,
    doctorCommand,
  ]
}
