import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import fc from 'fast-check'
import { findNodeAtLocation, type Node, parseTree } from 'jsonc-parser'
import { describe, expect, it, onTestFinished } from 'vitest'
import { changeConfigFile } from '../../src/config/change-file.js'
import { loadConfig } from '../../src/config/load.js'
import { lockStore } from '../../src/store/sqlite/file.js'
import { endpoint, fromEnv, SECRET, writeConfig } from '../config/config-file.js'
import { laidOut, SPACES } from '../config/laid-out.js'
import { answerOf, CONFIG, configuredFolder, databaseIn, failureOf, keyEntry, run } from '../world.js'

const NOW = Date.parse('2026-03-01T12:00:00Z')
const DAY_MS = 86_400_000
const APP = '--name app --scope read --environment live'
const now = () => NOW

const sha256 = (key: string) => createHash('sha256').update(key).digest('hex')
const keysOf = (path: string) => loadConfig({ path, env: {} }).config.apiKeys
const hashesOf = (path: string) => keysOf(path).map((key) => [key.name, key.sha256, key.isReplaced])

interface Act {
  readonly kind: 'create' | 'rotate' | 'revoke'
  /** Which of the keys, counted from the first and around. */
  readonly which: number
  readonly options: string
}

const ACTS: fc.Arbitrary<readonly Act[]> = fc.array(
  fc.record({
    kind: fc.constantFrom('create', 'rotate', 'revoke'),
    which: fc.nat(5),
    options: fc.constantFrom('', '--expires 90d', '--expires never'),
  }),
  { minLength: 1, maxLength: 4 },
)

const hash = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => Buffer.from(bytes).toString('hex'))

const ENTRIES = fc.uniqueArray(
  fc.record(
    {
      hash: hash.map((hex) => `sha256:${hex}`),
      scopes: fc.constantFrom(['read'], ['read', 'write']),
      environments: fc.constantFrom(['live'], ['sandbox', 'live']),
      rateLimit: fc.constant({ perSecond: 10 }),
      expiresAt: fc.constant('2026-09-01T00:00:00Z'),
      previous: hash.map((hex) => ({ hash: `sha256:${hex}`, notAfter: '2026-03-02T00:00:00Z' })),
    },
    { requiredKeys: ['hash', 'scopes', 'environments'] },
  ),
  { maxLength: 4, selector: (entry) => entry.hash },
)

