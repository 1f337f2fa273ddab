import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { backUp } from '../../../src/store/sqlite/copy.js'
import { damage, filledStore, rowsIn } from '../filled-store.js'
import { temporaryFile, temporaryStore } from '../temporary-store.js'

const NEW = { overwrite: false }

function targetOf(file: string): string {
  return join(dirname(file), 'backups', 'monday.db')
}

describe('a backup', () => {
  it('holds what is committed, the part in the log too, in one file that only its owner may read', async () => {
    const file = temporaryFile()
    await filledStore(file, 10)
    expect(statSync(`${file}-wal`).size).toBeGreaterThan(0)
    const target = targetOf(file)
    expect(await backUp(file, target, NEW)).toEqual({ file: target, bytes: statSync(target).size })
    expect(readdirSync(dirname(target))).toEqual(['monday.db'])
    expect(statSync(target).mode & 0o777).toBe(0o600)
    expect(rowsIn(target)).toBe(10)
  })

  it('is private before its first byte', async () => {
    const file = temporaryFile()
    await filledStore(file, 5_000)
    const target = targetOf(file)
    const modes = new Set<number>()
    const onProgress = () => {
      for (const name of readdirSync(dirname(target))) {
        modes.add(statSync(join(dirname(target), name)).mode & 0o777)
      }
    }
    await backUp(file, target, { ...NEW, onProgress })
    expect([...modes]).toEqual([0o600])
  })

  it('is one instant of a database that another goes on writing at every step', async () => {
    const file = temporaryFile()
    const write = await filledStore(file, 10_000)
    let steps = 0
    await backUp(file, targetOf(file), {
      ...NEW,
      onProgress: () => {
        steps += 1
        write(1)
      },
    })
    expect(steps).toBeGreaterThan(1)
    expect(rowsIn(file)).toBe(10_000 + steps)
    expect(rowsIn(targetOf(file))).toBe(10_000)
  })

  it('is never written over the database under another name', async () => {
    const file = temporaryFile()
    await filledStore(file, 3)
    const link = join(dirname(file), 'link.db')
    symlinkSync(file, link)
    await expect(backUp(link, file, { overwrite: true })).rejects.toMatchObject({ code: 'usage' })
    await expect(backUp(file, link, { overwrite: true })).rejects.toMatchObject({ code: 'usage' })
  })

  it('is not made of a damaged database, and leaves nothing but what was there', async () => {
    const file = temporaryFile()
    const target = targetOf(file)
    await filledStore(file, 500)
    await backUp(file, target, NEW)
    const good = readFileSync(target)
    damage(file)
    await expect(backUp(file, target, { overwrite: true })).rejects.toMatchObject({ code: 'backup_damaged' })
    expect(readdirSync(dirname(target))).toEqual(['monday.db'])
    expect(readFileSync(target).equals(good)).toBe(true)
  })

  it('is not made where there is no database, nor of what is none', async () => {
    const file = temporaryFile()
    await expect(backUp(file, targetOf(file), NEW)).rejects.toMatchObject({ code: 'store_missing' })
    await (await temporaryStore(file)).destroy()
    writeFileSync(file, 'this is no database, and long enough to be read as one '.repeat(200))
    await expect(backUp(file, targetOf(file), NEW)).rejects.toMatchObject({ code: 'backup_damaged' })
    expect(existsSync(targetOf(file))).toBe(false)
  })

  it('removes what a killed one to the same file had begun, and nothing else', async () => {
    const file = temporaryFile()
    const target = targetOf(file)
    await filledStore(file, 1)
    await backUp(file, join(dirname(target), 'tuesday.db'), NEW)
    const begun = [`${target}.latchkey.part`, `${target}.latchkey.part-journal`]
    const others = [`${target}.part`, `${target}.latchkey.partner`, 'mondayXdb.latchkey.part']
    for (const name of [...begun, ...others]) writeFileSync(join(dirname(target), basename(name)), '')
    await backUp(file, target, NEW)
    expect(readdirSync(dirname(target)).sort()).toEqual(
      ['monday.db', 'tuesday.db', ...others.map((name) => basename(name))].sort(),
    )
  })
})
