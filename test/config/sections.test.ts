import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { UNLIMITED } from '../../src/handlers/api-key.js'
import { temporaryFolder } from '../world.js'
import {
  BOTS,
  endpoint,
  fromEnv,
  fromFile,
  GROUP,
  grantOnCard,
  KEY,
  load,
  OUT,
  problems,
  ROLE,
  SECRET,
  URL,
  v3,
  warnings,
} from './config-file.js'

const DAY = 86_400_000
const LIVE = { endpoints: { v3: endpoint('live', SECRET) } }

describe('an endpoint', () => {
  it('takes secrets as texts and with an end, whose time may have any offset', () => {
    const secrets = [
      'whsec_a',
      { secret: 'whsec_b', notAfter: '2027-01-31T01:00:00+01:00' },
      { secret: 'whsec_c' },
    ]
    expect(load(v3(...secrets)).config.endpoints[0]?.secrets).toEqual([
      { secret: 'whsec_a', notAfter: null },
      { secret: 'whsec_b', notAfter: Date.UTC(2027, 0, 31) },
      { secret: 'whsec_c', notAfter: null },
    ])
  })

  it('may have any short name of a-z, 0-9 and "-", and share a secret with another of its environment', () => {
    const names = ['v3', 'a', '0-9', 'x'.repeat(64)]
    const endpoints = Object.fromEntries(names.map((name) => [name, endpoint('live', SECRET)]))
    expect(load({ endpoints }).config.endpoints.map(({ name }) => name)).toEqual(names)
  })

  it.each([
    [undefined, DAY],
    ['5m', 300_000],
    ['24h', DAY],
    ['10y', 3_650 * DAY],
    ['999y', 999 * 365 * DAY],
  ])('takes events dated %s ahead, which is %d ms', (aheadAtMost, expected) => {
    const sandbox = { ...endpoint('sandbox', SECRET), ...(aheadAtMost && { aheadAtMost }) }
    expect(load({ endpoints: { sandbox } }).config.endpoints[0]?.aheadAtMostMs).toBe(expected)
  })

  it('warns of one that is named as what backfills report, which 1.0 allowed', () => {
    expect(warnings({ endpoints: { backfill: endpoint('live', 'whsec_0123456789abcdef') } })).toEqual([
      'endpoints.backfill: has the name under which lists show what backfills report: give it another name, here and in its address',
    ])
  })

  it('warns of a secret that can be guessed, has white space around it or begins otherwise', () => {
    const secrets = [
      'whsec_123456789012345',
      'whsec_1234567890123456',
      { secret: 'whsec_12345678901234 ' },
      'a23456789012345',
    ]
    const short = 'can be guessed: it has fewer than 16 characters'
    expect(warnings(v3(...secrets))).toEqual([
      `endpoints.v3.secrets[0]: ${short} after whsec_`,
      'endpoints.v3.secrets[2]: begins or ends with white space, which is part of the secret',
      `endpoints.v3.secrets[2]: ${short} after whsec_`,
      "endpoints.v3.secrets[3]: does not begin with whsec_, as the provider's secrets do",
      `endpoints.v3.secrets[3]: ${short}`,
    ])
  })

  it('of the sandbox is refused for a secret of a live one beside all else that is wrong with the two', () => {
    const endpoints = {
      live: { ...endpoint('live', 'whsec_a', ''), toleranceSeconds: 0 },
      sandbox: { ...endpoint('sandbox', '', 'whsec_a'), tolerance: 1 },
    }
    const shared = 'is also a secret of the live endpoint live: use separate secrets for sandbox and live'
    expect(problems({ endpoints })).toContain(`endpoints.sandbox.secrets[1]: ${shared}`)
    expect(problems({ endpoints })).toHaveLength(5)
  })
})

