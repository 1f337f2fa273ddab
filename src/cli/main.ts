import { processContext } from './context.js'
import { createCommands, runCli } from './program.js'

const context = processContext()
const commands = createCommands({ openInput: () => process.stdin })

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader has seen enough, as `head` has after some lines: nothing went wrong.
  if (error.code === 'EPIPE') process.exit()
  throw error
})

process.exitCode = await runCli(process.argv.slice(2), context, commands)
