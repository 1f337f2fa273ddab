import { defineConfig } from 'vitest/config'
import { TotalsReporter } from './test/setup/totals-reporter.js'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/setup/build.ts'],
    setupFiles: ['test/setup/declared-answers.ts'],
    reporters: ['default', new TotalsReporter()],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 100_000 } },
    // Modules keep no state, so that files can share a process: to load all of them anew for each took half the run.
    isolate: false,
    // Tests of processes, of stalled senders and of failing disks mostly wait: four keep two cores busy.
    maxWorkers: 4,
  },
})
