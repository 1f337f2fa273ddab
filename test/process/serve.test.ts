import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { expectNothingLost } from '../faults/aftermath.js'
import { portOf } from '../setup/port-of.js'
import { customerStory, deliver, eventsOf, storiesOf } from '../stories.js'
import {
  ask,
  configuredFolder,
  databaseIn,
  kill,
  latchkey,
  runProgram,
  type ServedDaemon,
  serve,
  temporaryFolder,
} from '../world.js'

/** `script` of util-linux runs a program on a terminal of its own. */
const HAS_SCRIPT = /util-linux/.test(spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout ?? '')

const modeOf = (...path: string[]) => (statSync(join(...path)).mode & 0o777).toString(8)

describe('a first start in an empty folder', () => {
  it('makes a config, a database and a key for its user alone, whatever the umask allows, which the next one uses', async () => {
    const folder = temporaryFolder()
    const first = await serve(folder, {}, ['sh', '-c', 'umask 0; exec "$@"', 'sh', ...latchkey('serve')])
    expect([modeOf(folder, 'config.json'), modeOf(folder, 'data')]).toEqual(['600', '700'])
    const files = readdirSync(join(folder, 'data'))
    expect(files).toEqual(expect.arrayContaining(['first-key.txt', 'latchkey.db', 'latchkey.db-wal']))
    for (const name of files) expect([name, modeOf(folder, 'data', name)]).toEqual([name, '600'])
    expect(readdirSync(folder).sort()).toEqual(['config.json', 'data'])

    const key = readFileSync(join(folder, 'data', 'first-key.txt'), 'utf8').trimEnd()
    expect(key).toMatch(/^lk_[\w-]{43}$/)
    expect((await ask(first, '/entitlements/cus_1', key)).status).toBe(200)
    await first.stop()
    const { stdout, stderr } = await first.exit
    for (const line of [
      'API key: in data/first-key.txt',
      '  export LATCHKEY_API_KEY=$(cat data/first-key.txt)',
      '  npx latchkey trigger payment.authorized --customer cus_1 --product pro_1',
      '  npx latchkey check cus_1',
    ]) {
      expect(stderr).toContain(`${line}\n`)
    }
    const config = readFileSync(join(folder, 'config.json'), 'utf8')
    expect(stdout + stderr).not.toContain('whsec_')
    expect(stdout + stderr + config).not.toContain(key)
    for (const line of stdout.trimEnd().split('\n')) expect(JSON.parse(line)).toHaveProperty('msg')

    const second = await serve(folder)
    expect(second.stdout() + second.stderr()).not.toContain('Made ')
    expect(readFileSync(join(folder, 'config.json'), 'utf8')).toBe(config)
    expect((await ask(second, '/entitlements/cus_1', key)).status).toBe(200)
  })

  it.skipIf(!HAS_SCRIPT)('shows the key on a terminal, and makes no file for it', async () => {
    const folder = temporaryFolder()
    const daemon = await serve(folder, {}, ['script', '-qec', latchkey('serve').join(' '), '/dev/null'])
    // It has a session of its own there, out of reach of what ends the rest of a test.
    onTestFinished(() => endIfRunning(daemon.pid))
    const [, key = ''] = await daemon.until(/API key \(shown only now\): (lk_[\w-]{43})\r?\n/)
    expect(daemon.stdout()).toContain(`  export LATCHKEY_API_KEY=${key}\r\n`)
    expect((await ask(daemon, '/entitlements/cus_1', key)).status).toBe(200)
    expect(existsSync(join(folder, 'data', 'first-key.txt'))).toBe(false)
    process.kill(daemon.pid, 'SIGTERM')
    expect((await daemon.exit).code).toBe(0)
    expect(daemon.stdout().split(key)).toHaveLength(3)
  })

  // Where not even root can make a file.
  it.skipIf(!existsSync('/proc/self'))('says so where it cannot make its config', async () => {
    const { code, stdout, stderr } = await runProgram(latchkey('serve'), { folder: '/proc' })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(
      /^error: \/proc\/config\.json can't be created: [^:]+: start in a writable folder, or name a config with --config\n$/,
    )
  })
})

