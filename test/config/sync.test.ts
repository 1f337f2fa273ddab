import { describe, expect, it } from 'vitest'
import { load, problems } from './config-file.js'

describe('a product', () => {
  it('has targets, which follow live access unless they say otherwise', () => {
    const targets = [
      { adapter: 'discord', guildId: '1', roleId: '2' },
      { adapter: 'telegram', groupId: '-100', environment: 'sandbox' },
    ]
    expect(load({ products: { pro_x: { name: 'Gold', targets }, pro_y: {} } }).config.products).toEqual([
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
      { adapter: 'telegram', groupId: '1', roleId: '2' },
      'products.pro_x.targets[0].roleId: is not a known key',
    ],
  ])('is refused for the target %j', (target, problem) => {
    expect(problems({ products: { pro_x: { targets: [target] } } })).toEqual([problem])
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

  it('may know the customer by a metadata key', () => {
    expect(load({ identity: { ref: 'metadata.userId' } }).config.identity.ref).toBe('metadata.userId')
  })
})