it('what is right beside what is wrong is still compared with all else', () => {
  const endpoints = { live: endpoint('live', 'whsec_a'), sandbox: endpoint('sandbox', 5, 'whsec_a') }
  const products = { pro_x: { name: '', communityGuildId: '1' } }
  const found = problems({ endpoints, products, api: { keys: [{ name: 'app' }, 5] } })
  const shared = 'is also a secret of the live endpoint live: use separate secrets for sandbox and live'
  expect(found).toContain(`endpoints.sandbox.secrets[1]: ${shared}`)
  expect(found).toContain('products.pro_x.communityRoleId: is required with communityGuildId')
})

describe('an API key', () => {
  it('is known by its hash, in lower case', () => {
    const { hash: _, ...rest } = KEY
    expect(load({ api: { keys: [KEY] } }).config.apiKeys).toEqual([
      { ...rest, sha256: '0a'.repeat(32), ...UNLIMITED },
    ])
  })

  it('has an end and a limit, and the key before it has an end of its own', () => {
    const { hash: _, ...rest } = KEY
    const [createdAt, expiresAt] = ['2026-01-01T00:00:00Z', '2026-04-01T00:00:00Z']
    const previous = { hash: `sha256:${'1'.repeat(64)}`, notAfter: '2026-01-02T00:00:00Z' }
    const key = { ...KEY, createdAt, expiresAt, rateLimit: { perSecond: 2.5 }, previous }
    const shared = { ...rest, rateLimit: { perSecond: 2.5, burst: 3 } }
    expect(load({ api: { keys: [key] } }).config.apiKeys).toEqual([
      {
        ...shared,
        sha256: '0a'.repeat(32),
        createdAt: Date.parse(createdAt),
        expiresAt: Date.parse(expiresAt),
        isReplaced: false,
      },
      {
        ...shared,
        sha256: '1'.repeat(64),
        createdAt: null,
        expiresAt: Date.parse(previous.notAfter),
        isReplaced: true,
      },
    ])
  })

  it('is refused with the name or the hash of another, even beside a wrong one', () => {
    const other = { ...KEY, hash: `sha256:${'1'.repeat(64)}` }
    const previous = { hash: KEY.hash, notAfter: '2026-01-02T00:00:00Z' }
    const third = { ...KEY, name: 'third', hash: `sha256:${'2'.repeat(64)}`, previous }
    const keys = [{}, KEY, other, { ...KEY, name: 'second' }, third]
    expect(problems({ api: { keys } }).slice(-3)).toEqual([
      'api.keys[2].name: is also the name of another key',
      'api.keys[3].hash: is also the hash of another key',
      'api.keys[4].previous.hash: is also the hash of another key',
    ])
  })
})

describe('the policy', () => {
  const policyOf = (policy: object) => load({ ...LIVE, policy }).config.policy

  it('takes the documented row or switch for each that is left out', () => {
    expect(policyOf({ grantOn: { crypto: ['payment.completed'] }, canceled: 'period_end' })).toEqual({
      ...DOCUMENTED_POLICY,
      grantOn: { ...DOCUMENTED_POLICY.grantOn, crypto: ['payment.completed'] },
      canceled: 'period_end',
    })
  })

  it('reads durations, revokes on subscription events and terminal ones, and tells rails apart', () => {
    const durations = { '90s': 90_000, '15m': 900_000, '72h': 3 * DAY, '45d': 45 * DAY, '3w': 21 * DAY }
    for (const [lapseAfter, ms] of Object.entries(durations)) {
      expect(policyOf({ lapseAfter }).lapseAfter).toBe(ms)
    }
    const card = ['subscription.past_due', 'checkout.canceled', 'payment.chargeback', 'payment.settled']
    const policy = policyOf({ grantOn: { crypto: ['payment.settled'] }, revokeOn: { card } })
    expect([policy.grantOn.crypto, policy.revokeOn.card]).toEqual([['payment.settled'], card])
  })

  it('is refused for a type that both grants and revokes beside one that there is not', () => {
    expect(problems(grantOnCard('nonsense', 'payment.failed'))).toEqual([
      expect.stringMatching(/^policy\.grantOn\.card\[0\]: must be a payment or checkout event type/),
      'policy.grantOn.card[1]: payment.failed both grants (grantOn.card) and revokes (revokeOn.card)',
    ])
  })

  it('warns of what is seldom meant', () => {
    const warned = (told: object) => warnings({ ...LIVE, ...told })
    expect(warned({ policy: { grantOn: { unknown: [] }, lapseAfter: '29d' } })).toEqual([
      'policy.grantOn.unknown: is empty: no such payment gives access',
      'policy.lapseAfter: is under 30 days, which dunning may last',
    ])
    expect(warned({ policy: { lapseAfter: '30d' }, retention: { bodiesAfter: '35d' } })).toEqual([])
    expect(warned({ retention: { bodiesAfter: '34d' } })).toEqual([
      expect.stringMatching(/^retention\.bodiesAfter: is under 35 days/),
    ])
    const onPostgres = { database: { url: 'postgres://db/shop' }, backup: { folder: 'backups' } }
    expect(warned(onPostgres)).toEqual([expect.stringMatching(/^backup: is not used with PostgreSQL/)])
  })
})