function endIfRunning(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended, as it should have.
  }
}

describe('a start', () => {
  it('makes nothing and exits 2 where the config that is named is missing', async () => {
    const folder = temporaryFolder()
    const exit = await runProgram(latchkey('serve', '--config', 'missing.json'), { folder })
    const stderr = `error: there is no config file ${join(folder, 'missing.json')}\n`
    expect(exit).toEqual({ code: 2, stdout: '', stderr })
    expect(readdirSync(folder)).toEqual([])
  })

  it('exits 1, names the address where something else listens on it, and leaves nothing behind', async () => {
    const port = await portOf(createServer())
    const env = { LATCHKEY_PORT: String(port) }
    const folder = configuredFolder('{}')
    const { code, stderr } = await runProgram(latchkey('serve'), { folder, env })
    const todo = 'set another port in the config, or LATCHKEY_PORT'
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `error: something else listens on 127.0.0.1:${port}: ${todo}\n`,
    })
    expect(readdirSync(folder)).toEqual(['config.json'])
  })

  it('on a database that another daemon serves exits 1 while that goes on, and succeeds once it is killed', async () => {
    const folder = configuredFolder()
    const first = await serve(folder)
    const env = { LATCHKEY_PORT: '0' }
    const second = await runProgram(latchkey('serve', '--json'), { folder, env })
    expect({ code: second.code, stdout: second.stdout }).toEqual({ code: 1, stdout: '' })
    const message = expect.stringMatching(
      `^Another daemon or command is using ${databaseIn(folder)}. If it is a daemon, stop it or use it `,
    )
    expect(JSON.parse(second.stderr)).toEqual({ error: { code: 'store_in_use', message, issues: [] } })
    const { events } = customerStory(0)
    expect((await deliver(first.url, events)).dispositions).toEqual(['applied', 'applied'])

    await kill(first)
    expect(existsSync(join(folder, 'data', 'latchkey.sock'))).toBe(true)
    const third = await serve(folder)
    expect((await deliver(third.url, events)).dispositions).toEqual(['duplicate', 'duplicate'])
  })
})

describe('a daemon that is told to stop', () => {
  /** A connection that says this much and then nothing more, once the daemon has answered. */
  async function connection({ url }: ServedDaemon, said: string): Promise<Socket> {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    onTestFinished(() => void socket.destroy())
    // However the daemon ends it, it is to end.
    socket.on('error', () => {})
    await new Promise((resolve) => socket.once('connect', resolve))
    if (said === '') return socket
    socket.write(said)
    await new Promise((resolve) => socket.once('data', resolve))
    return socket
  }

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'by %s answers what is under way, waits for nobody who never ends, keeps all that it acknowledged, and exits 0',
    async (signal) => {
      const folder = configuredFolder()
      const daemon = await serve(folder)
      await connection(daemon, '')
      await connection(daemon, 'GET /healthz HTTP/1.1\r\nHost: latchkey\r\n\r\n')
      const head = 'POST /webhooks/live HTTP/1.1\r\nHost: latchkey\r\nContent-Length: 100'
      await connection(daemon, `${head}\r\nExpect: 100-continue\r\n\r\nhalf`)
      const events = eventsOf(storiesOf(0, 400))
      const load = await deliver(daemon.url, events, {
        onAcknowledged: (count) => {
          if (count === 150) daemon.signal(signal)
        },
      })

      const deadline = setTimeout(() => daemon.signal('SIGKILL'), 10_000)
      expect((await daemon.exit).code).toBe(0)
      clearTimeout(deadline)
      expect(daemon.logged().map(({ msg }) => msg)).toContain('stopped')
      expect(daemon.stderr()).toBe('')
      expect(existsSync(join(folder, 'data', 'latchkey.sock'))).toBe(false)
      expect(load.refused).toEqual([])
      expect(load.acknowledged.length).toBeLessThan(events.length)
      // Whatever was stored was answered too: nothing was cut off.
      const stored = await expectNothingLost(folder, load.acknowledged)
      expect(stored.toSorted()).toEqual(load.acknowledged.toSorted())
    },
  )
})
