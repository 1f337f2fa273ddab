import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { temporaryFolder } from '../world.js'
import { endpoint, fromEnv, fromFile, load, problems, warnings } from './config-file.js'

const BOTS = { discord: { botToken: 'd' }, telegram: { botToken: 't' } }

describe('a product', () => {
  it('has targets, which follow live access unless they say otherwise', () => {
    const targets = [
      { adapter: 'discord', guildId: '1', roleId: '2' },
      { adapter: 'telegram', groupId: '-100', environment: 'sandbox' },
    ]
    const products = { pro_x: { name: 'Gold', targets }, pro_y: {} }
    expect(load({ products, sync: BOTS }).config.products).toEqual([
      {
        id: 'pro_x',
        name: 'Gold',
        targets: [
          { adapter: 'discord', guildId: '1', roleId: '2', environment: 'live' },
          { adapter: 'telegram', groupId: '-100', environment: 'sandbox' },
        ],
      },
      { id: 'pro_y', name: null, targets: [] },
    ])
  })

  it.each([
    [
      { adapter: 'irc' },
      'products.pro_x.targets[0].adapter: must be an adapter that exists: discord, telegram',
    ],
    [{ adapter: 'telegram' }, 'products.pro_x.targets[0].groupId: is required'],
    [{ adapter: 'telegram', groupId: '' }, 'products.pro_x.targets[0].groupId: is empty'],
    [
      { adapter: 'telegram', groupId: '-1', roleId: '2' },
      'products.pro_x.targets[0].roleId: is not a known key',
    ],
  ])('is refused for the target %j', (target, problem) => {
    expect(problems({ products: { pro_x: { targets: [target] } } })).toEqual([problem])
  })
})

const NO_DISCORD_ID = 'must be a Discord id: a whole number, such as "1100000000000000010"'
const NO_GROUP_ID = 'must be the id of a Telegram group: a whole number below zero, such as "-1001234567890"'

describe('an id', () => {
  it.each(['1', '1100000000000000010', '18446744073709551615'])('of Discord may be %s', (id) => {
    const targets = [{ adapter: 'discord', guildId: id, roleId: id }]
    const products = { pro_x: { targets, communityGuildId: id, communityRoleId: id } }
    expect(load({ products, sync: BOTS }).config.products[0]?.targets).toMatchObject([targets[0], targets[0]])
  })

  it.each([
    'abc',
    '11000000000000000l0',
    '../users/@me',
    ' 1100000000000000010',
    '1100000000000000010\n',
    '-1',
    '0',
    '01',
    '1.5',
    '1e18',
    '١',
    '18446744073709551616',
    '110000000000000001000',
  ])('of Discord can not be %j', (id) => {
    const targets = [{ adapter: 'discord', guildId: id, roleId: id }]
    const products = { pro_x: { targets, communityGuildId: id, communityRoleId: id } }
    expect(problems({ products, sync: BOTS })).toEqual([
      `products.pro_x.targets[0].guildId: ${NO_DISCORD_ID}`,
      `products.pro_x.targets[0].roleId: ${NO_DISCORD_ID}`,
      `products.pro_x.communityGuildId: ${NO_DISCORD_ID}`,
      `products.pro_x.communityRoleId: ${NO_DISCORD_ID}`,
    ])
  })

  it.each(['-1', '-4567', '-1001234567890'])('of a Telegram group may be %s', (id) => {
    const products = { pro_x: { targets: [{ adapter: 'telegram', groupId: id }], messengerGroupId: id } }
    expect(load({ products, sync: BOTS }).config.products[0]?.targets).toHaveLength(2)
  })

  it.each(['1234', '@mygroup', '-', '-0', '-01', '-1.5', '-1001234567890 ', '-100...', `-${'1'.repeat(17)}`])(
    'of a Telegram group can not be %j',
    (id) => {
      const products = { pro_x: { targets: [{ adapter: 'telegram', groupId: id }], messengerGroupId: id } }
      expect(problems({ products, sync: BOTS })).toEqual([
        `products.pro_x.targets[0].groupId: ${NO_GROUP_ID}`,
        `products.pro_x.messengerGroupId: ${NO_GROUP_ID}`,
      ])
    },
  )
})