describe('the payments API', () => {
  const API = { baseUrl: 'https://payments.example/base', apiKey: 'sk_live_1' }
  const SANDBOX = { baseUrl: 'http://127.0.0.1:4690', apiKey: 'sk_sandbox_1', legacy: true }

  it('is what the config says of each environment, and a backfill has its times', () => {
    const told = { provider: { live: API, sandbox: SANDBOX }, backfill: { schedule: '15 4 * * *' } }
    const { config } = load(told)
    expect(config.provider).toMatchObject({ live: { ...API, legacy: false }, sandbox: SANDBOX })
    expect(config.backfill).toEqual({ schedule: '15 4 * * *', timezone: 'UTC' })
    expect(load({ provider: {} }).config.provider).toMatchObject({ live: null, sandbox: null })
  })

  it.each(['http://localhost:4690', 'http://127.0.0.1', 'http://[::1]:80/base', 'https://payments.example'])(
    'may be at %s',
    (baseUrl) => {
      expect(load({ provider: { live: { ...API, baseUrl } } }).config.provider.live?.baseUrl).toBe(baseUrl)
    },
  )

  it('may be configured as 1.0 had it, which warns and is not used', () => {
    const earlier = { provider: { baseUrl: 'http://payments.example', apiKey: 'any key' } }
    const { config } = load({ ...LIVE, ...earlier })
    expect(config.provider).toMatchObject({ live: null, sandbox: null })
    expect(warnings({ ...LIVE, ...earlier })).toEqual([
      'provider: has baseUrl and apiKey as 1.0 had them, which are not used: move them to provider.live or provider.sandbox',
    ])
  })
})

it('backups are made by age, or at times in a time zone', () => {
  const backup = (told: object) => load({ backup: { folder: '/backups', ...told } }).config.backup
  expect(backup({})).toEqual({ folder: '/backups', everyMs: DAY, keep: 7 })
  expect(backup({ every: '2d' })).toEqual({ folder: '/backups', everyMs: 2 * DAY, keep: 7 })
  const nightly = { schedule: '0 3 * * *', timezone: 'UTC' }
  expect(backup({ schedule: '0 3 * * *' })).toEqual({ folder: '/backups', keep: 7, ...nightly })
  const inBerlin = { ...nightly, timezone: 'Europe/Berlin' }
  expect(backup(inBerlin)).toEqual({ folder: '/backups', keep: 7, ...inBerlin })
})

