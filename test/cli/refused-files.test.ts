import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { temporaryFolder, writeConfig } from '../config/config-file.js'
import { temporaryFile, temporaryStore } from '../store/temporary-store.js'
import { cli } from './run-cli.js'

/** What the command says in JSON of how it failed. */
async function failureOf(args: readonly string[], config: string) {
  const { exitCode, out, err } = await cli([...args, '--json', '--config', config])
  expect({ exitCode, out }).toEqual({ exitCode: 1, out: '' })
  return (JSON.parse(err) as { error: { code: string; message: string } }).error
}

/** A config of that database. */
const configOf = (file: string) => writeConfig({ database: { url: `sqlite:${file}` } })

describe('a database that the system lets nobody get at', () => {
  it.each([
    'check cus_1',
    'events list',
    'rebuild',
    'rebuild --verify',
    'replay',
    'erase cus_1 --yes',
    'sync pause',
    'compact',
    'migrate',
    'backup copy.db',
  ])('is not told as missing by %j', async (words) => {
    const file = temporaryFile()
    mkdirSync(dirname(file))
    symlinkSync(basename(file), file)
    expect(await failureOf(words.split(' '), configOf(file))).toMatchObject({
      code: 'store_unavailable',
      message: expect.stringMatching(/^the database .* can't be read.*, .+ \(ELOOP\)$/),
    })
  })

  it.runIf(process.getuid?.() !== 0)('since it is another user’s, is told as that', async () => {
    const file = temporaryFile()
    await temporaryStore(file)
    chmodSync(dirname(file), 0)
    onTestFinished(() => chmodSync(dirname(file), 0o700))
    expect(await failureOf(['check', 'cus_1'], configOf(file))).toEqual({
      code: 'store_unavailable',
      message: `the database ${file} can't be read, permission denied (EACCES): run this as the user whom it belongs to`,
      issues: [],
    })
  })
})

describe('a file that can’t be written is told by the name that was given,', () => {
  it('of a backup', async () => {
    const file = temporaryFile()
    await temporaryStore(file)
    const blocked = join(temporaryFolder(), 'file')
    writeFileSync(blocked, '')
    const target = join(blocked, 'monday.db')
    expect(await failureOf(['backup', target], configOf(file))).toMatchObject({
      code: 'backup_failed',
      message: `${target} can't be written: not a directory (ENOTDIR)`,
    })
  })

  it('of an export', async () => {
    const file = temporaryFile()
    await temporaryStore(file)
    const target = join(temporaryFolder(), 'missing', 'events.jsonl')
    expect(await failureOf(['events', 'export', '--output', target], configOf(file))).toMatchObject({
      code: 'output_failed',
      message: `${target} can't be written: no such file or directory (ENOENT)`,
    })
  })

  it.runIf(process.getuid?.() !== 0)('of a config', async () => {
    const config = writeConfig({})
    chmodSync(dirname(config), 0o500)
    onTestFinished(() => chmodSync(dirname(config), 0o700))
    const create = ['keys', 'create', '--name', 'app', '--scope', 'read', '--environment', 'live']
    expect(await failureOf(create, config)).toMatchObject({
      code: 'output_failed',
      message: expect.stringContaining(`${config} can't be written: permission denied (EACCES); `),
    })
  })
})
