import { checkCommand } from './check.js'
import { configCheckCommand } from './config-check.js'
import { processContext } from './context.js'
import { keysCreateCommand } from './keys-create.js'
import { keysListCommand } from './keys-list.js'
import { runCli } from './program.js'
import { createFileReadAccess } from './read-access.js'
import { serveCommand } from './serve.js'
import { triggerCommand } from './trigger.js'

const context = processContext()

process.exitCode = await runCli(process.argv.slice(2), context, [
  serveCommand,
  triggerCommand,
  checkCommand(createFileReadAccess(context.now)),
  keysCreateCommand,
  keysListCommand,
  configCheckCommand,
])
