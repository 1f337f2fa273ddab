import { statSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { lockStore } from '../../../src/store/sqlite/file.js'
import { startChild } from '../child-process.js'
import { open, temporaryFile, temporaryStore } from '../temporary-store.js'

const IN_USE = expect.objectContaining({ code: 'store_in_use' })

const LOCK_AND_TELL = `
  const { lockStore } = await import(store + 'sqlite/file.js')
  try {
    globalThis.lock = lockStore(file)
    console.log('locked')
  } catch (error) {
    console.log(error.code)
  }
`

describe('the lock of a store', () => {
  it('is given to one at a time', () => {
    const file = temporaryFile()
    const lock = lockStore(file)
    expect(() => lockStore(file)).toThrow(IN_USE)
    lock.release()
    lockStore(file).release()
  })

  it('is one for each database', () => {
    const locks = [lockStore(temporaryFile()), lockStore(temporaryFile())]
    for (const lock of locks) lock.release()
    expect(locks).toHaveLength(2)
  })

  it('outlasts another attempt, and every opening of the database, in the same process', async () => {
    const file = temporaryFile()
    const lock = lockStore(file)
    onTestFinished(() => lock.release())
    expect(() => lockStore(file)).toThrow(IN_USE)
    await (await temporaryStore(file)).destroy()
    expect((await startChild(LOCK_AND_TELL, file)).said).toBe('store_in_use')
  })

  it('is held against other processes, and freed when its holder is killed', async () => {
    const file = temporaryFile()
    const holder = await startChild(LOCK_AND_TELL, file)
    expect(holder.said).toBe('locked')
    expect(() => lockStore(file)).toThrow(IN_USE)
    await holder.kill()
    lockStore(file).release()
  })

  it('lets others read', async () => {
    const file = temporaryFile()
    await temporaryStore(file)
    const lock = lockStore(file)
    onTestFinished(() => lock.release())
    expect(await open(file, true).selectFrom('events').selectAll().execute()).toEqual([])
  })

  it('leaves a file that only its owner may open', () => {
    const file = temporaryFile()
    lockStore(file).release()
    expect(statSync(`${file}.lock`).mode & 0o777).toBe(0o600)
  })
})
