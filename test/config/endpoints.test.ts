import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { temporaryFolder } from '../world.js'
import { endpoint, fromEnv, fromFile, load, problems, warnings } from './config-file.js'

function problemsOf(...secrets: unknown[]): string[] {
  return problems({ endpoints: { v3: endpoint('live', ...secrets) } })
}

describe('an endpoint', () => {
  it('takes secrets as texts and with an end, whose time may have any offset', () => {
    const secrets = [
      'whsec_a',
      { secret: 'whsec_b', notAfter: '2027-01-31T01:00:00+01:00' },
      { secret: 'whsec_c' },
    ]
    expect(load({ endpoints: { v3: endpoint('live', ...secrets) } }).config.endpoints[0]?.secrets).toEqual([
      { secret: 'whsec_a', notAfter: null },
      { secret: 'whsec_b', notAfter: Date.UTC(2027, 0, 31) },
      { secret: 'whsec_c', notAfter: null },
    ])
  })

  it.each(['v3', 'a', '0-9', 'x'.repeat(64)])('may be called %s', (name) => {
    expect(load({ endpoints: { [name]: endpoint('live', 'whsec_a') } }).config.endpoints[0]?.name).toBe(name)
  })

  it.each(['V3', 'a b', 'a/b', '', 'x'.repeat(65), 'ä', 'a.b'])('may not be called "%s"', (name) => {
    expect(problems({ endpoints: { [name]: endpoint('live', 'whsec_a') } })).toEqual([
      expect.stringMatching(/must be a name of 1 to 64 of a-z, 0-9 and "-"$/),
    ])
  })

  it.each(['', ' ', '\t\n'])('is refused for the blank secret %j', (blank) => {
    expect(problemsOf('whsec_a', blank)).toEqual(['endpoints.v3.secrets[1]: is empty'])
    expect(problemsOf({ secret: blank })).toEqual(['endpoints.v3.secrets[0].secret: is empty'])
  })

  it.each([
    ['alone', 'whsec_'],
    ['before white space', 'whsec_ \t\n'],
    ['after white space', ' whsec_'],
  ])('is refused for the prefix of a secret %s', (_, prefix) => {
    const path = 'endpoints.v3.secrets[0]'
    expect(problemsOf(prefix)).toEqual([`${path}: is empty: nothing follows whsec_`])
    expect(problemsOf({ secret: prefix })).toEqual([`${path}.secret: is empty: nothing follows whsec_`])
  })

  it('is refused for the prefix of a secret whose rest is in an empty variable or file', () => {
    const file = join(temporaryFolder(), 'secret')
    writeFileSync(file, 'whsec_ \n')
    const config = {
      endpoints: { v3: endpoint('live', `whsec_${fromEnv('EMPTY')}`, fromEnv('PREFIX'), fromFile(file)) },
    }
    expect(problems(config, { EMPTY: '', PREFIX: 'whsec_' })).toEqual([
      'endpoints.v3.secrets[0]: is empty: nothing follows whsec_',
      'endpoints.v3.secrets[1]: is empty: nothing follows whsec_',
      'endpoints.v3.secrets[2]: is empty: nothing follows whsec_',
    ])
  })

  it('warns of a secret under 16 characters, the prefix and white space around it aside', () => {
    const short = 'can be guessed: it has fewer than 16 characters'
    const secrets = [
      'whsec_123456789012345',
      'whsec_1234567890123456',
      { secret: 'whsec_12345678901234 ' },
      'a23456789012345',
    ]
    expect(warnings({ endpoints: { v3: endpoint('live', ...secrets) } })).toEqual([
      `endpoints.v3.secrets[0]: ${short} after whsec_`,
      'endpoints.v3.secrets[2]: begins or ends with white space, which counts',
      `endpoints.v3.secrets[2]: ${short} after whsec_`,
      "endpoints.v3.secrets[3]: does not begin with whsec_, as the provider's secrets do",
      `endpoints.v3.secrets[3]: ${short}`,
    ])
  })

  it.each(['__proto__', 'constructor', 'prototype'])('may not be called %s', (name) => {
    const text = `{ "endpoints": { "${name}": ${JSON.stringify(endpoint('live', 'whsec_a'))} } }`
    expect(problems(text)).toEqual([`endpoints.${name}: is a name that no key may have`])
  })

  it('is refused without a secret', () => {
    expect(problemsOf()).toEqual(['endpoints.v3.secrets: is empty'])
    expect(problems({ endpoints: { v3: { environment: 'live' } } })).toEqual([
      'endpoints.v3.secrets: is required',
    ])
  })

  it.each([
    [5, 'endpoints.v3.secrets[0]: must be a text or { "secret", "notAfter" }'],
    [{}, 'endpoints.v3.secrets[0].secret: is required'],
    [{ secret: 'whsec_a', until: 1 }, 'endpoints.v3.secrets[0].until: is not a known key'],
    [
      { secret: 'whsec_a', notAfter: '2027-01-31' },
      expect.stringContaining('notAfter: must be an ISO 8601 time'),
    ],
    [
      { secret: 'whsec_a', notAfter: '2027-02-30T00:00:00Z' },
      expect.stringContaining('must be an ISO 8601 time'),
    ],
  ])('is refused for the secret %j', (secret, problem) => {
    expect(problemsOf(secret)).toEqual([problem])
  })

  it.each([0, -1, 1.5, 86_401, '300'])('is refused for a tolerance of %j seconds', (toleranceSeconds) => {
    const config = { endpoints: { v3: { ...endpoint('live', 'whsec_a'), toleranceSeconds } } }
    expect(problems(config)).toEqual([expect.stringMatching(/^endpoints\.v3\.toleranceSeconds: must be /)])
  })

  it('of the sandbox is refused for a secret of a live one, even a rotated-out one', () => {
    const config = {
      endpoints: {
        sandbox: endpoint('sandbox', 'whsec_own', { secret: 'whsec_a' }),
        live: endpoint('live', { secret: 'whsec_a', notAfter: '2020-01-01T00:00:00Z' }),
      },
    }
    expect(problems(config)).toEqual([
      'endpoints.sandbox.secrets[1].secret: is a secret of the live endpoint live too: a sandbox secret must open nothing live',
    ])
  })

  it('says so beside whatever else is wrong with the two', () => {
    const config = {
      endpoints: {
        live: { ...endpoint('live', 'whsec_a', ''), toleranceSeconds: 0 },
        sandbox: { ...endpoint('sandbox', '', 'whsec_a'), tolerance: 1 },
      },
    }
    expect(problems(config)).toContain(
      'endpoints.sandbox.secrets[1]: is a secret of the live endpoint live too: a sandbox secret must open nothing live',
    )
    expect(problems(config)).toHaveLength(5)
  })

  it('may share a secret with another one of its environment', () => {
    const config = { endpoints: { a: endpoint('live', 'whsec_a'), b: endpoint('live', 'whsec_a') } }
    expect(load(config).config.endpoints).toHaveLength(2)
  })

  it('warns of white space around a secret, which is part of the key', () => {
    expect(warnings({ endpoints: { v3: endpoint('live', 'whsec_0123456789abcdef ') } })).toEqual([
      'endpoints.v3.secrets[0]: begins or ends with white space, which counts',
    ])
  })

  it('warns of a secret that does not begin as the secrets of the provider do', () => {
    const secrets = [
      'whsec_0123456789abcdef',
      'a9f30123456789abcdef',
      { secret: ' whsec_fedcba9876543210', notAfter: '2027-01-31T00:00:00Z' },
    ]
    expect(warnings({ endpoints: { v3: endpoint('live', ...secrets) } })).toEqual([
      "endpoints.v3.secrets[1]: does not begin with whsec_, as the provider's secrets do",
      'endpoints.v3.secrets[2]: begins or ends with white space, which counts',
    ])
  })
})

