import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { assertNotOwnFile } from '../../../src/store/sqlite/file.js'
import { temporaryFile } from '../temporary-store.js'

/** A database, and a link by which a config may name it. */
function linkedDatabase() {
  const file = temporaryFile()
  const folder = dirname(dirname(file))
  mkdirSync(dirname(file))
  writeFileSync(file, '')
  const link = join(folder, 'linked.db')
  symlinkSync(file, link)
  return { file, folder, link }
}

it.each(['', '-wal', '-shm', '-journal', '.lock', '.erasures'])(
  'what stands beside the database, or will, is its own, by whichever name the database is known: %j',
  (suffix) => {
    const { file, folder, link } = linkedDatabase()
    symlinkSync(dirname(file), join(folder, 'elsewhere'))
    const own = [`${file}${suffix}`, `${link}${suffix}`, join(folder, 'elsewhere', `latchkey.db${suffix}`)]
    for (const target of own) {
      expect(() => assertNotOwnFile(link, target)).toThrow(expect.objectContaining({ code: 'usage' }))
    }
  },
)

it('what is called otherwise is not, nor what nothing can stand at', () => {
  const { file, folder, link } = linkedDatabase()
  const others = [`${file}.jsonl`, join(folder, 'latchkey.db'), join(file, 'events.jsonl')]
  for (const target of others) expect(() => assertNotOwnFile(link, target)).not.toThrow()
})
