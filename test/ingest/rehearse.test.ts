import { existsSync, writeFileSync } from 'node:fs'
import Sqlite from 'better-sqlite3'
import { expect, it } from 'vitest'
import { createRehearse } from '../../src/ingest/rehearse.js'
import { temporaryFile, temporaryStore } from '../store/temporary-store.js'
import { orderOf } from './replay-store.js'

it('names the copy that could not grow, what may be the cause, and leaves nothing of it', async () => {
  const file = temporaryFile()
  await temporaryStore(file)
  const rehearse = createRehearse({
    file,
    startCopy: (_file, target) => {
      writeFileSync(target, '')
      return { done: Promise.resolve({ file: target, bytes: 0 }), stop: () => {} }
    },
    openCopy: () => ({
      replay: async () => {
        throw new Sqlite.SqliteError('database or disk is full', 'SQLITE_FULL')
      },
      calls: async () => [],
      close: async () => {},
    }),
  })
  await expect(rehearse(orderOf())).rejects.toMatchObject({
    code: 'backup_failed',
    message: expect.stringMatching(/latchkey\.db\.dry-run can't be written: .*disk is full.* or a limit/),
  })
  expect(existsSync(`${file}.dry-run`)).toBe(false)
})
