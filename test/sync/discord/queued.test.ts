import { expect, it } from 'vitest'
import { call, runDaemon } from '../../daemon/running-daemon.js'
import { accountId, BOT_TOKEN, GOLD_ROLE_ID, GUILD_ID } from '../../platforms/discord-ids.js'
import { startDiscord } from '../../platforms/discord-server.js'
import { eventually } from '../../setup/eventually.js'

it('a call that waits behind another as sync is paused is made once it is resumed, and not before', async () => {
  const discord = await startDiscord()
  const config = {
    products: { pro_gold: { targets: [{ adapter: 'discord', guildId: GUILD_ID, roleId: GOLD_ROLE_ID }] } },
    sync: { discord: { botToken: BOT_TOKEN, apiUrl: discord.url } },
  }
  const daemon = await runDaemon({ config })
  const accounts = [1, 2, 3].map(accountId)
  discord.guild.join(...accounts)
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
  await discord.setState({ once: answered, route: 'role' })
  await call(daemon, 'POST', '/sync/pause', {})
  for (const [i, communityId] of accounts.entries()) {
    await call(daemon, 'PUT', `/customers/cus_${i}/identities`, { communityId })
    await call(daemon, 'POST', `/customers/cus_${i}/grants`, { productId: 'pro_gold', reason: 'a test' })
  }
  await eventually(async () =>
    expect((await call(daemon, 'GET', '/sync')).json).toMatchObject({
      targets: [{ memberships: { due: 3 } }],
    }),
  )
  await call(daemon, 'POST', '/sync/resume', {})
  const changes = () => discord.calls.filter(({ method }) => method === 'PUT')
  // The library sends the calls to one guild one after another.
  const begun = () =>
    daemon.stored((db) => db.selectFrom('memberships').where('given', '=', 1).selectAll().execute())
  await eventually(async () => expect([(await begun()).length, changes().length]).toEqual([3, 1]))

  await call(daemon, 'POST', '/sync/pause', {})
  answer()
  const next = await daemon.restart()
  expect(changes()).toHaveLength(1)
  await call(next, 'POST', '/sync/resume', {})
  await eventually(() => expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual(accounts))
})