describe('roles and groups', () => {
  const role = { adapter: 'discord', guildId: '1', roleId: '2' }
  const group = { adapter: 'telegram', groupId: '-100' }
  const pasted = { communityGuildId: '1', communityRoleId: '2', messengerGroupId: '-100' }

  it('may be pasted from the service’s own product, and followed by several products', () => {
    const products = { pro_x: pasted, pro_y: { targets: [role, group] } }
    expect(load({ products, sync: BOTS }).config.products.map(({ targets }) => targets)).toEqual([
      [
        { ...role, environment: 'live' },
        { ...group, environment: 'live' },
      ],
      [
        { ...role, environment: 'live' },
        { ...group, environment: 'live' },
      ],
    ])
  })

  it('need the bot of their platform', () => {
    expect(problems({ products: { pro_x: { targets: [role, group] }, pro_y: pasted } })).toEqual([
      'products.pro_x.targets[0]: needs a bot: sync.discord.botToken is not set',
      'products.pro_x.targets[1]: needs a bot: sync.telegram.botToken is not set',
      'products.pro_y.communityRoleId: needs a bot: sync.discord.botToken is not set',
      'products.pro_y.messengerGroupId: needs a bot: sync.telegram.botToken is not set',
    ])
  })

  it('follow one environment each', () => {
    const sandbox = { ...role, environment: 'sandbox' }
    const products = {
      pro_x: { targets: [role, { ...role, roleId: '3' }] },
      pro_y: { targets: [group, sandbox] },
    }
    expect(problems({ products, sync: BOTS })).toEqual([
      'products.pro_y.targets[1]: follows sandbox access, and live access in products.pro_x.targets[0]: a role or group follows one environment',
    ])
    const pastedToo = { pro_x: { targets: [{ ...group, environment: 'sandbox' }] }, pro_y: pasted }
    expect(problems({ products: pastedToo, sync: BOTS })).toEqual([
      'products.pro_y.messengerGroupId: follows live access, and sandbox access in products.pro_x.targets[0]: a role or group follows one environment',
    ])
  })

  it.each([
    [{ communityGuildId: '1' }, 'products.pro_x.communityRoleId: is required beside communityGuildId'],
    [{ communityRoleId: '2' }, 'products.pro_x.communityGuildId: is required beside communityRoleId'],
  ])('are pasted whole: %j', (product, problem) => {
    expect(problems({ products: { pro_x: product }, sync: BOTS })).toEqual([problem])
  })

  it('warn where no endpoint is of their environment', () => {
    const targets = [role, { ...group, environment: 'sandbox' }]
    const config = (...environments: ('live' | 'sandbox')[]) => ({
      products: { pro_x: { targets } },
      sync: BOTS,
      endpoints: Object.fromEntries(
        environments.map((one) => [one, endpoint(one, `whsec_${one}_0123456789abcdef`)]),
      ),
    })
    expect(warnings(config('sandbox'))).toEqual([
      'products.pro_x.targets: follow live access, and no endpoint is live',
    ])
    expect(warnings(config('live', 'sandbox'))).toEqual([])
  })
})

