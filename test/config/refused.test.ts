import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import {
  BOTS,
  endpoint,
  GROUP,
  grantOnCard,
  KEY,
  OUT,
  problems,
  ROLE,
  SECRET,
  URL,
  v3,
} from './config-file.js'

const HASH_OF_NOTHING = `sha256:${createHash('sha256').digest('hex')}`

const tolerant = (toleranceSeconds: unknown) => ({
  endpoints: { v3: { ...endpoint('live', SECRET), toleranceSeconds } },
})
const ahead = (environment: 'live' | 'sandbox', aheadAtMost: unknown) => ({
  endpoints: { v3: { ...endpoint(environment, SECRET), aheadAtMost } },
})
const withId = (given: Readonly<Record<string, readonly ['live' | 'sandbox', unknown]>>) => ({
  endpoints: Object.fromEntries(
    Object.entries(given).map(([name, [environment, serviceId]]) => [
      name,
      { ...endpoint(environment, `${SECRET}_${environment}`), serviceId },
    ]),
  ),
})
const keyWith = (change: object) => ({ api: { keys: [{ ...KEY, ...change }] } })
const target = (told: object) => ({ products: { pro_x: { targets: [told] } } })
const webhook = (told: object) => ({ sync: { webhook: told } })

const LIVE_KEY = 'sk_live_0123456789'
const SANDBOX_KEY = 'sk_sandbox_0123456789'
const asking = (told: object) => ({ provider: { live: { baseUrl: URL, apiKey: LIVE_KEY, ...told } } })

const named = (name: string) => ({ endpoints: { [name]: endpoint('live', SECRET) } })
const LONG = 'x'.repeat(65)

const BLANKS = ['', ' ', '\t\n']
const BARE_PREFIXES = ['whsec_', 'whsec_ \t\n', ' whsec_']
const HASH = 'api.keys[0].hash: must be sha256:<64 hex digits>'
const NOTHING_HASHED =
  'api.keys[0].hash: is the hash of the empty text, not of a key: create a key with `latchkey keys create`'
const NEVER_PAID = 'policy.grantOn.card[0]: …will never be paid: it grants nothing'

