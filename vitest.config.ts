import { join } from 'node:path'
import { configDefaults, defineConfig } from 'vitest/config'
import { LongestFirst } from './test/setup/longest-first.js'
import { TotalsReporter } from './test/setup/totals-reporter.js'

/** What a store does for everything above it: these run on both engines. */
const ON_BOTH_ENGINES = [
  'backfill/{counts,walk}',
  'cli/{asking,import,recompute,sync}',
  'daemon/{access,altered-bodies,change-stream,changes,customer-search,customers,dated-ahead,event,events,explanation}',
  'daemon/{manual-acts,membership-log,odd-payload,payload,questions,rebuilds,replays,retention}',
  'history/export',
  'ingest/any-order',
  'people/{erasure,ids}',
  'recompute/compare',
  'releases',
  'store/change-summary',
  'sync/{failures,follow,removals}',
  'sync/telegram/updates',
  'sync/webhook/{any-answers,log,outbound}',
].map((name) => `test/${name}.test.ts`)

// Node keeps there what it compiles: tests start the program some 200 times, which takes a seventh less time each.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules', '.cache', 'compiled')

const ON_POSTGRES = 'test/postgres/**/*.test.ts'

const WALK = 'test/console/walk.test.ts'

export default defineConfig({
  test: {
    // As the program has it: a store that no process has open is read by an address that says so.
    env: { SQLITE_USE_URI: '1' },
    globalSetup: ['test/setup/build.ts'],
    setupFiles: ['test/setup/declared-answers.ts', 'test/setup/nothing-left.ts'],
    reporters: ['default', new TotalsReporter()],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 100_000 } },
    // Modules keep no state, so that files can share a process: to load all of them anew for each took half the run.
    isolate: false,
    // Tests of processes, of stalled senders and of failing disks mostly wait: four keep two cores busy.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        // Alone: a browser and a daemon with a hundred thousand customers keep two processors busy.
        test: { name: 'walk', include: [WALK], sequence: { groupOrder: 0 }, maxWorkers: 1 },
      },
      {
        extends: true,
        test: {
          name: 'sqlite',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ON_POSTGRES, WALK],
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'postgres',
          include: [...ON_BOTH_ENGINES, ON_POSTGRES],
          sequence: { groupOrder: 1 },
          globalSetup: ['test/setup/postgres.ts'],
          env: { SQLITE_USE_URI: '1', TEST_ENGINE: 'postgres' },
        },
      },
    ],
  },
})
