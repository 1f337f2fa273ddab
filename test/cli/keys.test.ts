import { createHash } from 'node:crypto'
import { chmodSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.js'
import { endpoint, fromEnv, temporaryFolder, writeConfig } from '../config/config-file.js'
import { cli } from './run-cli.js'

const APP = ['--name', 'app', '--scope', 'read', '--environment', 'live']

function create(path: string, ...args: string[]) {
  return cli(['keys', 'create', '--config', path, ...args])
}

function keyIn(text: string): string {
  return /lk_[\w-]{43}/.exec(text)?.[0] ?? 'no key'
}

function sha256(key: string): string {
  return createHash('sha256').update(key).digest('hex')
}

describe('latchkey keys create', () => {
  it('shows a key once, of which the config keeps the hash', async () => {
    const path = writeConfig({})
    const { exitCode, out } = await create(path, ...APP)
    expect(exitCode).toBe(0)
    expect(out).toBe(
      `API key "app" (shown only now): ${keyIn(out)}\nAdded to ${path}. A running daemon takes it up on \`latchkey reload\`\n`,
    )
    expect(readFileSync(path, 'utf8')).not.toContain(keyIn(out))
    expect(loadConfig({ path, env: {} }).config.apiKeys).toEqual([
      { name: 'app', sha256: sha256(keyIn(out)), scopes: ['read'], environments: ['live'] },
    ])
  })

  it('says so where no endpoint is of the environment, and makes the key', async () => {
    const path = writeConfig({ endpoints: { test: endpoint('sandbox', 'whsec_0123456789abcdef') } })
    const { exitCode, out, err } = await create(path, ...APP, 'sandbox')
    expect({ exitCode, err }).toEqual({
      exitCode: 0,
      err: 'note: no live endpoint is configured, so there is nothing live to ask about yet\n',
    })
    expect(loadConfig({ path, env: {} }).config.apiKeys).toMatchObject([{ sha256: sha256(keyIn(out)) }])
  })

  it.each(['live', fromEnv('WHICH')])(
    'says nothing where an endpoint is, or may be: %s',
    async (environment) => {
      const path = writeConfig({ endpoints: { v3: { environment, secrets: ['whsec_0123456789abcdef'] } } })
      expect(await create(path, ...APP)).toMatchObject({ exitCode: 0, err: '' })
    },
  )

  it('takes several scopes and environments', async () => {
    const path = writeConfig({})
    await create(
      path,
      '--name',
      'ops',
      '--scope',
      'read',
      'write',
      '--scope',
      'read',
      '--environment',
      'live',
      'sandbox',
    )
    expect(loadConfig({ path, env: {} }).config.apiKeys).toMatchObject([
      { scopes: ['read', 'write'], environments: ['live', 'sandbox'] },
    ])
  })

  it('needs no secret of the config, and leaves what it does not understand as it is', async () => {
    const text =
      '{ "endpoints": {"v3": {"environment":"live", "secrets": ["$' + '{env:UNSET}"]}},\n\t"mine": [ 1 ] }\n'
    const path = writeConfig(text)
    expect((await create(path, ...APP)).exitCode).toBe(0)
    expect(readFileSync(path, 'utf8').startsWith(text.slice(0, -3))).toBe(true)
  })

  it('keeps the mode of the file, and leaves nothing else behind', async () => {
    const path = writeConfig({})
    chmodSync(path, 0o640)
    await create(path, ...APP)
    expect((statSync(path).mode & 0o777).toString(8)).toBe('640')
    expect(readdirSync(dirname(path))).toEqual(['config.json'])
  })

  it('changes the file that a link points to', async () => {
    const path = writeConfig({})
    const link = join(temporaryFolder(), 'link.json')
    symlinkSync(path, link)
    await create(link, ...APP)
    expect(loadConfig({ path, env: {} }).config.apiKeys).toHaveLength(1)
  })

  it('refuses a name that is taken and changes nothing', async () => {
    const path = writeConfig({})
    await create(path, ...APP)
    const before = readFileSync(path, 'utf8')
    expect(await create(path, ...APP)).toEqual({
      exitCode: 2,
      out: '',
      err: 'error: a key named "app" exists already\n',
    })
    expect(readFileSync(path, 'utf8')).toBe(before)
  })

  it.each([
    ['no name', ['--scope', 'read', '--environment', 'live']],
    ['a blank name', ['--name', ' ', '--scope', 'read', '--environment', 'live']],
    ['no scope', ['--name', 'app', '--environment', 'live']],
    ['no environment', ['--name', 'app', '--scope', 'read']],
    ['an unknown scope', ['--name', 'app', '--scope', 'all', '--environment', 'live']],
  ])('exits 2 for %s', async (_, args) => {
    const path = writeConfig({})
    expect(await create(path, ...args)).toMatchObject({ exitCode: 2, out: '' })
    expect(readFileSync(path, 'utf8')).toBe('{}')
  })

  it('exits 2 where there is no config file', async () => {
    expect((await create('/nowhere/config.json', ...APP)).err).toBe(
      'error: there is no config file /nowhere/config.json\n',
    )
  })

  it('only prints with --print', async () => {
    const path = writeConfig({})
    const { exitCode, out } = await create(path, ...APP, '--print')
    expect(exitCode).toBe(0)
    expect(readFileSync(path, 'utf8')).toBe('{}')
    expect(JSON.parse(out.slice(out.indexOf('{')))).toEqual({
      name: 'app',
      hash: `sha256:${sha256(keyIn(out))}`,
      scopes: ['read'],
      environments: ['live'],
    })
  })

  it('answers in JSON if asked to', async () => {
    const path = writeConfig({})
    const answer: unknown = JSON.parse((await create(path, ...APP, '--json')).out)
    expect(answer).toEqual({
      key: expect.stringMatching(/^lk_[\w-]{43}$/),
      entry: {
        name: 'app',
        hash: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
        scopes: ['read'],
        environments: ['live'],
      },
      path,
    })
  })
})

describe('latchkey keys list', () => {
  it('shows names, scopes and environments, and no hash', async () => {
    const path = writeConfig({})
    await create(path, ...APP)
    await create(path, '--name', 'ops', '--scope', 'read', 'admin', '--environment', 'sandbox')
    expect((await cli(['keys', 'list', '--config', path])).out).toBe(
      'app  read        live\nops  read,admin  sandbox\n',
    )
    expect(JSON.parse((await cli(['keys', 'list', '--config', path, '--json'])).out)).toEqual({
      keys: [
        { name: 'app', scopes: ['read'], environments: ['live'] },
        { name: 'ops', scopes: ['read', 'admin'], environments: ['sandbox'] },
      ],
    })
  })

  it('says how to make one where there is none', async () => {
    expect((await cli(['keys', 'list', '--config', writeConfig({})])).out).toContain('latchkey keys create')
  })
})
