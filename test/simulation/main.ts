const args = process.argv.slice(2)
if (args.includes('--postgres')) {
  const { runOnPostgres } = await import('./on-postgres.js')
  process.exitCode = await runOnPostgres(args)
} else if (args.includes('--minutes') || args.includes('--jobs')) {
  const { runLong } = await import('./long-run.js')
  process.exitCode = await runLong(args)
} else {
  // First: everything else finds the clock, the network and the disk that are put in place here.
  await import('./machine/install.js')
  const { runCommand } = await import('./command.js')
  process.exitCode = await runCommand(args)
}
