import { processContext } from './context.js'
import { createCommands, runCli } from './program.js'

const context = processContext()
const commands = createCommands({ openInput: () => process.stdin })

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader has closed the pipe early, as `head` does: not an error.
  if (error.code === 'EPIPE') process.exit()
  throw error
})

process.exitCode = await runCli(process.argv.slice(2), context, commands)
