import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { build as bundle } from 'vite'

const ROOT = join(import.meta.dirname, '..', '..')
const THREADS = [
  'daemon/writer-thread',
  'doctor/examine-thread',
  'operations/backup-thread',
  'store/sqlite/checkpoint-thread',
]

/** Compiles once before any test: tests that start the built program run what is in the tree now. */
export default async function build(): Promise<void> {
  execFileSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' })
  await bundleThreads()
}

/**
 * Bundles the threads of daemons that run in the tests' own process: to load some 400 small files for every one of
 * hundreds of daemons took a third of the run. Daemons in processes of their own load what users load.
 */
async function bundleThreads(): Promise<void> {
  await bundle({
    configFile: false,
    root: ROOT,
    logLevel: 'warn',
    ssr: { noExternal: true, external: ['better-sqlite3', 'pg'] },
    build: {
      ssr: true,
      outDir: 'node_modules/.cache/latchkey-threads',
      emptyOutDir: true,
      rolldownOptions: {
        input: THREADS.map((name) => join('src', `${name}.ts`)),
        output: { entryFileNames: '[name].js' },
      },
    },
  })
}
