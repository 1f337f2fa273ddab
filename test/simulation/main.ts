// First: everything else finds the clock, the network and the disk that are put in place here.
await import('./machine/install.js')
const { runCommand } = await import('./command.js')
process.exitCode = await runCommand(process.argv.slice(2))
export {}