describe('what is outside', () => {
  it('is reached at its public address unless another is given', () => {
    const sync = { discord: { botToken: 'd' }, telegram: { botToken: 't', apiUrl: 'http://127.0.0.1:9' } }
    expect(load({ sync }).config.sync).toMatchObject({
      discord: { botToken: 'd', apiUrl: null },
      telegram: { botToken: 't', apiUrl: 'http://127.0.0.1:9', updates: null },
    })
  })

  it.each([
    [{ sync: { discord: {} } }, 'sync.discord.botToken: is required'],
    [{ sync: { discord: { botToken: ' ' } } }, 'sync.discord.botToken: is empty'],
    [
      { sync: { telegram: { botToken: 't', apiUrl: 'ftp://x' } } },
      'sync.telegram.apiUrl: must be an http or https address',
    ],
    [{ provider: { apiKey: 'k' } }, 'provider.baseUrl: is required'],
    [
      { provider: { baseUrl: 'payments', apiKey: 'k' } },
      'provider.baseUrl: must be an http or https address',
    ],
    [{ identity: { ref: 'email' } }, 'identity.ref: must be externalRef or metadata.<key>'],
    [{ identity: { ref: 'metadata.' } }, 'identity.ref: must be externalRef or metadata.<key>'],
  ])('is refused as %j', (config, problem) => {
    expect(problems(config)).toEqual([problem])
  })

  it.each([
    [fromEnv('BOT'), 'token\n'],
    [fromEnv('BOT'), 'token\r\n'],
    [fromEnv('BOT'), ' token'],
    [fromEnv('BOT'), 'to ken'],
    [fromEnv('BOT'), 'token\u0000'],
    [fromEnv('BOT'), 'token\u200b'],
    [`Bearer ${fromEnv('BOT')}`, 'token'],
  ])('is reached by a token alone, which %s is not where it stands for %j', (botToken, BOT) => {
    const stray = 'it has a space, a line break or another character that no token has'
    expect(problems({ sync: { discord: { botToken }, telegram: { botToken } } }, { BOT })).toEqual([
      `sync.discord.botToken: must be the token alone: ${stray}`,
      `sync.telegram.botToken: must be the token alone: ${stray}`,
    ])
  })

  it.each(['Bot token', 'bot token'])('is reached by a token alone, which %j is not', (botToken) => {
    expect(problems({ sync: { discord: { botToken } } })).toEqual([
      'sync.discord.botToken: must be the token alone, without "Bot" before it',
    ])
  })

  it('is reached by a token from a file, whose last line break is none of it', () => {
    const folder = temporaryFolder()
    const path = join(folder, 'token')
    const botToken = fromFile(path)
    writeFileSync(path, 'token\n')
    const config = { sync: { telegram: { botToken } } }
    expect(load(config).config.sync.telegram?.botToken).toBe('token')
    writeFileSync(path, 'token\n\n')
    expect(problems(config)).toEqual([
      expect.stringMatching(/^sync\.telegram\.botToken: must be the token alone/),
    ])
  })

  it('may know the customer by a metadata key', () => {
    expect(load({ identity: { ref: 'metadata.userId' } }).config.identity.ref).toBe('metadata.userId')
  })
})

describe('the outbound webhook', () => {
  const secret = `whsec_${'A'.repeat(32)}`
  const url = 'https://app.example/hooks'

  it('tells of live access, signed by one secret or by several', () => {
    const configured = (webhook: object) => load({ sync: { webhook } }).config.sync.webhook
    expect(configured({ url, secret })).toEqual({ url, secrets: [secret], environments: ['live'] })
    const next = `whsec_${'B'.repeat(35)}=`
    expect(configured({ url, secret: [secret, next] })?.secrets).toEqual([secret, next])
  })

  it.each([
    [{ secret }, 'sync.webhook.url: is required'],
    [{ url: 'app.example', secret }, 'sync.webhook.url: must be an http or https address'],
    [{ url, secret: 'A'.repeat(32) }, 'sync.webhook.secret: must be whsec_ and at least 24 bytes in base64'],
    [
      { url, secret: 7 },
      'sync.webhook.secret: must be whsec_ and at least 24 bytes in base64, or a list of such',
    ],
    [
      { url, secret: [secret, `${secret}A`] },
      'sync.webhook.secret[1]: must be whsec_ and at least 24 bytes in base64',
    ],
    [{ url, secret, environments: [] }, 'sync.webhook.environments: is empty'],
  ])('is refused as %j', (webhook, problem) => {
    expect(problems({ sync: { webhook } })).toEqual([problem])
  })

  it('warns where what is sent can be read on the way', () => {
    const told = (address: string) =>
      warnings({
        endpoints: { live: endpoint('live', 'whsec_0123456789abcdef') },
        sync: { webhook: { url: address, secret } },
      })
    expect(told('http://app.example/hooks')).toEqual([
      'sync.webhook.url: is not https: what is sent can be read on the way',
    ])
    for (const address of [
      url,
      'http://127.0.0.1:8080/hooks',
      'http://localhost/hooks',
      'http://[::1]/hooks',
    ]) {
      expect(told(address)).toEqual([])
    }
  })
})
