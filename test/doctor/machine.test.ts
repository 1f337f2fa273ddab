import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.js'
import { bytesText, counted, durationText } from '../../src/doctor/finding.js'
import { checkFiles, checkKeys } from '../../src/doctor/machine.js'
import { CONFIG, configuredFolder, databaseIn, keyEntry, SECRET } from '../world.js'

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

it('the doctor warns of keys that have expired, or soon will', () => {
  const now = Date.parse('2026-03-01T00:00:00Z')
  const entry = (name: string, expiresAt?: string, previous?: object) => ({
    ...keyEntry(name, `lk_${name}`),
    ...(expiresAt && { expiresAt }),
    ...(previous && { previous }),
  })
  const check = (...keys: readonly object[]) => {
    const path = join(configuredFolder({ ...CONFIG, api: { keys } }), 'config.json')
    return checkKeys(loadConfig({ path, env: {} }).config, now)
  }
  const rotated = { hash: `sha256:${'1'.repeat(64)}`, notAfter: '2026-02-01T00:00:00Z' }
  const fine = [entry('app'), entry('far', '2026-03-08T00:00:01Z'), entry('rotated', undefined, rotated)]
  expect(check(...fine)).toMatchObject([{ level: 'ok', what: 'keys' }])
  expect(
    check(...fine, entry('near', '2026-03-08T00:00:00Z'), entry('gone', '2026-03-01T00:00:00Z')),
  ).toEqual(
    [
      ['near', 'expires at 2026-03-08T00:00:00.000Z'],
      ['gone', 'expired at 2026-03-01T00:00:00.000Z'],
    ].map(([name, when]) => ({
      level: 'warn',
      what: 'keys',
      detail: `"${name}" ${when}`,
      todo: `latchkey keys rotate "${name}" --expires 90d`,
    })),
  )
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

  it('warns where others may read the config, which may do without secrets of its own', () => {
    const { path, check } = patient()
    chmodSync(path, 0o640)
    const detail = `others can open ${path}, with the mode 0640`
    expect(check()).toEqual([{ level: 'warn', what: 'files', detail, todo: `chmod 600 ${path}` }])
  })

  it.each(['latchkey.db', 'latchkey.db.erasures'])('fails where others may read %s', (name) => {
    const { folder, put, check } = patient()
    const file = put(join(folder, 'data', name), 0o644)
    const detail = `others can open ${file}, with the mode 0644`
    expect(check()).toEqual([{ level: 'fail', what: 'files', detail, todo: `chmod 600 ${file}` }])
  })
})
