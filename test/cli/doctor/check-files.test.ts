import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { checkFiles } from '../../../src/cli/doctor/check-files.js'
import { loadConfig } from '../../../src/config/load.js'
import { endpoint, fromFile, temporaryFolder, writeConfig } from '../../config/config-file.js'

const FINE = [{ level: 'ok', what: 'files', detail: 'nobody else may read or write them', todo: null }]

/** A folder that anybody may enter, with a config, a database and backups that only their owner may read. */
function patient(told: Record<string, unknown> = {}) {
  const folder = temporaryFolder()
  const [data, backups] = [join(folder, 'data'), join(folder, 'backups')]
  for (const one of [data, backups]) mkdirSync(one, { mode: 0o700 })
  const path = writeConfig(
    {
      database: { url: 'sqlite:./data/latchkey.db' },
      backup: { folder: './backups' },
      endpoints: { v3: endpoint('live', 'whsec_v3') },
      ...told,
    },
    folder,
  )
  const put = (file: string, mode: number): string => {
    writeFileSync(file, 'whsec_v3')
    chmodSync(file, mode)
    return file
  }
  put(join(data, 'latchkey.db'), 0o600)
  chmodSync(path, 0o600)
  chmodSync(folder, 0o755)
  return { folder, data, backups, path, put, check: () => checkFiles(loadConfig({ path, env: {} }).config) }
}

describe('the doctor, of the config', () => {
  it('fails where others may read secrets in it, and warns where there are none', () => {
    const { folder, path, put, check } = patient()
    chmodSync(path, 0o640)
    const detail = `others may read the secrets in ${path}, of mode 0640`
    expect(check()).toEqual([{ level: 'fail', what: 'files', detail, todo: `chmod 600 ${path}` }])
    put(join(folder, 'secret'), 0o600)
    writeFileSync(path, readFileSync(path, 'utf8').replace('whsec_v3', fromFile('secret')))
    expect(check()).toMatchObject([{ level: 'warn', detail: `others may read ${path}, of mode 0640` }])
  })

  it('warns of a secret that others may read, and fails for one that they may write', () => {
    const { folder, put, check } = patient({ endpoints: { v3: endpoint('live', fromFile('secret')) } })
    const secret = put(join(folder, 'secret'), 0o644)
    expect(check()).toMatchObject([{ level: 'warn' }])
    chmodSync(secret, 0o666)
    expect(check()).toMatchObject([{ level: 'fail', todo: `chmod 600 ${secret}` }])
  })

  it('only warns of what nobody else can reach, since its folder lets nobody in', () => {
    const { folder, path, check } = patient()
    chmodSync(path, 0o666)
    expect(check()).toMatchObject([{ level: 'fail' }])
    chmodSync(folder, 0o700)
    expect(check()).toMatchObject([{ level: 'warn', detail: expect.stringContaining('others may write') }])
    chmodSync(folder, 0o710)
    expect(check()).toMatchObject([{ level: 'fail' }])
  })
})

describe('the doctor, of the folder of the database', () => {
  it.each([
    [0o755, 'warn'],
    [0o777, 'fail'],
  ])('with the mode %o: %s', (mode, level) => {
    const { data, check } = patient()
    chmodSync(data, mode)
    expect(check()).toMatchObject([{ level, todo: `chmod 700 ${data}` }])
  })

  it.each([
    'latchkey.db',
    'latchkey.db-wal',
    'latchkey.db-shm',
    'latchkey.db.erasures',
    'latchkey.db.before-restore-20260301T120000.000Z',
    'latchkey.db.before-0008-messages',
    'first-key.txt',
  ])('names %s where others may read it, and fails where they can reach it', (name) => {
    const { data, put, check } = patient()
    const file = put(join(data, name), 0o644)
    const finding = {
      what: 'files',
      detail: `others may open ${file}, of mode 0644`,
      todo: `chmod 600 ${file}`,
    }
    expect(check()).toEqual([{ level: 'warn', ...finding }])
    chmodSync(data, 0o711)
    expect(check()).toContainEqual({ level: 'fail', ...finding })
  })

  it('names the first start’s key beside the config as well, wherever the database is', () => {
    const elsewhere = temporaryFolder()
    const { data, put, check } = patient({ database: { url: `sqlite:${elsewhere}/latchkey.db` } })
    const key = put(join(data, 'first-key.txt'), 0o644)
    chmodSync(data, 0o755)
    expect(check()).toMatchObject([{ level: 'fail', detail: `others may open ${key}, of mode 0644` }])
  })

  it('lets others read the lock, in which there is nothing, and not write it', () => {
    const { data, put, check } = patient()
    const lock = put(join(data, 'latchkey.db.lock'), 0o644)
    expect(check()).toEqual(FINE)
    chmodSync(lock, 0o666)
    expect(check()).toMatchObject([{ level: 'warn' }])
    chmodSync(data, 0o711)
    expect(check()).toContainEqual({
      level: 'fail',
      what: 'files',
      detail: `others may hold ${lock}, of mode 0666`,
      todo: `chmod 600 ${lock}`,
    })
  })
})

describe('the doctor, of the folder of the backups', () => {
  it.each([
    [0o755, 'warn'],
    [0o777, 'fail'],
  ])('with the mode %o: %s', (mode, level) => {
    const { backups, check } = patient()
    chmodSync(backups, mode)
    expect(check()).toMatchObject([{ level, todo: `chmod 700 ${backups}` }])
  })

  it('names a backup that others may read, and tells many in one line', () => {
    const { backups, put, check } = patient()
    const at = (hour: number) => join(backups, `latchkey-20260301T${hour}0000.000Z.db`)
    put(join(backups, 'notes.txt'), 0o644)
    put(at(10), 0o600)
    expect(check()).toEqual(FINE)
    put(at(12), 0o644)
    expect(check()).toMatchObject([
      { level: 'warn', detail: `others may open ${at(12)}, of mode 0644`, todo: `chmod 600 ${at(12)}` },
    ])
    put(at(11), 0o640)
    const all = join(backups, 'latchkey-*.db')
    const told = {
      what: 'files',
      detail: `others may open 2 files ${all}, the first latchkey-20260301T110000.000Z.db, of mode 0640`,
      todo: `chmod 600 ${all}`,
    }
    expect(check()).toEqual([{ level: 'warn', ...told }])
    chmodSync(backups, 0o711)
    expect(check()).toContainEqual({ level: 'fail', ...told })
  })

  it('says where it can’t be looked at', () => {
    const { path, check } = patient({ backup: { folder: './config.json' } })
    expect(check()).toMatchObject([
      {
        level: 'fail',
        detail: expect.stringContaining(`${path} can’t be looked at`),
        todo: 'check backup.folder',
      },
    ])
  })
})
