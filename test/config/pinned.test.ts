import { expect, it } from 'vitest'
import { endpoint, problems } from './config-file.js'

const NO_DISCORD_ID = 'must be a Discord id: a whole number, such as "1100000000000000010"'

it.each([
  [
    'the host of a listener, for the default host',
    { server: { webhooks: { host: 5, port: 4680 } } },
    ['server.webhooks.host: must be a text'],
  ],
  [
    'a bot, for one that is missing',
    {
      sync: { discord: 5 },
      products: { pro_x: { targets: [{ adapter: 'discord', guildId: '1', roleId: '2' }] } },
    },
    ['sync.discord: must be an object'],
  ],
  [
    'a row of the policy, for the documented one',
    { policy: { grantOn: { card: 5 }, revokeOn: { card: ['payment.authorized'] } } },
    ['policy.grantOn.card: must be a list'],
  ],
  [
    'an id, for one that is left out',
    { products: { pro_x: { communityGuildId: 'x', communityRoleId: '2' } } },
    [`products.pro_x.communityGuildId: ${NO_DISCORD_ID}`],
  ],
  [
    'a target, for one that needs a bot',
    { products: { pro_x: { targets: [{ adapter: 'discord', guildId: '1' }] } } },
    ['products.pro_x.targets[0].roleId: is required'],
  ],
])('the rules between values do not take what is wrong with %s', (_, config, expected) => {
  expect(problems(config)).toEqual(expected)
})

it('the rules between values read whatever is right beside it', () => {
  const config = {
    endpoints: {
      live: { ...endpoint('live', 'whsec_a'), toleranceSeconds: 0 },
      sandbox: endpoint('sandbox', 5, 'whsec_a'),
    },
    products: { pro_x: { name: '', communityGuildId: '1' } },
    api: { keys: [{ name: 'app' }, 5] },
  }
  expect(problems(config)).toEqual(
    expect.arrayContaining([
      'endpoints.sandbox.secrets[1]: is a secret of the live endpoint live too: a sandbox secret must open nothing live',
      'products.pro_x.communityRoleId: is required beside communityGuildId',
    ]),
  )
})