it('retention, erasure and the reference of a customer are what the config says', () => {
  const told = { retention: { bodiesAfter: '180d' }, erasure: { onCustomerDeleted: true } }
  expect(load({ ...told, identity: { ref: 'metadata.userId' } }).config).toMatchObject({
    retention: { bodiesAfterMs: 180 * DAY },
    erasure: { onCustomerDeleted: true },
    identity: { ref: 'metadata.userId' },
  })
  expect(load({ erasure: {} }).config.erasure).toEqual({ onCustomerDeleted: false })
})

describe('listeners', () => {
  const server = (main: object, webhooks?: object, metrics?: object) => ({
    server: { ...main, ...(webhooks && { webhooks }), ...(metrics && { metrics }) },
  })
  const tooAt = (of: string, at: string) => `is also the port of ${of} (${at}): each listener needs its own`

  it('may be on any port, for webhooks and metrics alone too, and leave theirs to the system', () => {
    for (const port of [0, 65_535]) expect(load({ server: { port } }).config.server.port).toBe(port)
    expect(load(server({ port: 0 }, { port: 0 }, { port: 0 })).config.server.port).toBe(0)
    expect(load(server({}, { host: '0.0.0.0', port: 4681 }, { port: 4682 })).config.server).toMatchObject({
      webhooks: { host: '0.0.0.0', port: 4681 },
      metrics: { host: '127.0.0.1', port: 4682 },
    })
  })

  it('may not have one host and port, left out or set by the environment, and each that does is named', () => {
    const at = '127.0.0.1:4690'
    expect(problems(server({ port: 4690 }, { port: 4690 }, { port: 4690 }))).toEqual([
      `server.webhooks.port: ${tooAt('server', at)}`,
      `server.metrics.port: ${tooAt('server', at)}`,
    ])
    expect(problems(server({}, { port: 4690 }, { port: 4690 }))).toEqual([
      `server.metrics.port: ${tooAt('server.webhooks', at)}`,
    ])
    expect(problems({ ...server({ trustProxy: -1 }, undefined, { port: 4680 }), polices: {} })).toEqual([
      'server.trustProxy: must be at least 0',
      'polices: is not a known key',
      `server.metrics.port: ${tooAt('server', '127.0.0.1:4680')}`,
    ])
    const wildcard = { LATCHKEY_PORT: '4690', LATCHKEY_HOST: '0.0.0.0' }
    expect(problems(server({ host: '10.0.0.1', port: 1 }, { port: 4690 }), wildcard)).toEqual([
      `server.webhooks.port: ${tooAt('server', '0.0.0.0:4690')}`,
    ])
    const elsewhere = load(server({ port: 4690 }, { port: 4690 }), { LATCHKEY_PORT: '4691' })
    expect(elsewhere.config.server.port).toBe(4691)
  })

  const onOnePort = (hosts: string) => {
    const [host, other] = hosts.split(' ')
    return server({ host, port: 4690 }, { host: other, port: 4690 })
  }

  it.each([
    ...['127.0.0.1 127.0.0.1', '0.0.0.0 127.0.0.1', '127.0.0.1 0.0.0.0', '0.0.0.0 host.example'],
    ...[':: 127.0.0.1', '::1 ::', ':: 0.0.0.0'],
    ...['localhost 127.0.0.1', 'Host.example host.example'],
  ])('may not have one port on %s', (hosts) => {
    const problem = expect.stringMatching(/^server\.webhooks\.port: is also the port of server /)
    expect(problems(onOnePort(hosts))).toEqual([problem])
  })

  it.each([
    ...['127.0.0.1 127.0.0.2', '127.0.0.1 ::1', '0.0.0.0 ::1', '10.0.0.1 localhost', 'a.example b.example'],
  ])('may have one port on %s', (hosts) => {
    expect(load(onOnePort(hosts)).config.server.port).toBe(4690)
  })
})