describe('an API key', () => {
  const HASH_OF_NOTHING = `sha256:${createHash('sha256').digest('hex')}`
  const HASH_OF_NOTHING_PROBLEM =
    'api.keys[0].hash: is the hash of the empty text, not of a key: make a key with `latchkey keys create`'
  const key = { name: 'app', hash: `sha256:${'0A'.repeat(32)}`, scopes: ['read'], environments: ['live'] }

  it('is known by its hash, in lower case', () => {
    expect(load({ api: { keys: [key] } }).config.apiKeys).toEqual([
      { name: 'app', sha256: '0a'.repeat(32), scopes: ['read'], environments: ['live'] },
    ])
  })

  it.each([
    [{ hash: '0a'.repeat(32) }, 'api.keys[0].hash: must be sha256:<64 hex digits>'],
    [{ hash: `sha256:${'0a'.repeat(31)}` }, 'api.keys[0].hash: must be sha256:<64 hex digits>'],
    [{ hash: `sha256:${'0g'.repeat(32)}` }, 'api.keys[0].hash: must be sha256:<64 hex digits>'],
    [{ hash: HASH_OF_NOTHING }, HASH_OF_NOTHING_PROBLEM],
    [{ hash: HASH_OF_NOTHING.toUpperCase().replace('SHA', 'sha') }, HASH_OF_NOTHING_PROBLEM],
    [{ name: ' ' }, 'api.keys[0].name: must be a name without control characters'],
    [{ name: 'a\nb' }, 'api.keys[0].name: must be a name without control characters'],
    [{ scopes: ['all'] }, 'api.keys[0].scopes[0]: must be one of read, write, events, metrics, admin'],
    [{ scopes: [] }, 'api.keys[0].scopes: is empty'],
    [{ environments: [] }, 'api.keys[0].environments: is empty'],
    [{ environments: ['test'] }, 'api.keys[0].environments[0]: must be one of live, sandbox'],
    [{ key: 'lk_1' }, 'api.keys[0].key: is not a known key'],
  ])('is refused with %j', (change, problem) => {
    expect(problems({ api: { keys: [{ ...key, ...change }] } })).toEqual([problem])
  })

  it('is refused with the name or the hash of another, even beside a wrong one', () => {
    const other = { ...key, hash: `sha256:${'1'.repeat(64)}` }
    expect(problems({ api: { keys: [{}, key, other, { ...key, name: 'second' }] } }).slice(-2)).toEqual([
      'api.keys[2].name: is the name of another key too',
      'api.keys[3].hash: is the hash of another key too',
    ])
  })
})
