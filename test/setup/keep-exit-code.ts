/**
 * Lets a run that failed end as failed: what stops the embedded PostgreSQL at the end of a process makes its exit code 0,
 * whatever it was set to before.
 */
export function keepExitCode(): void {
  process.prependListener('beforeExit', () => {
    if (process.exitCode) process.exit(process.exitCode)
  })
}