describe('products', () => {
  const targetsOf = (products: object) => load({ products, sync: BOTS }).config.products
  const pasted = { communityGuildId: '1', communityRoleId: '2', messengerGroupId: '-100' }

  it('have targets, which follow live access unless they say otherwise, and may be pasted from the service’s own', () => {
    const live = { environment: 'live' }
    const sandbox = { ...GROUP, environment: 'sandbox' }
    expect(targetsOf({ pro_x: { name: 'Gold', targets: [ROLE, sandbox] }, pro_y: {} })).toEqual([
      { id: 'pro_x', name: 'Gold', features: [], targets: [{ ...ROLE, ...live }, sandbox] },
      { id: 'pro_y', name: null, features: [], targets: [] },
    ])
    const both = [
      { ...ROLE, ...live },
      { ...GROUP, ...live },
    ]
    const shared = targetsOf({ pro_x: pasted, pro_y: { targets: [ROLE, GROUP] } })
    expect(shared.map(({ targets }) => targets)).toEqual([both, both])
  })

  it('may name features, by ids that can be asked about', () => {
    const named = (...features: unknown[]) => ({ products: { pro_x: { features } } })
    expect(load(named('export', 'api')).config.products[0]?.features).toEqual(['export', 'api'])
    for (const id of ['', 'a\nb', 'x'.repeat(256), 5]) {
      expect(problems(named('api', id))).toEqual([expect.stringMatching(/^products\.pro_x\.features\[1\]: /)])
    }
  })

  const idsAs = (id: string) => ({
    discord: {
      targets: [{ adapter: 'discord', guildId: id, roleId: id }],
      communityGuildId: id,
      communityRoleId: id,
    },
    telegram: { targets: [{ adapter: 'telegram', groupId: id }], messengerGroupId: id },
  })
  const NO_DISCORD_ID = 'must be a Discord id: a whole number, such as "1100000000000000010"'
  const NO_GROUP_ID =
    'must be the id of a Telegram group: a whole number below zero, such as "-1001234567890"'

  it('name roles and groups by ids that there can be', () => {
    for (const id of ['1', '1100000000000000010', '18446744073709551615']) {
      expect(targetsOf({ pro_x: idsAs(id).discord })[0]?.targets).toHaveLength(2)
    }
    for (const id of ['-1', '-4567', '-1001234567890']) {
      expect(targetsOf({ pro_x: idsAs(id).telegram })[0]?.targets).toHaveLength(2)
    }
    const noRole = ['targets[0].guildId', 'targets[0].roleId', 'communityGuildId', 'communityRoleId']
    for (const id of [
      ...['abc', '11000000000000000l0', '../users/@me', ' 1100000000000000010', '1100000000000000010\n'],
      ...['-1', '0', '01', '1.5', '1e18', '١', '18446744073709551616', '110000000000000001000'],
    ]) {
      const expected = noRole.map((place) => `products.pro_x.${place}: ${NO_DISCORD_ID}`)
      expect(problems({ products: { pro_x: idsAs(id).discord }, sync: BOTS })).toEqual(expected)
    }
    const noGroup = ['targets[0].groupId', 'messengerGroupId']
    for (const id of [
      ...['1234', '@mygroup', '-', '-0', '-01', '-1.5', '-1001234567890 ', '-100...', `-${'1'.repeat(17)}`],
    ]) {
      const expected = noGroup.map((place) => `products.pro_x.${place}: ${NO_GROUP_ID}`)
      expect(problems({ products: { pro_x: idsAs(id).telegram }, sync: BOTS })).toEqual(expected)
    }
  })

  it('need the bot of their platform, and warn where no endpoint is of their environment', () => {
    expect(problems({ products: { pro_x: { targets: [ROLE, GROUP] }, pro_y: pasted } })).toEqual([
      'products.pro_x.targets[0]: needs a bot: sync.discord.botToken is not set',
      'products.pro_x.targets[1]: needs a bot: sync.telegram.botToken is not set',
      'products.pro_y.communityRoleId: needs a bot: sync.discord.botToken is not set',
      'products.pro_y.messengerGroupId: needs a bot: sync.telegram.botToken is not set',
    ])
    const products = { pro_x: { targets: [ROLE, { ...GROUP, environment: 'sandbox' }] } }
    const sandbox = endpoint('sandbox', 'whsec_fedcba9876543210')
    const warned = (endpoints: object) => warnings({ products, sync: BOTS, endpoints })
    expect(warned({ sandbox })).toEqual([
      'products.pro_x.targets: follow live access, but no endpoint is live',
    ])
    expect(warned({ ...LIVE.endpoints, sandbox })).toEqual([])
  })
})

