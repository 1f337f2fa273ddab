import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.js'
import { checkFiles } from '../../src/doctor/machine.js'
import { endpoint, temporaryFolder, writeConfig } from '../config/config-file.js'

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

describe('the doctor, of files,', () => {
  it('warns where others may read the config, which may do without secrets of its own', () => {
    const { path, check } = patient()
    expect(check()).toEqual(FINE)
    chmodSync(path, 0o640)
    const detail = `others may open ${path}, of mode 0640`
    expect(check()).toEqual([{ level: 'warn', what: 'files', detail, todo: `chmod 600 ${path}` }])
  })

  it.each(['latchkey.db', 'latchkey.db.erasures'])('fails where others may read %s', (name) => {
    const { data, put, check } = patient()
    const file = put(join(data, name), 0o644)
    const detail = `others may open ${file}, of mode 0644`
    expect(check()).toEqual([{ level: 'fail', what: 'files', detail, todo: `chmod 600 ${file}` }])
  })
})
