import { HELP, UsageError } from './options.js'

async function run(args: readonly string[]): Promise<number> {
  if (args.includes('--help')) {
    process.stdout.write(HELP)
    return 0
  }
  if (args.includes('--postgres')) {
    const { runOnPostgres } = await import('./on-postgres.js')
    return runOnPostgres(args)
  }
  if (args.includes('--minutes') || args.includes('--jobs')) {
    const { runLong } = await import('./long-run.js')
    return runLong(args)
  }
  // First: everything else finds the clock, the network and the disk that are put in place here.
  await import('./machine/install.js')
  const { runCommand } = await import('./command.js')
  return runCommand(args)
}

try {
  process.exitCode = await run(process.argv.slice(2))
} catch (error) {
  if (!(error instanceof UsageError)) throw error
  process.stderr.write(`error: ${error.message}\nSee npm run simulate -- --help\n`)
  process.exitCode = 2
}
