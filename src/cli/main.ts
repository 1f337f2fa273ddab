import { processContext } from './context.js'
import { createCommands, runCli } from './program.js'

// Read as the engine is loaded: a store that no process has open is read by an address that says so.
process.env.SQLITE_USE_URI ??= '1'

const context = processContext()
const commands = createCommands({ openInput: () => process.stdin })

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader has closed the pipe early, as `head` does: not an error.
  if (error.code === 'EPIPE') process.exit()
  throw error
})

const args = process.argv.slice(2)
process.exitCode = await runCli(args, context, commands)

/** A call to a platform that hangs may last 15 s; a stopped daemon must be gone within 10. */
const LINGER_MS = 1_000
if (args[0] === 'serve') setTimeout(() => process.exit(), LINGER_MS).unref()
