import { configDefaults, mergeConfig } from 'vitest/config'
import config from './vitest.config.js'

/** For while one writes: without the tests that start the program, run many histories, or mostly wait. */
export default mergeConfig(config, {
  test: {
    exclude: [
      ...configDefaults.exclude,
      'test/{embedding,examples,package}.test.ts',
      'test/process/**',
      'test/faults/**',
      'test/hazards/**',
      'test/client/**',
      'test/console/{link,session,shell}.test.ts',
      'test/daemon/**',
      'test/backfill/{asked-for,odd-service,walk}.test.ts',
      'test/recompute/**',
      'test/sync/telegram/**',
      'test/sync/webhook/**',
      'test/**/any-*.test.ts',
      'test/**/outage*.test.ts',
      'test/**/slow*.test.ts',
    ],
    env: { PROPERTY_RUNS: '150' },
  },
})
