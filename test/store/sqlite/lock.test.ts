import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { lockStore } from '../../../src/store/sqlite/file.js'
import { temporaryFile, temporaryStore } from '../temporary-store.js'

const LOCK = new URL('../../../src/store/sqlite/file.ts', import.meta.url).href
const TYPESCRIPT = new URL('../../../scripts/typescript.js', import.meta.url).href

const IN_USE = expect.objectContaining({ code: 'store_in_use' })

const LOCK_AND_TELL = `
  const [lock, file] = process.argv.slice(1)
  setInterval(() => {}, 60_000)
  const { lockStore } = await import(lock)
  try {
    globalThis.lock = lockStore(file)
    console.log('locked')
  } catch (error) {
    console.log(error.code)
  }
`

/** Has another process lock the file, and waits until it has said whether it could. */
async function lockElsewhere(file: string) {
  const child = spawn(
    process.execPath,
    ['--import', TYPESCRIPT, '--input-type=module', '-e', LOCK_AND_TELL, LOCK, file],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  onTestFinished(() => void child.kill('SIGKILL'))
  const exit = once(child, 'exit')
  const [said] = await Promise.race([
    once(child.stdout, 'data'),
    exit.then(([code]) => Promise.reject(new Error(`The child ended by itself, with ${code}.`))),
  ])
  const kill = async () => {
    child.kill('SIGKILL')
    await exit
  }
  return { said: String(said).trim(), kill }
}

describe('the lock of a store', () => {
  it('is given to one at a time, for each database its own, that only its owner may open', () => {
    const file = temporaryFile()
    const lock = lockStore(file)
    expect(() => lockStore(file)).toThrow(IN_USE)
    lockStore(temporaryFile()).release()
    lock.release()
    lockStore(file).release()
    expect(statSync(`${file}.lock`).mode & 0o777).toBe(0o600)
  })

  it('outlasts another attempt, and every opening of the database, in the same process', async () => {
    const file = temporaryFile()
    const lock = lockStore(file)
    onTestFinished(() => lock.release())
    expect(() => lockStore(file)).toThrow(IN_USE)
    await (await temporaryStore(file)).destroy()
    expect((await lockElsewhere(file)).said).toBe('store_in_use')
  })

  it('is held against other processes, and freed when its holder is killed', async () => {
    const file = temporaryFile()
    const holder = await lockElsewhere(file)
    expect(holder.said).toBe('locked')
    expect(() => lockStore(file)).toThrow(IN_USE)
    await holder.kill()
    lockStore(file).release()
  })
})
