import { backupCommand } from './backup.js'
import { blockCommand } from './block.js'
import { checkCommand } from './check.js'
import { configCheckCommand } from './config-check.js'
import { processContext } from './context.js'
import { doctorCommand } from './doctor.js'
import { eventsBodyCommand } from './events-body.js'
import { eventsExportCommand } from './events-export.js'
import { eventsListCommand } from './events-list.js'
import { eventsShowCommand } from './events-show.js'
import { explainCommand } from './explain.js'
import { grantCommand } from './grant.js'
import { keysCreateCommand } from './keys-create.js'
import { keysListCommand } from './keys-list.js'
import { linkCommand } from './link.js'
import { policyApplyCommand } from './policy-apply.js'
import { policyDiffCommand } from './policy-diff.js'
import { policyShowCommand } from './policy-show.js'
import { runCli } from './program.js'
import { createFileReadAccess, createFileReadExplanation } from './read-access.js'
import { rebuildCommand } from './rebuild.js'
import { restoreCommand } from './restore.js'
import { revokeCommand } from './revoke.js'
import { serveCommand } from './serve.js'
import { triggerCommand } from './trigger.js'
import { unblockCommand } from './unblock.js'

const context = processContext()

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // Whoever read has seen enough, as `head` has after some lines: nothing went wrong.
  if (error.code === 'EPIPE') process.exit()
  throw error
})

process.exitCode = await runCli(process.argv.slice(2), context, [
  serveCommand,
  triggerCommand,
  checkCommand(createFileReadAccess(context.now)),
  explainCommand(createFileReadExplanation(context.now)),
  eventsListCommand,
  eventsShowCommand,
  eventsBodyCommand,
  eventsExportCommand,
  grantCommand,
  revokeCommand,
  blockCommand,
  unblockCommand,
  linkCommand,
  keysCreateCommand,
  keysListCommand,
  configCheckCommand,
  policyShowCommand,
  policyDiffCommand,
  policyApplyCommand,
  rebuildCommand,
  backupCommand,
  restoreCommand,
  doctorCommand,
])