describe('what is outside', () => {
  it('is reached at its public address unless another is given', () => {
    const sync = { discord: { botToken: 'd' }, telegram: { botToken: 't', apiUrl: 'http://127.0.0.1:9' } }
    expect(load({ sync }).config.sync).toMatchObject({
      discord: { botToken: 'd', apiUrl: null },
      telegram: { botToken: 't', apiUrl: 'http://127.0.0.1:9' },
    })
  })

  it('is reached by a token alone', () => {
    const stray = 'it has a space, a line break or another character that no token has'
    const botToken = fromEnv('BOT')
    for (const BOT of ['token\n', 'token\r\n', ' token', 'to ken', 'token\u0000', 'token\u200b']) {
      expect(problems({ sync: { discord: { botToken }, telegram: { botToken } } }, { BOT })).toEqual([
        `sync.discord.botToken: must be the token alone: ${stray}`,
        `sync.telegram.botToken: must be the token alone: ${stray}`,
      ])
    }
    const path = join(temporaryFolder(), 'token')
    const config = { sync: { telegram: { botToken: fromFile(path) } } }
    writeFileSync(path, 'token\n')
    expect(load(config).config.sync.telegram?.botToken).toBe('token')
    writeFileSync(path, 'token\n\n')
    expect(problems(config)).toEqual([
      expect.stringMatching(/^sync\.telegram\.botToken: must be the token alone/),
    ])
  })

  it('is told of live access by the webhook, signed by one secret or by several, and warns of plain http and of an environment without an endpoint', () => {
    const configured = (told: object) => load({ sync: { webhook: told } }).config.sync.webhooks[0]
    const types = ['entitlement.granted', 'entitlement.changed', 'entitlement.revoked']
    const all = { url: URL, secrets: [OUT], types, environments: ['live'], disabled: false }
    expect(configured({ url: URL, secret: OUT })).toEqual({ id: 'default', ...all })
    const some = {
      url: URL,
      secret: OUT,
      types: ['entitlement.revoked'],
      environments: ['sandbox'],
      disabled: true,
    }
    expect(
      load({ sync: { webhook: { url: URL, secret: OUT }, webhooks: { crm: some } } }).config.sync.webhooks,
    ).toEqual([
      { id: 'default', ...all },
      { id: 'crm', ...all, types: some.types, environments: ['sandbox'], disabled: true },
    ])
    const next = `whsec_${'B'.repeat(35)}=`
    expect(configured({ url: URL, secret: [OUT, next] })?.secrets).toEqual([OUT, next])
    const warned = (url: string) => warnings({ ...LIVE, sync: { webhook: { url, secret: OUT } } })
    expect(warned('http://app.example/hooks')).toEqual([
      'sync.webhook.url: is not https: others can read messages on the way',
    ])
    for (const url of [URL, 'http://127.0.0.1:8080/hooks', 'http://localhost/hooks', 'http://[::1]/hooks']) {
      expect(warned(url)).toEqual([])
    }
    const sandboxOnly = { sandbox: endpoint('sandbox', 'whsec_fedcba9876543210') }
    const webhooks = { crm: { url: URL, secret: OUT }, app: { ...some, environments: ['live', 'sandbox'] } }
    expect(warnings({ endpoints: sandboxOnly, sync: { webhooks } })).toEqual([
      'sync.webhooks.crm.environments: follows only live access, but no endpoint is live: add "sandbox"',
    ])
  })
})
