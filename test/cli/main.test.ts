import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { endpoint, temporaryFolder, writeConfig } from '../config/config-file.js'

const PROGRAM = join(import.meta.dirname, '..', '..', 'bin', 'latchkey.js')

/** Runs the built program as a process of its own. */
function latchkey(folder: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH },
    encoding: 'utf8',
  })
  return { status, stdout, stderr }
}

describe('the built program', () => {
  it('lists its commands', () => {
    const { status, stdout } = latchkey(temporaryFolder(), '--help')
    expect(status).toBe(0)
    for (const command of ['serve', 'trigger', 'check', 'keys', 'config']) {
      expect(stdout).toMatch(new RegExp(`^  ${command} `, 'm'))
    }
  })

  it('takes the config of the folder that it runs in', () => {
    const folder = temporaryFolder()
    const path = writeConfig(
      { endpoints: { sandbox: endpoint('sandbox', 'whsec_0123456789abcdef') } },
      folder,
    )
    expect(latchkey(folder, 'config', 'check')).toEqual({ status: 0, stdout: `ok: ${path}\n`, stderr: '' })
  })

  it('exits with the code of what went wrong, and without a stack trace', () => {
    const folder = temporaryFolder()
    writeConfig({ nonsense: true }, folder)
    const { status, stderr } = latchkey(folder, 'check', 'cus_1')
    expect(status).toBe(2)
    expect(stderr).toMatch(/^error: the config file .* has a problem\n {2}nonsense: is not a known key\n$/)
  })
})
