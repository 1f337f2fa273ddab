import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { latchkey, runProgram, startProgram, temporaryFolder } from '../setup/program.js'
import { ask, serve } from './served.js'

/** `script` of util-linux runs a program on a terminal of its own. */
const HAS_SCRIPT = /util-linux/.test(spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout ?? '')

function modeOf(...path: string[]): string {
  return (statSync(join(...path)).mode & 0o777).toString(8)
}

function firstKey(folder: string): string {
  return readFileSync(join(folder, 'data', 'first-key.txt'), 'utf8').trimEnd()
}

describe('a first start in an empty folder', () => {
  it('makes a config, a database and a key that only its user may read, whatever the umask allows', async () => {
    const folder = temporaryFolder()
    await serve(folder, {}, ['sh', '-c', 'umask 0; exec "$@"', 'sh', ...latchkey('serve')])

    expect(modeOf(folder, 'config.json')).toBe('600')
    expect(modeOf(folder, 'data')).toBe('700')
    const files = readdirSync(join(folder, 'data'))
    expect(files).toEqual(expect.arrayContaining(['first-key.txt', 'latchkey.db', 'latchkey.db-wal']))
    expect(files.map((name) => `${name} ${modeOf(folder, 'data', name)}`)).toEqual(
      files.map((name) => `${name} 600`),
    )
    expect(readdirSync(folder).sort()).toEqual(['config.json', 'data'])
  })

  it('keeps the key out of everything that it writes off a terminal, and says what to try next', async () => {
    const folder = temporaryFolder()
    const daemon = await serve(folder)
    const key = firstKey(folder)
    expect(key).toMatch(/^lk_[\w-]{43}$/)
    expect((await ask(daemon, '/entitlements/cus_1', key)).status).toBe(200)
    daemon.signal('SIGTERM')

    const { stdout, stderr } = await daemon.exit
    expect(stderr).toContain('API key: in data/first-key.txt\n')
    expect(stderr).toContain('  export LATCHKEY_KEY=$(cat data/first-key.txt)\n')
    expect(stderr).toContain('  npx latchkey trigger payment.authorized --customer cus_1 --product pro_1\n')
    expect(stderr).toContain('  npx latchkey check cus_1\n')
    expect(stdout + stderr).not.toContain(key)
    expect(stdout + stderr).not.toContain('whsec_')
    for (const line of stdout.trimEnd().split('\n')) expect(JSON.parse(line)).toHaveProperty('msg')
    expect(readFileSync(join(folder, 'config.json'), 'utf8')).not.toContain(key)
  })

  it.skipIf(!HAS_SCRIPT)('shows the key on a terminal, and makes no file for it', async () => {
    const folder = temporaryFolder()
    const onTerminal = ['script', '-qec', latchkey('serve').join(' '), '/dev/null']
    const daemon = await serve(folder, {}, onTerminal)
    // It has a session of its own there, out of reach of what ends the rest of a test.
    onTestFinished(() => endIfRunning(daemon.pid))

    const [, key = ''] = await daemon.until(/API key \(shown only now\): (lk_[\w-]{43})\r?\n/)
    expect(daemon.stdout()).toContain(`  export LATCHKEY_KEY=${key}\r\n`)
    expect((await ask(daemon, '/entitlements/cus_1', key)).status).toBe(200)
    expect(existsSync(join(folder, 'data', 'first-key.txt'))).toBe(false)
    process.kill(daemon.pid, 'SIGTERM')
    expect((await daemon.exit).code).toBe(0)
    expect(daemon.stdout().split(key)).toHaveLength(3)
  })
})

describe('a start', () => {
  it('uses the config, the key and the database that are there', async () => {
    const folder = temporaryFolder()
    const first = await serve(folder)
    first.signal('SIGTERM')
    await first.exit
    const config = readFileSync(join(folder, 'config.json'), 'utf8')
    const key = firstKey(folder)

    const second = await serve(folder)
    expect(second.stdout() + second.stderr()).not.toContain('Made ')
    expect(readFileSync(join(folder, 'config.json'), 'utf8')).toBe(config)
    expect(firstKey(folder)).toBe(key)
    expect((await ask(second, '/entitlements/cus_1', key)).status).toBe(200)
  })

  it.each([
    ['--config', ['--config', 'missing.json'], {}],
    ['LATCHKEY_CONFIG', [], { LATCHKEY_CONFIG: 'missing.json' }],
  ])('makes nothing and exits 2 where the file that %s names is missing', async (_, args, env) => {
    const folder = temporaryFolder()
    const { code, stdout, stderr } = await runProgram(latchkey('serve', ...args), { folder, env })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toBe(`error: there is no config file ${join(folder, 'missing.json')}\n`)
    expect(readdirSync(folder)).toEqual([])
  })

  it('exits 1 and names the address where something else listens on it', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void other.close())
    await new Promise((resolve) => other.once('listening', resolve))
    const { port } = other.address() as AddressInfo
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'config.json'), '{}')
    const { code, stderr } = await startProgram(latchkey('serve'), {
      folder,
      env: { LATCHKEY_PORT: String(port) },
    }).exit
    expect(code).toBe(1)
    expect(stderr).toBe(
      `error: something else listens on 127.0.0.1:${port}: set another port in the config, or LATCHKEY_PORT\n`,
    )
  })

  it.each([
    [
      '192.0.2.1',
      'this machine has no address 192.0.2.1 to listen on: set another host in the config, or LATCHKEY_HOST',
    ],
    [
      'no-such-host.invalid',
      "the host no-such-host.invalid can't be found: set another host in the config, or LATCHKEY_HOST",
    ],
  ])('exits 1 and says what to do where it can not listen on %s', async (LATCHKEY_HOST, message) => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'config.json'), '{}')
    const { code, stderr } = await runProgram(latchkey('serve'), { folder, env: { LATCHKEY_HOST } })
    expect({ code, stderr }).toEqual({ code: 1, stderr: `error: ${message}\n` })
  })
})

// Where not even root can make a file.
it.skipIf(!existsSync('/proc/self'))('a first start says so where it can not make its config', async () => {
  const { code, stdout, stderr } = await runProgram(latchkey('serve'), { folder: '/proc' })
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(
    /^error: \/proc\/config\.json can't be made: [^:]+: start in a folder that can be written, or name a config with --config\n$/,
  )
})

function endIfRunning(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended, as it should have.
  }
}