const name = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 8 })
  .filter((text) => /^\S+$/.test(text) && !/\p{Cc}|\$\{/u.test(text))

/** The sections of a config, of which the keys are one, in any order. */
const CONFIGS = fc
  .record({ entries: ENTRIES, names: fc.uniqueArray(name, { minLength: 4, maxLength: 4 }), product: name })
  .chain(({ entries, names, product }) => {
    const keys = entries.map((entry, index) => ({ name: `k${index}${names[index]}`, ...entry }))
    const sections = {
      endpoints: { v3: endpoint('live', SECRET), test: endpoint('sandbox', `${SECRET}_sandbox`) },
      products: { [`p${product}`]: { name: product, features: ['7', '1e3', '{ "api": [] }'] } },
      server: { port: 4680, trustProxy: 1 },
      ...(keys.length > 0 && { api: { keys } }),
    }
    return fc
      .shuffledSubarray(Object.entries(sections), { minLength: Object.keys(sections).length })
      .map((some) => Object.fromEntries(some))
  })

/** What a text holds around its keys, byte by byte; null: it has no keys. */
function aroundKeys(text: string): readonly [string, string] | null {
  const keys = findNodeAtLocation(parseTree(text) as Node, ['api', 'keys'])
  return keys === undefined ? null : [text.slice(0, keys.offset), text.slice(keys.offset + keys.length)]
}

async function act(path: string, { kind, which, options }: Act, before: readonly string[]): Promise<void> {
  const chosen = before[which % before.length]
  const words = {
    create: ['create', '--name', `new ${which}`, ...'--scope read --environment live'.split(' ')],
    rotate: ['rotate', chosen ?? 'none'],
    revoke: ['revoke', chosen ?? 'none'],
  }[kind]
  const given = kind === 'revoke' ? [] : options.split(' ').filter((word) => word !== '')
  const all = ['keys', ...words, ...given, '--config', path]
  const isRefused = kind === 'create' ? before.includes(`new ${which}`) : chosen === undefined
  const meant = new Map(hashesOf(path).flatMap(([name, sha, old]) => (old ? [] : [[name, sha]])))
  if (isRefused) {
    const text = readFileSync(path)
    expect((await run('/nowhere', all, { now })).code).toBe(2)
    expect(readFileSync(path).equals(text)).toBe(true)
    return
  }
  const answer = await answerOf('/nowhere', all, { now })
  if (kind === 'revoke') meant.delete(chosen)
  else meant.set(kind === 'create' ? `new ${which}` : chosen, sha256(answer.key))
  const found = hashesOf(path).flatMap(([name, sha, old]) => (old ? [] : [[name, sha]]))
  expect(new Map(found as [string, string][])).toEqual(meant)
}

describe('a config file that keys commands change', () => {
  it('loads after each of them, holds the keys that were meant, and keeps every byte around them, however it is laid out', async () => {
    const property = fc.asyncProperty(CONFIGS, SPACES, ACTS, async (config, spaces, acts) => {
      const path = writeConfig(laidOut(config, spaces))
      for (const one of acts) {
        const before = readFileSync(path, 'utf8')
        await act(path, one, [...new Set(keysOf(path).map((key) => key.name))])
        const after = readFileSync(path, 'utf8')
        const around = aroundKeys(before)
        if (around !== null) expect(aroundKeys(after)).toEqual(around)
        const { api: _, ...rest } = JSON.parse(after)
        const { api: __, ...restBefore } = JSON.parse(before)
        expect(rest).toEqual(restBefore)
        expect(readdirSync(dirname(path))).toEqual(['config.json'])
      }
    })
    await fc.assert(property, { numRuns: 60 })
  })

  it('keeps the other keys as they are written', async () => {
    const entries = ['a', 'b', 'c'].map(
      (name) =>
        `{ "name":"${name}",  "hash": "sha256:${sha256(name)}",\n "scopes":["read"], "environments" : ["live"] }`,
    )
    const path = writeConfig(`{"api": {"keys": [${entries.join(', ')}]}}`)
    await answerOf('/nowhere', `keys revoke c --config ${path}`)
    expect(readFileSync(path, 'utf8')).toBe(`{"api": {"keys": [${entries[0]}, ${entries[1]}]}}`)
    await answerOf('/nowhere', `keys rotate a --grace none --config ${path}`, { now })
    expect(readFileSync(path, 'utf8')).toContain(`, ${entries[1]}]}}`)
    await answerOf('/nowhere', `keys revoke a --config ${path}`)
    expect(readFileSync(path, 'utf8')).toBe(`{"api": {"keys": [${entries[1]}]}}`)
  })

  it.each([
    ['a comment', '{ // mine\n "api": { "keys": [] } }'],
    ['a byte order mark', '\ufeff{ "api": { "keys": [] } }'],
    ['a comma after the last', '{ "api": { "keys": [] }, }'],
    ['a section given twice', '{ "api": { "keys": [] }, "api": { "keys": [] } }'],
    ['a reserved name', '{ "products": { "__proto__": {} } }'],
    [
      'bytes that are no text',
      Buffer.concat([
        Buffer.from('{ "products": { "p": { "name": "caf'),
        Buffer.of(0xe9),
        Buffer.from('" } } }'),
      ]),
    ],
  ])('is left byte for byte where it has %s, which cannot be changed safely', async (_, text) => {
    const path = writeConfig({})
    writeFileSync(path, text)
    expect(await run('/nowhere', `keys create ${APP} --config ${path}`)).toMatchObject({
      code: 2,
      stdout: '',
    })
    expect(readFileSync(path).equals(Buffer.from(text))).toBe(true)
  })

  it('is left as it is where the change would keep it from loading', async () => {
    const path = writeConfig({ ...CONFIG })
    const before = readFileSync(path, 'utf8')
    const words = [
      'keys',
      'create',
      '--name',
      fromEnv('NAME'),
      ...'--scope read --environment live --config'.split(' '),
      path,
    ]
    expect(await failureOf('/nowhere', words)).toMatchObject({
      code: 2,
      error: { code: 'config_invalid', message: expect.stringContaining('not changed') },
    })
    expect(readFileSync(path, 'utf8')).toBe(before)
  })

  it('is left to somebody else who changes it at the same moment', async () => {
    const path = writeConfig(CONFIG)
    const theirs = JSON.stringify({ ...CONFIG, log: { level: 'warn' } })
    const changed = changeConfigFile(path, {}, () => {
      writeFileSync(path, theirs)
      return { config: {} }
    })
    await expect(changed).rejects.toMatchObject({ code: 'output_failed' })
    expect(readFileSync(path, 'utf8')).toBe(theirs)
    expect(readdirSync(dirname(path))).toEqual(['config.json'])
  })

  it('is changed all the same after a command that was killed while it changed it', async () => {
    const path = writeConfig(CONFIG)
    writeFileSync(`${path}.lock`, 'of a killed command')
    expect(await run('/nowhere', `keys revoke app --config ${path}`)).toMatchObject({ code: 0, stderr: '' })
    expect(keysOf(path)).toEqual([])
    expect(existsSync(`${path}.lock`)).toBe(false)
  })
})

describe('rotating a key that is to end', () => {
  const ending = (expiresAt: string) =>
    writeConfig({ ...CONFIG, api: { keys: [{ ...keyEntry('app', 'lk_old'), expiresAt }] } })
  const rotate = (path: string, options: string) =>
    run('/nowhere', `keys rotate app ${options} --config ${path}`, { now })

  it('needs no further word: the new one ends when the old one would have', async () => {
    const path = ending('2026-04-01T00:00:00Z')
    const { code, stdout } = await rotate(path, '--grace none')
    expect(code).toBe(0)
    expect(stdout).toContain(
      'The new key expires at 2026-04-01T00:00:00Z.\nThe old key is no longer valid.\n',
    )
    const key = /lk_[\w-]{43}/.exec(stdout)?.[0] ?? ''
    expect(keysOf(path)).toMatchObject([
      { sha256: sha256(key), expiresAt: Date.parse('2026-04-01T00:00:00Z') },
    ])
    expect(keysOf(path)).toHaveLength(1)
  })

  it('takes another end where one is named', async () => {
    const path = ending('2026-04-01T00:00:00Z')
    await rotate(path, '--expires 3w')
    expect(keysOf(path)).toMatchObject([
      { expiresAt: NOW + 21 * DAY_MS },
      { isReplaced: true, expiresAt: NOW + DAY_MS },
    ])
    expect((await rotate(path, '--expires never')).stdout).not.toContain('ends at')
    expect(keysOf(path)).toMatchObject([{ expiresAt: null }, { isReplaced: true }])
  })

  it('needs a word once that has passed, since the new one would be refused too', async () => {
    const path = ending('2026-03-01T00:00:00Z')
    expect(await rotate(path, '')).toEqual({
      code: 2,
      stdout: '',
      stderr:
        'error: the key expired at 2026-03-01T00:00:00Z: pass --expires for the new key (a duration, a date or never)\n',
    })
  })
})

describe('a keys command where no daemon takes the change over', () => {
  it('fails once the file is changed, and shows the new key, if a process holds the database without answering', async () => {
    const folder = configuredFolder()
    const held = lockStore(databaseIn(folder))
    onTestFinished(() => held.release())
    const { code, stdout, stderr } = await run(folder, 'keys rotate app --grace none')
    expect(code).toBe(1)
    expect(stdout).toMatch(/^New API key "app" \(shown only now\): lk_/)
    expect(stderr).toMatch(
      /^error: .*config\.json is changed, but the running daemon .*: a process has the database .*`latchkey reload`/,
    )
    expect(await run(folder, 'keys revoke app')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('`latchkey reload`'),
    })
  })

  it('says that it takes effect at the next start if none runs', async () => {
    const path = writeConfig(CONFIG)
    expect(await run('/nowhere', `keys revoke app --config ${path}`)).toEqual({
      code: 0,
      stdout: `Removed "app" from ${path}. No daemon is running here: this takes effect at the next start.\n`,
      stderr: '',
    })
  })
})
