const BUNDLED_FOR_TESTS = new URL('../../../node_modules/.cache/latchkey-threads/', import.meta.url)

/**
 * The file with a thread's code: beside the module that starts it. Threads only run compiled files; for uncompiled
 * sources, as in tests, it is the bundle made by `test/setup/build.ts`.
 */
export function threadFile(startedBy: string, name: string): URL {
  return new URL(`./${name}.js`, startedBy.endsWith('.ts') ? BUNDLED_FOR_TESTS : startedBy)
}
