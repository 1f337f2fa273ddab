import { createHash } from 'node:crypto'
import { chmodSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.js'
import { UNLIMITED } from '../../src/handlers/api-key.js'
import { endpoint, fromEnv, writeConfig } from '../config/config-file.js'
import { keyEntry, run, temporaryFolder } from '../world.js'

const SECRET = 'whsec_0123456789abcdef'
const ENTRY = keyEntry('app', 'lk_first')

describe('latchkey config check', () => {
  const check = (path: string, env = {}) => run('/nowhere', `config check --config ${path}`, { env })

  it('says ok, with warnings, which are no problem, and shows no secret', async () => {
    const v3 = { endpoints: { v3: endpoint('live', fromEnv('SECRET')) } }
    for (const [config, env, warning] of [
      [v3, { SECRET }, ''],
      [{}, {}, 'warning: endpoints: is empty: no delivery can be received\n'],
      [
        v3,
        { SECRET: 'whsec_guess-me' },
        'warning: endpoints.v3.secrets[0]: can be guessed: it has fewer than 16 characters after whsec_\n',
      ],
      [
        { endpoints: { v3: endpoint('live', { secret: SECRET, notAfter: '2026-01-01T00:00:00Z' }) } },
        {},
        'warning: endpoints.v3.secrets: have all passed their notAfter, so every delivery is refused: add the current secret\n',
      ],
    ] as const) {
      const path = writeConfig(config)
      expect(await check(path, env)).toEqual({ code: 0, stdout: `ok: ${path}\n${warning}`, stderr: '' })
    }
  })

  it('finds the file by LATCHKEY_CONFIG too', async () => {
    const path = writeConfig({ endpoints: { v3: endpoint('live', SECRET) } })
    const { stdout } = await run('/nowhere', 'config check', { env: { LATCHKEY_CONFIG: path } })
    expect(stdout).toBe(`ok: ${path}\n`)
  })

  it('shows every problem on a line of its own and exits 2', async () => {
    const path = writeConfig({ endpoints: { v3: endpoint('live', '', fromEnv('UNSET')) }, port: 1 })
    expect(await check(path)).toEqual({
      code: 2,
      stdout: '',
      stderr: [
        `error: the config file ${path} has 3 problems`,
        "  endpoints.v3.secrets[1]: names the variable UNSET, which is not set in this process's environment",
        '  endpoints.v3.secrets[0]: is empty',
        '  port: is not a known key',
        '',
      ].join('\n'),
    })
  })

  it('answers in JSON if asked to', async () => {
    const good = writeConfig({})
    expect(JSON.parse((await check(`${good} --json`)).stdout)).toEqual({
      ok: true,
      path: good,
      warnings: [{ path: 'endpoints', message: 'is empty: no delivery can be received' }],
    })
    const bad = writeConfig({ port: 1 })
    const message = `the config file ${bad} has a problem`
    const issues = [{ path: 'port', message: 'is not a known key' }]
    const { stderr } = await check(`${bad} --json`)
    expect(JSON.parse(stderr)).toEqual({ error: { code: 'config_invalid', message, issues } })
  })
})

describe('latchkey keys', () => {
  const NOW = Date.parse('2026-03-01T12:00:00Z')
  const APP = '--name app --scope read --environment live'
  const keys = (path: string, words: string, now = NOW) =>
    run('/nowhere', `keys ${words} --config ${path}`, { now: () => now })
  const create = (path: string, options: string) => keys(path, `create ${options}`)
  const keyIn = (text: string) => /lk_[\w-]{43}/.exec(text)?.[0] ?? 'no key'
  const sha256 = (key: string) => createHash('sha256').update(key).digest('hex')
  const keysOf = (path: string) => loadConfig({ path, env: {} }).config.apiKeys
  const made = { ...UNLIMITED, createdAt: NOW }

  it('create shows a key once, of which the config keeps the hash', async () => {
    const path = writeConfig({})
    const { code, stdout } = await create(path, APP)
    const key = keyIn(stdout)
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: `API key "app" (shown only now): ${key}\nAdded to ${path}. No daemon is running here: this takes effect at the next start.\n`,
    })
    expect(readFileSync(path, 'utf8')).not.toContain(key)
    const added = { name: 'app', sha256: sha256(key), scopes: ['read'], environments: ['live'], ...made }
    expect(keysOf(path)).toEqual([added])

    const again = await create(path, APP)
    expect(again).toEqual({ code: 2, stdout: '', stderr: 'error: a key named "app" already exists\n' })
    const more = '--name ops --scope read write --scope read --environment live sandbox --expires 90d'
    const { entry, ...told } = JSON.parse((await create(path, `${more} --json`)).stdout)
    expect(told).toEqual({ key: expect.stringMatching(/^lk_[\w-]{43}$/), path, inUse: false })
    const ops = { name: 'ops', scopes: ['read', 'write'], environments: ['live', 'sandbox'] }
    const times = { createdAt: '2026-03-01T12:00:00Z', expiresAt: '2026-05-30T12:00:00Z' }
    expect(entry).toEqual({ ...ops, hash: `sha256:${sha256(told.key)}`, ...times })
    const expiresAt = Date.parse(times.expiresAt)
    expect(keysOf(path)).toEqual([added, { ...ops, sha256: sha256(told.key), ...made, expiresAt }])

    expect((await keys(path, 'list')).stdout).toBe(
      'app  read        live          no end                         never used\n' +
        'ops  read,write  live,sandbox  ends 2026-05-30T12:00:00.000Z  never used\n',
    )
    const listed = JSON.parse((await keys(path, 'list --json')).stdout)
    expect(listed).toMatchObject({ keys: [{ name: 'app', scopes: ['read'], environments: ['live'] }, ops] })
  })

  it('rotate makes another secret, and keeps the old one for as long as was asked', async () => {
    const path = writeConfig(`{ "log": {"level":  "info"},\n"api": { "keys": [${JSON.stringify(ENTRY)}] } }`)
    const { stdout } = await keys(path, 'rotate app')
    const first = keyIn(stdout)
    expect(stdout).toContain('The old key is valid until 2026-03-02T12:00:00Z.')
    expect(readFileSync(path, 'utf8')).toContain('{ "log": {"level":  "info"},\n')
    const rotated = { ...made, name: 'app', scopes: ['read'], environments: ['live'] }
    const old = { ...rotated, createdAt: null, isReplaced: true }
    const before = { ...old, sha256: ENTRY.hash.slice(7), expiresAt: NOW + 86_400_000 }
    expect(keysOf(path)).toEqual([{ ...rotated, sha256: sha256(first) }, before])

    // The one before that ends.
    const again = JSON.parse((await keys(path, 'rotate app --grace 30d --expires 7d --json', NOW + 1)).stdout)
    const inAWeek = NOW + 7 * 86_400_000
    const [next, replaced, ...others] = keysOf(path)
    expect(again).toMatchObject({ name: 'app', inUse: false, oldIsValidUntil: '2026-03-31T12:00:00Z' })
    expect(next).toMatchObject({ sha256: sha256(again.key), expiresAt: inAWeek })
    expect(replaced).toMatchObject({ sha256: sha256(first), isReplaced: true })
    expect(others).toEqual([])

    // The old one ends when it would have.
    await keys(path, 'rotate app --grace 30d --expires never')
    expect(keysOf(path)).toMatchObject([{ expiresAt: null }, { expiresAt: inAWeek, isReplaced: true }])
    const { stdout: last } = await keys(path, 'rotate app --grace none')
    expect(last).toContain('The old key is no longer valid.')
    expect(keysOf(path)).toEqual([{ ...rotated, sha256: sha256(keyIn(last)) }])
  })

  it('revoke removes a key, and names those that there are', async () => {
    const path = writeConfig({
      api: { keys: [ENTRY, { ...ENTRY, name: 'ops', hash: `sha256:${'2'.repeat(64)}` }] },
    })
    expect(await keys(path, 'revoke op')).toEqual({
      code: 2,
      stdout: '',
      stderr: 'error: no key is named "op": the keys are app, ops\n',
    })
    expect((await keys(path, 'revoke app')).stdout).toBe(
      `Removed "app" from ${path}. No daemon is running here: this takes effect at the next start.\n`,
    )
    expect(keysOf(path)).toMatchObject([{ name: 'ops' }])
  })

  it('list says how to make one where there is none', async () => {
    const { stdout } = await keys(writeConfig({}), 'list')
    expect(stdout).toContain('latchkey keys create')
  })

  it('create notes that no endpoint is of the environment, and makes the key', async () => {
    const path = writeConfig({ endpoints: { test: endpoint('sandbox', SECRET) } })
    expect(await create(path, `${APP} sandbox`)).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^note: no live endpoint .*\n$/),
    })
    expect(keysOf(path)).toHaveLength(1)
    for (const environment of ['live', fromEnv('WHICH')]) {
      const fine = writeConfig({ endpoints: { v3: { environment, secrets: [SECRET] } } })
      expect(await create(fine, APP)).toMatchObject({ code: 0, stderr: '' })
    }
  })

  it('create needs no secret of the config, and leaves all that it does not understand as it is', async () => {
    const text = `{ "endpoints": {"v3": {"environment":"live", "secrets": ["${fromEnv('UNSET')}"]}},\n\t"mine": [ 1 ] }\n`
    const path = writeConfig(text)
    expect((await create(path, APP)).code).toBe(0)
    const [first = ''] = text.split('\n')
    const written = readFileSync(path, 'utf8')
    expect(written.startsWith(first)).toBe(true)
    expect(JSON.parse(written)).toMatchObject({ mine: [1] })
  })

  it('create keeps the mode of the file that a link points to, and leaves nothing else behind', async () => {
    const path = writeConfig({})
    chmodSync(path, 0o640)
    const link = join(temporaryFolder(), 'link.json')
    symlinkSync(path, link)
    await create(link, APP)
    expect(keysOf(path)).toHaveLength(1)
    expect(statSync(path).mode & 0o777).toBe(0o640)
    expect(readdirSync(dirname(path))).toEqual(['config.json'])
  })

  it('create only prints with --print', async () => {
    const path = writeConfig({})
    const { code, stdout } = await create(path, `${APP} --print`)
    expect({ code, config: readFileSync(path, 'utf8') }).toEqual({ code: 0, config: '{}' })
    expect(JSON.parse(stdout.slice(stdout.indexOf('{')))).toEqual({
      name: 'app',
      hash: `sha256:${sha256(keyIn(stdout))}`,
      scopes: ['read'],
      environments: ['live'],
      createdAt: '2026-03-01T12:00:00Z',
    })
  })
})
