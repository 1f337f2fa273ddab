import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.js'
import { checkFiles } from '../../src/doctor/machine.js'
import { endpoint, fromFile, writeConfig } from '../config/config-file.js'
import { temporaryFolder } from '../world.js'

const FINE = [{ level: 'ok', what: 'files', detail: 'nobody else may read or write them', todo: null }]

/** A folder that anybody may enter, with a config and a database that only their owner may read. */
function patient(told: Record<string, unknown> = {}) {
  const folder = temporaryFolder()
  const data = join(folder, 'data')
  mkdirSync(data, { mode: 0o700 })
  const path = writeConfig(
    {
      database: { url: 'sqlite:./data/latchkey.db' },
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
  return { folder, data, path, put, check: () => checkFiles(loadConfig({ path, env: {} }).config) }
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

describe('the doctor, of what is stored', () => {
  it.each(['latchkey.db', 'latchkey.db.erasures'])(
    'names %s where others may read it, and fails where they can reach it',
    (name) => {
      const { data, put, check } = patient()
      expect(check()).toEqual(FINE)
      const file = put(join(data, name), 0o644)
      const finding = {
        what: 'files',
        detail: `others may open ${file}, of mode 0644`,
        todo: `chmod 600 ${file}`,
      }
      expect(check()).toEqual([{ level: 'warn', ...finding }])
      chmodSync(data, 0o711)
      expect(check()).toEqual([{ level: 'fail', ...finding }])
    },
  )
})
