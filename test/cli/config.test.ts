import { createHash } from 'node:crypto'
import { chmodSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.js'
import { endpoint, fromEnv, writeConfig } from '../config/config-file.js'
import { run, temporaryFolder } from '../world.js'

const SECRET = 'whsec_0123456789abcdef'

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
        'warning: endpoints.v3.secrets: have all passed their notAfter: every delivery is refused\n',
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
  const APP = '--name app --scope read --environment live'
  const create = (path: string, options: string) => run('/nowhere', `keys create --config ${path} ${options}`)
  const keyIn = (text: string) => /lk_[\w-]{43}/.exec(text)?.[0] ?? 'no key'
  const sha256 = (key: string) => createHash('sha256').update(key).digest('hex')
  const keysOf = (path: string) => loadConfig({ path, env: {} }).config.apiKeys

  it('create shows a key once, of which the config keeps the hash', async () => {
    const path = writeConfig({})
    const { code, stdout } = await create(path, APP)
    const key = keyIn(stdout)
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: `API key "app" (shown only now): ${key}\nAdded to ${path}. A running daemon uses it after \`latchkey reload\`\n`,
    })
    expect(readFileSync(path, 'utf8')).not.toContain(key)
    const added = { name: 'app', sha256: sha256(key), scopes: ['read'], environments: ['live'] }
    expect(keysOf(path)).toEqual([added])

    const again = await create(path, APP)
    expect(again).toEqual({ code: 2, stdout: '', stderr: 'error: a key named "app" exists already\n' })
    const more = '--name ops --scope read write --scope read --environment live sandbox'
    const { entry, ...told } = JSON.parse((await create(path, `${more} --json`)).stdout)
    expect(told).toEqual({ key: expect.stringMatching(/^lk_[\w-]{43}$/), path })
    const ops = { name: 'ops', scopes: ['read', 'write'], environments: ['live', 'sandbox'] }
    expect(entry).toEqual({ ...ops, hash: `sha256:${sha256(told.key)}` })
    expect(keysOf(path)).toEqual([added, { ...ops, sha256: sha256(told.key) }])

    const list = `keys list --config ${path}`
    expect((await run('/nowhere', list)).stdout).toBe(
      'app  read        live\nops  read,write  live,sandbox\n',
    )
    const listed = JSON.parse((await run('/nowhere', `${list} --json`)).stdout)
    expect(listed).toEqual({ keys: [{ name: 'app', scopes: ['read'], environments: ['live'] }, ops] })
  })

  it('list says how to make one where there is none', async () => {
    const { stdout } = await run('/nowhere', `keys list --config ${writeConfig({})}`)
    expect(stdout).toContain('latchkey keys create')
  })

  it('create notes that no endpoint is of the environment, and makes the key', async () => {
    const path = writeConfig({ endpoints: { test: endpoint('sandbox', SECRET) } })
    expect(await create(path, `${APP} sandbox`)).toMatchObject({
      code: 0,
      stderr: 'note: no live endpoint is configured, so there is nothing live to ask about yet\n',
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
    })
  })
})
