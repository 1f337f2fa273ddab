import { createHash } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { loadConfig } from '../../src/config/load.js'
import { startDaemon } from '../../src/daemon.js'
import { createLogger } from '../../src/log.js'
import { endpoint, writeConfig } from '../config/config-file.js'
import { temporaryFile } from '../store/temporary-store.js'
import { type CliRun, cli, NOW } from './run-cli.js'

const KEY = 'lk_all_rights'

/** A config of a database that is not there yet, with a key that may all. */
function configOf(file: string): string {
  const hash = `sha256:${createHash('sha256').update(KEY).digest('hex')}`
  const scopes = ['read', 'write', 'events', 'admin']
  return writeConfig({
    server: { port: 0 },
    database: { url: `sqlite:${file}` },
    endpoints: { live: endpoint('live', 'whsec_live_0123456789') },
    api: { keys: [{ name: 'all', hash, scopes, environments: ['live', 'sandbox'] }] },
  })
}

const COMMANDS = [
  ['check', 'cus_1', '--json'],
  ['explain', 'cus_1', 'pro_1'],
  ['events', 'list', '--json'],
  ['events', 'export'],
  ['policy', 'show', '--json'],
  ['policy', 'diff', '--json'],
  ['rebuild', '--verify', '--json'],
  ['replay', '--dry-run', '--json'],
] as const

/** What is asked at another instant says so. */
const timeless = (text: string) => text.replaceAll(/"(asOf|startedAt|endedAt)":"[^"]*"/g, '"$1":""')

it('a command answers alike from the daemon at the socket, at --url, and from one within itself', async () => {
  const file = temporaryFile()
  const path = configOf(file)
  const run = (args: readonly string[], env = {}) => cli([...args, '--config', path], env)
  expect(await run(['grant', 'cus_1', 'pro_1', '--reason', 'a test'])).toMatchObject({ exitCode: 0 })
  const within: CliRun[] = []
  for (const args of COMMANDS) within.push(await run(args))
  expect(within.map(({ exitCode }) => exitCode)).toEqual(COMMANDS.map(() => 0))

  const { config } = loadConfig({ path, env: {} })
  const daemon = await startDaemon(config, { clock: () => NOW, log: createLogger('silent') })
  onTestFinished(daemon.stop)
  for (const [n, args] of COMMANDS.entries()) {
    const atSocket = await run(args)
    expect(timeless(atSocket.out)).toBe(timeless(within[n]?.out ?? ''))
    const atUrl = await cli(
      [...args, '--url', daemon.url, '--environment', 'live'].slice(0, urlWords(args)),
      {
        LATCHKEY_API_KEY: KEY,
      },
    )
    expect({ args, exitCode: atUrl.exitCode, err: atUrl.err }).toMatchObject({ args, exitCode: 0 })
    expect(timeless(atUrl.out)).toBe(timeless(atSocket.out))
  }
})

/** All words, but for the environment where a command is about both. */
function urlWords(args: readonly string[]): number {
  const isAboutOne = ['check', 'explain', 'events', 'replay'].includes(args[0] ?? '')
  return args.length + (isAboutOne ? 4 : 2)
}

it('the doctor tells at --url what the daemon finds', async () => {
  const { config } = loadConfig({ path: configOf(temporaryFile()), env: {} })
  const daemon = await startDaemon(config, { clock: () => NOW, log: createLogger('silent') })
  onTestFinished(daemon.stop)
  const { out } = await cli(['doctor', '--thorough', '--json', '--url', daemon.url], {
    LATCHKEY_API_KEY: KEY,
  })
  const { findings } = JSON.parse(out) as { findings: readonly { what: string; level: string }[] }
  const levels = new Map(findings.map(({ what, level }) => [what, level]))
  for (const what of ['daemon', 'refused live', 'integrity', 'body hashes', 'policy', 'sync'])
    expect([what, levels.get(what)]).toEqual([what, 'ok'])
})

describe('a daemon within a command', () => {
  it('waits for another command that works on the same database', async () => {
    const path = configOf(temporaryFile())
    const grants = ['pro_1', 'pro_2'].map((product) =>
      cli(['grant', 'cus_1', product, '--reason', 'a test', '--config', path]),
    )
    expect((await Promise.all(grants)).map(({ exitCode, err }) => ({ exitCode, err }))).toEqual(
      grants.map(() => ({ exitCode: 0, err: '' })),
    )
    const { out } = await cli(['check', 'cus_1', '--config', path])
    expect(out.match(/^pro_\d {2}active/gm)).toHaveLength(2)
  })

  it('opens no socket, and leaves nothing open', async () => {
    const file = temporaryFile()
    const path = configOf(file)
    await cli(['grant', 'cus_1', 'pro_1', '--reason', 'a test', '--config', path])
    expect(existsSync(`${dirname(file)}/latchkey.sock`)).toBe(false)
    expect(readdirSync(dirname(file)).sort()).toEqual([
      'latchkey.db',
      'latchkey.db.erasures',
      'latchkey.db.lock',
    ])
  })
})
