import { defineConfig } from 'vitest/config'

/** For mutation testing: the tests of the pure parts alone, which need nothing built. */
export default defineConfig({
  test: { include: ['test/entitlements/**/*.test.ts', 'test/provider/**/*.test.ts'], testTimeout: 60_000 },
})
