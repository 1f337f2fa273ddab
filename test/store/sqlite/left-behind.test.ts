import { readdirSync, writeFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { DOCUMENTED_POLICY } from '../../../src/entitlements/policy.js'
import { lockStore } from '../../../src/store/sqlite/file.js'
import { bringUpToDate, compactFile, openStore, withStopped } from '../../../src/store/sqlite/store.js'
import { filledStore } from '../filled-store.js'
import { temporaryFile } from '../temporary-store.js'

const LEFT_BEHIND = ['', '-wal', '-shm', '-journal'].map((suffix) => `.latchkey.part${suffix}`)

const KEPT = [
  '.erasures',
  '.before-0008-messages',
  '.before-restore-20260301T120000.000Z',
  '.before-restore-20260301T120000.000Z-wal',
  // A backup that somebody else is making, who takes no lock for it.
  '.monday.latchkey.part',
  'X.latchkey.part',
]

/** A database that nobody serves, with what killed processes left beside it, and what is kept there on purpose. */
async function storeAfterKills(): Promise<string> {
  const file = temporaryFile()
  await filledStore(file, 3)
  for (const ending of [...LEFT_BEHIND, ...KEPT]) writeFileSync(`${file}${ending}`, '')
  return file
}

/** How the names of those that are there go on after the name of the database. */
function beside(file: string, endings: readonly string[]): readonly string[] {
  const names = readdirSync(dirname(file))
  return endings.filter((ending) => names.includes(`${basename(file)}${ending}`))
}

async function serveAndClose(file: string): Promise<void> {
  const store = await openStore(file, DOCUMENTED_POLICY, () => ({ close: async () => {} }))
  await store.close()
}

describe('what killed processes left beside a database', () => {
  it.each([
    ['by whoever opens the store to serve it', serveAndClose],
    ['by an update of the schema', (file: string) => withStopped(file, bringUpToDate)],
    ['where the database is written anew', compactFile],
  ])('is removed %s, and nothing else', async (_who, open) => {
    const file = await storeAfterKills()
    await open(file)
    expect(beside(file, LEFT_BEHIND)).toEqual([])
    expect(beside(file, KEPT)).toEqual(KEPT)
  })

  it('is left to whoever has the lock, and may be at work on it', async () => {
    const file = await storeAfterKills()
    const lock = lockStore(file)
    onTestFinished(() => lock.release())
    await expect(serveAndClose(file)).rejects.toMatchObject({ code: 'store_in_use' })
    await expect(withStopped(file, bringUpToDate)).rejects.toMatchObject({ code: 'store_in_use' })
    expect(beside(file, LEFT_BEHIND)).toEqual(LEFT_BEHIND)
  })
})
