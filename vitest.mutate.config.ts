import { defineConfig } from 'vitest/config'

/** For mutation testing: the tests of the pure parts alone, which need nothing built, over fewer histories. */
export default defineConfig({
  test: {
    include: ['test/entitlements/**/*.test.ts', 'test/provider/**/*.test.ts'],
    setupFiles: ['test/setup/pinned-seed.ts'],
    env: { PROPERTY_RUNS: '150' },
    testTimeout: 60_000,
  },
})
