const BUNDLED_FOR_TESTS = new URL('../../../node_modules/.cache/latchkey-threads/', import.meta.url)

/**
 * Where a thread's code is: beside the module that starts it. Threads run compiled files alone; for sources that are
 * run as they are, which only tests do, it is the one that `test/setup/build.ts` bundled from them.
 */
export function threadFile(startedBy: string, name: string): URL {
  return new URL(`./${name}.js`, startedBy.endsWith('.ts') ? BUNDLED_FOR_TESTS : startedBy)
}
