import type { Readable } from 'node:stream'
import { backupCommand } from './backup.js'
import { blockCommand } from './block.js'
import { checkCommand } from './check.js'
import type { RegisterCommand } from './command.js'
import { compactCommand } from './compact.js'
import { configCheckCommand } from './config-check.js'
import { doctorCommand } from './doctor.js'
import { eraseCommand } from './erase.js'
import { eventsBodyCommand, eventsExportCommand, eventsListCommand, eventsShowCommand } from './events.js'
import { explainCommand } from './explain.js'
import { grantCommand } from './grant.js'
import { importCommand } from './import.js'
import { keysCreateCommand } from './keys-create.js'
import { keysListCommand } from './keys-list.js'
import { linkCommand } from './link.js'
import { migrateCommand } from './migrate.js'
import { policyApplyCommand } from './policy-apply.js'
import { policyDiffCommand } from './policy-diff.js'
import { policyShowCommand } from './policy-show.js'
import { rebuildCommand } from './rebuild.js'
import { replayCommand } from './replay.js'
import { restoreCommand } from './restore.js'
import { revokeCommand } from './revoke.js'
import { serveCommand } from './serve.js'
import { syncCheckCommand } from './sync-check.js'
import { syncPauseCommand, syncResumeCommand } from './sync-pause.js'
import { syncPlanCommand } from './sync-plan.js'
import { syncRunCommand } from './sync-run.js'
import { syncStatusCommand } from './sync-status.js'
import { triggerCommand } from './trigger.js'
import { unblockCommand } from './unblock.js'

export interface CommandsDeps {
  /** What is piped in, if a command is told to read it. */
  readonly openInput: () => Readable
}

/** Every command that there is, in the order in which the help lists them. */
export function createCommands({ openInput }: CommandsDeps): readonly RegisterCommand[] {
  return [
    serveCommand,
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
