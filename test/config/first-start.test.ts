import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createFirstConfig } from '../../src/config/first-start.js'
import { loadConfig } from '../../src/config/load.js'
import { UNLIMITED } from '../../src/handlers/api-key.js'
import { ROOT, run, temporaryFolder } from '../world.js'
import { fromEnv, refusal } from './config-file.js'

const schema = join(ROOT, 'config.schema.json')

function firstStart(isTerminal = true, address: { readonly host?: string; readonly port?: string } = {}) {
  const path = join(temporaryFolder(), 'config.json')
  return { path, ...createFirstConfig({ path, isTerminal, schema, program: 'npx latchkey', ...address }) }
}

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

describe('the config of a first start', () => {
  it('has one sandbox endpoint, admits the key that is shown, of which it keeps the hash, and is for its owner alone', () => {
    const { path, key } = firstStart()
    const { config, warnings } = loadConfig({ path, env: {} })
    expect(warnings).toEqual([])
    const secrets = [{ secret: expect.stringMatching(/^whsec_[\w-]{43}$/), notAfter: null }]
    expect(config.endpoints).toEqual([
      {
        name: 'sandbox',
        environment: 'sandbox',
        secrets,
        toleranceSeconds: 300,
        aheadAtMostMs: 3_650 * 86_400_000,
      },
    ])
    const sha256 = createHash('sha256').update(key).digest('hex')
    const scopes = ['read', 'write', 'events', 'metrics', 'admin']
    expect(config.apiKeys).toEqual([
      { name: 'first', sha256, scopes, environments: ['sandbox'], ...UNLIMITED },
    ])
    expect(readFileSync(path, 'utf8')).not.toContain(key)
    expect(modeOf(path)).toBe('600')
    expect(readdirSync(dirname(path))).toEqual(['config.json'])
    const other = firstStart()
    const { endpoints } = loadConfig({ path: other.path, env: {} }).config
    expect([other.key, endpoints[0]?.secrets]).not.toEqual([key, config.endpoints[0]?.secrets])
  })

  it('keeps the address that the environment names, for later commands, and leads editors to its schema', () => {
    const { path, next } = firstStart(true, { host: '127.0.0.2', port: '4999' })
    expect(loadConfig({ path, env: {} }).config.server).toMatchObject({ host: '127.0.0.2', port: 4999 })
    expect(next).toContain(' http://127.0.0.2:4999/entitlements/cus_1\n')
    const { $schema } = JSON.parse(readFileSync(path, 'utf8'))
    expect(resolve(dirname(path), $schema)).toBe(schema)
    for (const port of ['0', '']) {
      expect(loadConfig({ path: firstStart(true, { port }).path, env: {} }).config.server.port).toBe(4680)
    }
  })

  it.each([
    ['0.0.0.0', 'http://127.0.0.1:4680'],
    ['::', 'http://[::1]:4680'],
    ['fd00::1', 'http://[fd00::1]:4680'],
    ['box.example', 'http://box.example:4680'],
  ])('names an address that can be called where it listens on %s', (host, url) => {
    expect(firstStart(true, { host }).next).toContain(` ${url}/entitlements/cus_1\n`)
  })

  it.each([
    { port: 'abc' },
    { port: '70000' },
    { port: '-1' },
    { port: '80.5' },
    { host: ' ' },
    { host: fromEnv('HOST') },
  ])('is not written with an address that no daemon would load: %j', (address) => {
    const path = join(temporaryFolder(), 'config.json')
    const options = { path, isTerminal: false, schema, program: 'latchkey', ...address }
    expect(refusal(() => createFirstConfig(options))).toMatchObject({
      code: 'config_invalid',
      issues: [expect.anything()],
    })
    expect(readdirSync(dirname(path))).toEqual([])
  })

  it('shows commands as a shell finds them', async () => {
    const bin = temporaryFolder()
    const shown = async (path: string) =>
      (await run(temporaryFolder(), 'init', { env: { PATH: path }, isTerminal: true })).stdout
    expect(await shown(bin)).toContain('\n  npx latchkey serve\n')
    writeFileSync(join(bin, 'latchkey'), '')
    expect(await shown(`/nowhere:${bin}`)).toContain('\n  latchkey serve\n  latchkey trigger ')
    // A path as npm makes it for what it runs.
    const ofNpm = join(temporaryFolder(), 'node_modules', '.bin')
    mkdirSync(ofNpm, { recursive: true })
    writeFileSync(join(ofNpm, 'latchkey'), '')
    expect(await shown(ofNpm)).toContain('\n  npx latchkey serve\n')
  })

  it('never takes the place of a file that is there', () => {
    const path = join(temporaryFolder(), 'config.json')
    writeFileSync(path, 'mine')
    const message = `the config file ${path} already exists: start the daemon with \`latchkey serve\``
    expect(
      refusal(() => createFirstConfig({ path, isTerminal: false, schema, program: 'latchkey' })),
    ).toMatchObject({ code: 'config_invalid', message })
    expect(readFileSync(path, 'utf8')).toBe('mine')
    expect(readdirSync(dirname(path))).toEqual(['config.json'])
  })
})