/** Each problem, and the configs that have it and no other; … stands for any text. */
const REFUSED: Readonly<Record<string, readonly unknown[]>> = {
  'endpoints.v3.secrets[1]: is empty': BLANKS.map((blank) => v3('whsec_a', blank)),
  'endpoints.v3.secrets[0].secret: is empty': BLANKS.map((secret) => v3({ secret })),
  'endpoints.v3.secrets[0]: is empty: nothing follows whsec_': BARE_PREFIXES.map((prefix) => v3(prefix)),
  'endpoints.v3.secrets[0].secret: is empty: nothing follows whsec_': BARE_PREFIXES.map((secret) =>
    v3({ secret }),
  ),
  'endpoints.v3.secrets: is empty': [v3()],
  'endpoints.v3.secrets: is required': [{ endpoints: { v3: { environment: 'live' } } }],
  'endpoints.v3.secrets[0]: must be a text or { "secret", "notAfter" }': [v3(5)],
  'endpoints.v3.secrets[0].secret: is required': [v3({})],
  'endpoints.v3.secrets[0].until: is not a known key': [v3({ secret: SECRET, until: 1 })],
  'endpoints.v3.secrets[0].notAfter: must be an ISO 8601 time…': ['2027-01-31', '2027-02-30T00:00:00Z'].map(
    (notAfter) => v3({ secret: SECRET, notAfter }),
  ),
  'endpoints.v3.toleranceSeconds: must be …': [0, -1, 1.5, 86_401, '300'].map(tolerant),
  'endpoints.v3.aheadAtMost: must be a duration…': ['1', '0d', '1.5d', '1000y', 'P1D'].map((given) =>
    ahead('sandbox', given),
  ),
  'endpoints.v3.aheadAtMost: is over 1d, and the endpoint is live…': ['25h', '2d', '1w', '10y'].map((given) =>
    ahead('live', given),
  ),
  'endpoints.v3.serviceId: must be the id of a webhook endpoint, which begins with whep_': [
    ...['', 'whep_', 'pay_1', 'whep_a b'].map((serviceId) => withId({ v3: ['live', serviceId] })),
  ],
  'endpoints.b.serviceId: is also the id of the endpoint a': [
    withId({ a: ['live', 'whep_1'], c: ['sandbox', 'whep_1'], b: ['live', 'whep_1'] }),
  ],
  'endpoints…: must be a name of 1 to 64 of a-z, 0-9 and "-"': ['V3', 'a b', '', LONG, 'ä', 'a.b'].map(named),
  'endpoints.sandbox.secrets[1].secret: is also a secret of the live endpoint live: use separate secrets for sandbox and live':
    [
      {
        endpoints: {
          sandbox: endpoint('sandbox', 'whsec_own', { secret: 'whsec_a' }),
          live: endpoint('live', { secret: 'whsec_a', notAfter: '2020-01-01T00:00:00Z' }),
        },
      },
    ],

  [HASH]: ['0a'.repeat(32), `sha256:${'0a'.repeat(31)}`, `sha256:${'0g'.repeat(32)}`].map((hash) =>
    keyWith({ hash }),
  ),
  [NOTHING_HASHED]: [HASH_OF_NOTHING, HASH_OF_NOTHING.toUpperCase().replace('SHA', 'sha')].map((hash) =>
    keyWith({ hash }),
  ),
  'api.keys[0].name: must be a name without control characters': [' ', 'a\nb'].map((name) =>
    keyWith({ name }),
  ),
  'api.keys[0].scopes[0]: must be one of read, write, events, metrics, admin': [keyWith({ scopes: ['all'] })],
  'api.keys[0].scopes: is empty': [keyWith({ scopes: [] })],
  'api.keys[0].environments: is empty': [keyWith({ environments: [] })],
  'api.keys[0].environments[0]: must be one of live, sandbox': [keyWith({ environments: ['test'] })],
  'api.keys[0].key: is not a known key': [keyWith({ key: 'lk_1' })],

  'policy.lapseAfter: must be …': [
    '',
    '0d',
    '45',
    '45 d',
    '-1d',
    '1.5h',
    '45D',
    '1Y',
    '3W',
    '9999999d',
    45,
  ].map((lapseAfter) => ({ policy: { lapseAfter } })),
  'policy.grantOn.card[1]: …': [grantOnCard('payment.authorized', 'payment.paid')],
  'policy.grantOn.card[0]: must be a payment or checkout event type: payment.authorized, …': [
    grantOnCard('payment.paid'),
    grantOnCard('PAYMENT_SUCCESS'),
  ],
  'policy.grantOn.card[0]: …they grant nothing': [grantOnCard('subscription.created')],
  [NEVER_PAID]: [grantOnCard('checkout.canceled'), grantOnCard('payment.canceled')],
  'policy.grantOn.card[0]: must be one of payment.authorized, …': [grantOnCard(5)],
  'policy.revokeOn.card[0]: must be an event type: payment.authorized, …': [
    { policy: { revokeOn: { card: ['customer.deleted'] } } },
  ],
  // In one row, or against a row that is left out.
  'policy.grantOn.card[0]: payment.failed both grants (grantOn.card) and revokes (revokeOn.card)': [
    grantOnCard('payment.failed'),
    { policy: { grantOn: { card: ['payment.failed'] }, revokeOn: { card: ['payment.failed'] } } },
  ],
  'policy.revokeOn.crypto: payment.succeeded both grants (grantOn.crypto) and revokes (revokeOn.crypto)': [
    { policy: { revokeOn: { crypto: ['payment.succeeded'] } } },
  ],
  'policy.failedRenewal: must be one of keep, revoke': [{ policy: { failedRenewal: 'drop' } }],
  'policy.canceled: must be one of effective, period_end': [{ policy: { canceled: true } }],
  'policy.completed: must be one of period_end, keep': [{ policy: { completed: 'never' } }],
  'policy.paidCycle: must be one of grants, informs': [{ policy: { paidCycle: '' } }],
  'policy.grantOn.paypal: is not a known key': [{ policy: { grantOn: { paypal: [] } } }],
  'policy.lapse: is not a known key': [{ policy: { lapse: '45d' } }],

  'retention.bodiesAfter: is required': [{ retention: {} }],
  'retention.bodiesAfter: must be a duration, such as "180d"': [{ retention: { bodiesAfter: '6 months' } }],
  'retention.keep: is not a known key': [{ retention: { bodiesAfter: '180d', keep: 1 } }],
  'erasure.onCustomerDeleted: must be true or false': [{ erasure: { onCustomerDeleted: 'yes' } }],
  'erasure.always: is not a known key': [{ erasure: { always: true } }],
  'identity.ref: must be externalRef or metadata.<key>': [
    { identity: { ref: 'email' } },
    { identity: { ref: 'metadata.' } },
  ],
  'provider.live.baseUrl: is required': [{ provider: { live: { apiKey: LIVE_KEY } } }],
  'provider.live.apiKey: is required': [{ provider: { live: { baseUrl: URL } } }],
  'provider.live.apiKey: is empty': BLANKS.map((apiKey) => asking({ apiKey })),
  'provider.live.apiKey: is a sandbox key: set a live key here': [asking({ apiKey: SANDBOX_KEY })],
  'provider.sandbox.apiKey: is a live key: set a sandbox key here': [
    { provider: { sandbox: { baseUrl: URL, apiKey: LIVE_KEY } } },
  ],
  'provider.live.apiKey: must be a live key: sk_live_ and what follows it, without spaces or line breaks': [
    ...['sk_live_', 'pk_live_1', ` ${LIVE_KEY}`, `${LIVE_KEY}\n`, 'sk_live_ä'].map((apiKey) =>
      asking({ apiKey }),
    ),
  ],
  'provider.live.baseUrl: must be an https address': ['payments', 'ftp://a.example', ''].map((baseUrl) =>
    asking({ baseUrl }),
  ),
  'provider.live.baseUrl: must be an https address: only an address of this machine may be http': [
    ...['http://payments.example', 'http://10.0.0.1', 'http://127.0.0.1.example'].map((baseUrl) =>
      asking({ baseUrl }),
    ),
  ],
  'provider.live.baseUrl: must not have a user name or a password': [
    asking({ baseUrl: 'https://user:password@payments.example' }),
  ],
  'provider.live.baseUrl: must not have a query or a fragment': ['?a=1', '#a'].map((end) =>
    asking({ baseUrl: `https://payments.example/${end}` }),
  ),
  'provider.live.legacy: must be true or false': [asking({ legacy: 'yes' })],
  'provider.live.key: is not a known key': [asking({ key: LIVE_KEY })],
  'provider.test: is not a known key': [{ provider: { test: {} } }],
  'provider.baseUrl: must be an http or https address': [{ provider: { baseUrl: 'payments' } }],

  'backfill.schedule: is empty': BLANKS.map((schedule) => ({ backfill: { schedule } })),
  'backfill.schedule: must have five fields: minute, hour, day of the month, month and day of the week, such as "15 4 * * *"':
    ['0 3 * *', '0 0 3 * * *', '@daily', ' 0 3 * * *'].map((schedule) => ({ backfill: { schedule } })),
  'backfill.schedule: has a minute that is not valid: it takes "*", 0 to 59, …': [
    ...['60', '-1', '5/15', '*/0', '*/100', '30-10', '1,', 'a', '1-', '*-5'].map((minute) => ({
      backfill: { schedule: `${minute} 3 * * *` },
    })),
  ],
  'backfill.schedule: has an hour that is not valid: …': [{ backfill: { schedule: '0 24 * * *' } }],
  'backfill.schedule: has a day of the month that is not valid: …': ['0', '32', 'L', '?', '1W'].map(
    (day) => ({
      backfill: { schedule: `0 3 ${day} * *` },
    }),
  ),
  'backfill.schedule: has a month that is not valid: …': ['0', '13', 'mon', 'january'].map((month) => ({
    backfill: { schedule: `0 3 * ${month} *` },
  })),
  'backfill.schedule: has a day of the week that is not valid: …': ['8', 'jan', '5L', '1#2'].map((day) => ({
    backfill: { schedule: `0 3 * * ${day}` },
  })),
  'backfill.schedule: is never due: none of its months has such a day': [
    { backfill: { schedule: '0 3 30,31 feb *' } },
    { backfill: { schedule: '0 3 31 4,6,9,11 *' } },
  ],
  'backfill.timezone: must be a time zone, such as "UTC" or "Europe/Berlin"': ['', 'Berlin', 'CETT'].map(
    (timezone) => ({ backfill: { timezone } }),
  ),
  'backfill.every: is not a known key': [{ backfill: { every: '1d' } }],
  'backup.schedule: is set, and backup.every is, too: keep one of them': [
    { backup: { folder: 'backups', every: '1d', schedule: '0 3 * * *' } },
  ],
  'backup.timezone: is the time zone of backup.schedule, which is not set': [
    { backup: { folder: 'backups', timezone: 'UTC' } },
  ],
  'backup.schedule: must have five fields…': [{ backup: { folder: 'backups', schedule: 'daily' } }],

  'server.port: must be …': [-1, 65_536, 80.5, '80'].map((port) => ({ server: { port } })),
  'database.url: must name a host and a database: postgres://user:password@host:5432/database': [
    { database: { url: 'postgres://user:pass@db' } },
    { database: { url: 'postgresql://db/' } },
    { database: { url: 'postgres:' } },
  ],
  'database.connections: must be …': [9, 1_001, '16'].map((connections) => ({ database: { connections } })),
  'database.connections: must be at least 18: database.writers, and 6 more': [{ database: { writers: 12 } }],
  'database.statementTimeout: must be a duration, such as "30s"': [{ database: { statementTimeout: '30' } }],
  'database.url: must name a file: acknowledged events must survive a restart': [
    { database: { url: 'sqlite:' } },
    { database: { url: 'sqlite::memory:' } },
  ],

  'products.pro_x.targets[0].adapter: must be an adapter that exists: discord, telegram': [
    target({ adapter: 'irc' }),
  ],
  'products.pro_x.targets[0].groupId: is required': [target({ adapter: 'telegram' })],
  'products.pro_x.targets[0].groupId: is empty': [target({ adapter: 'telegram', groupId: '' })],
  'products.pro_x.targets[0].roleId: is not a known key': [target({ ...GROUP, roleId: '2' })],
  'products.pro_x.communityRoleId: is required with communityGuildId': [
    { products: { pro_x: { communityGuildId: '1' } }, sync: BOTS },
  ],
  'products.pro_x.communityGuildId: is required with communityRoleId': [
    { products: { pro_x: { communityRoleId: '2' } }, sync: BOTS },
  ],
  'products.pro_y.targets[1]: follows sandbox access, and live access in products.pro_x.targets[0]: a role or group follows one environment':
    [
      {
        products: {
          pro_x: { targets: [ROLE, { ...ROLE, roleId: '3' }] },
          pro_y: { targets: [GROUP, { ...ROLE, environment: 'sandbox' }] },
        },
        sync: BOTS,
      },
    ],
  'products.pro_y.messengerGroupId: follows live access, and sandbox access in products.pro_x.targets[0]: a role or group follows one environment':
    [
      {
        products: {
          pro_x: { targets: [{ ...GROUP, environment: 'sandbox' }] },
          pro_y: { messengerGroupId: '-100' },
        },
        sync: BOTS,
      },
    ],

  // The rules between values take no value for what is wrong with it, nor for one that is left out.
  'server.webhooks.host: must be a text': [{ server: { webhooks: { host: 5, port: 4680 } } }],
  'sync.discord: must be an object': [{ sync: { discord: 5 }, products: { pro_x: { targets: [ROLE] } } }],
  'policy.grantOn.card: must be a list': [
    { policy: { grantOn: { card: 5 }, revokeOn: { card: ['payment.authorized'] } } },
  ],
  'products.pro_x.communityGuildId: must be a Discord id: …': [
    { products: { pro_x: { communityGuildId: 'x', communityRoleId: '2' } } },
  ],
  'products.pro_x.targets[0].roleId: is required': [target({ adapter: 'discord', guildId: '1' })],
  'sync.discord.botToken: is required': [{ sync: { discord: {} } }],
  'sync.discord.botToken: is empty': [{ sync: { discord: { botToken: ' ' } } }],
  'sync.discord.botToken: must be the token alone, without "Bot" before it': ['Bot token', 'bot token'].map(
    (botToken) => ({ sync: { discord: { botToken } } }),
  ),
  'sync.telegram.apiUrl: must be an http or https address': [
    { sync: { telegram: { botToken: 't', apiUrl: 'ftp://x' } } },
  ],
  'sync.webhook.url: is required': [webhook({ secret: OUT })],
  'sync.webhook.url: must be an http or https address': [webhook({ url: 'app.example', secret: OUT })],
  'sync.webhook.secret: must be whsec_ and at least 24 bytes in base64…': [
    webhook({ url: URL, secret: 'A'.repeat(32) }),
    webhook({ url: URL, secret: 7 }),
  ],
  'sync.webhook.secret[1]: must be whsec_ and at least 24 bytes in base64': [
    webhook({ url: URL, secret: [OUT, `${OUT}A`] }),
  ],
  'sync.webhook.environments: is empty': [webhook({ url: URL, secret: OUT, environments: [] })],
  'sync.webhook.types: is empty': [webhook({ url: URL, secret: OUT, types: [] })],
  'sync.webhooks.CRM: must be an id of 1 to 64 of a-z, 0-9 and "-"': [
    { sync: { webhooks: { CRM: { url: URL, secret: OUT } } } },
  ],
  'sync.webhooks.default: is also in sync.webhook: keep one of them': [
    { sync: { webhook: { url: URL, secret: OUT }, webhooks: { default: { url: URL, secret: OUT } } } },
  ],
}

it.each(Object.entries(REFUSED))('a config is refused: %s', (problem, configs) => {
  const parts = problem.split('…').map((part) => part.replaceAll(/[[\].*+?^${}()|\\]/g, '\\$&'))
  const expected = expect.stringMatching(new RegExp(`^${parts.join('.*')}$`))
  for (const config of configs)
    expect({ config, problems: problems(config) }).toEqual({ config, problems: [expected] })
})
