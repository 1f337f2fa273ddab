import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { threadFile } from '../../src/store/sqlite/thread-file.js'
import { filledStore } from '../store/filled-store.js'
import { temporaryFile } from '../store/temporary-store.js'

const SOURCES = new URL('../../src/operations/start-backup.ts', import.meta.url).href

it('ends with the daemon that began it, and leaves nothing of its copy', async () => {
  const file = temporaryFile()
  await filledStore(file, 20_000)
  const target = join(dirname(file), 'backups', 'monday.db')
  mkdirSync(dirname(target))
  const child = fork(threadFile(SOURCES, 'backup-process'), [file, target], { execArgv: [], env: {} })
  onTestFinished(() => void child.kill('SIGKILL'))
  const exit = once(child, 'exit')
  await expect.poll(() => readdirSync(dirname(target)), { interval: 1 }).not.toEqual([])
  // As it sees the daemon end.
  child.disconnect()
  await exit
  expect(readdirSync(dirname(target)).filter((name) => name.includes('.part'))).toEqual([])
})
