import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.js'
import { bytesText, counted, durationText } from '../../src/doctor/finding.js'
import { checkFiles } from '../../src/doctor/machine.js'
import { fromFile } from '../config/config-file.js'
import { CONFIG, configuredFolder, databaseIn, SECRET } from '../world.js'

const SECOND = 1_000
const HOUR = 3_600 * SECOND

it('durations, sizes and counts are told in few words', () => {
  for (const [ms, text] of [
    [0, '0s'],
    [999, '0s'],
    [90 * SECOND, '1m 30s'],
    [HOUR, '1h'],
    [HOUR + 59 * SECOND, '1h'],
    [76 * HOUR + 5 * SECOND, '3d 4h'],
  ] as const) {
    expect(durationText(ms)).toBe(text)
  }
  for (const [bytes, text] of [
    [0, '0 B'],
    [0.5, '1 B'],
    [1023, '1023 B'],
    [1024, '1.0 kB'],
    [1.5 * 1024 ** 3, '1.5 GB'],
    [300 * 1024 ** 2, '300 MB'],
    [5_000 * 1024 ** 4, '5000 TB'],
  ] as const) {
    expect(bytesText(bytes)).toBe(text)
  }
  expect([0, 1, 2].map((count) => counted(count, 'check'))).toEqual(['0 checks', '1 check', '2 checks'])
})

describe('the doctor, of files', () => {
  /** A folder that anybody may enter, with a config and a database that only their owner may read. */
  function patient() {
    const folder = configuredFolder(CONFIG)
    const path = join(folder, 'config.json')
    mkdirSync(join(folder, 'data'), { mode: 0o700 })
    const put = (file: string, mode: number): string => {
      writeFileSync(file, SECRET)
      chmodSync(file, mode)
      return file
    }
    put(databaseIn(folder), 0o600)
    chmodSync(path, 0o600)
    chmodSync(folder, 0o755)
    return { folder, path, put, check: () => checkFiles(loadConfig({ path, env: {} }).config) }
  }

  it('fails where others may read secrets in the config, and warns where there are none, or nobody gets there', () => {
    const { folder, path, put, check } = patient()
    chmodSync(path, 0o640)
    const detail = `others may read the secrets in ${path}, of mode 0640`
    expect(check()).toEqual([{ level: 'fail', what: 'files', detail, todo: `chmod 600 ${path}` }])
    chmodSync(path, 0o666)
    chmodSync(folder, 0o700)
    expect(check()).toMatchObject([{ level: 'warn', detail: expect.stringContaining('others may write') }])
    chmodSync(folder, 0o710)
    expect(check()).toMatchObject([{ level: 'fail' }])
    chmodSync(path, 0o640)
    put(join(folder, 'secret'), 0o600)
    writeFileSync(path, readFileSync(path, 'utf8').replace(SECRET, fromFile('secret')))
    expect(check()).toMatchObject([{ level: 'warn', detail: `others may read ${path}, of mode 0640` }])
  })

  it.each(['latchkey.db', 'latchkey.db.erasures'])(
    'names %s where others may read it, and fails where they get there',
    (name) => {
      const { folder, put, check } = patient()
      expect(check()).toEqual([
        { level: 'ok', what: 'files', detail: 'nobody else may read or write them', todo: null },
      ])
      const file = put(join(folder, 'data', name), 0o644)
      const found = {
        what: 'files',
        detail: `others may open ${file}, of mode 0644`,
        todo: `chmod 600 ${file}`,
      }
      expect(check()).toEqual([{ level: 'warn', ...found }])
      chmodSync(join(folder, 'data'), 0o711)
      expect(check()).toEqual([{ level: 'fail', ...found }])
    },
  )
})
