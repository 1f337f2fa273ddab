import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'

const STORE = new URL('../../dist/src/store/', import.meta.url).href

export interface Child {
  /** The first thing it wrote. */
  readonly said: string
  /** kill -9, and gone when this returns. */
  kill(): Promise<void>
}

/**
 * Runs a script in a process of its own, and waits until it has said something. The script finds the
 * compiled store under `store` and the database file under `file`.
 */
export async function startChild(script: string, file: string): Promise<Child> {
  const prelude = `const [store, file] = process.argv.slice(1); setInterval(() => {}, 60_000);`
  const child = spawn(process.execPath, ['--input-type=module', '-e', prelude + script, STORE, file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const exit = once(child, 'exit')
  const [said] = await Promise.race([
    once(child.stdout, 'data'),
    exit.then(([code]) => Promise.reject(new Error(`The child ended by itself, with ${code}.`))),
  ])
  return {
    said: String(said).trim(),
    kill: async () => {
      child.kill('SIGKILL')
      await exit
    },
  }
}
