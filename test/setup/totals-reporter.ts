import type { Reporter, TestModule } from 'vitest/node'

/** Prints `N passed, N failed` as the last line, for scripts that read the outcome of a run. */
export class TotalsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const counts = { passed: 0, failed: 0, skipped: 0 }
    for (const module of modules) {
      if (module.state() === 'failed' && module.errors().length > 0) counts.failed += 1
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        if (state !== 'pending') counts[state] += 1
      }
    }
    const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''
    process.stdout.write(`${counts.passed} passed, ${counts.failed} failed${skipped}\n`)
  }
}
