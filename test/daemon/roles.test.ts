import { expect, it } from 'vitest'
import { accountId, BOT_TOKEN, GOLD_ROLE_ID, GUILD_ID } from '../platforms/discord-ids.js'
import { startDiscord } from '../platforms/discord-server.js'
import { eventually } from '../setup/eventually.js'
import { ask, NOW, type RunningDaemon, runDaemon, send } from './running-daemon.js'
import { PRODUCT, wireEvent } from './wire-events.js'

const configFor = ({ url }: { readonly url: string }) => ({
  products: {
    [PRODUCT]: { targets: [{ adapter: 'discord', guildId: GUILD_ID, roleId: GOLD_ROLE_ID }] },
  },
  sync: { discord: { botToken: BOT_TOKEN, apiUrl: url } },
})

async function withDiscord() {
  const discord = await startDiscord()
  const daemon = await runDaemon({ config: configFor(discord) })
  return { discord, daemon }
}

/** A payment of the `n`th customer, whose account is the `n`th. */
async function pay(daemon: RunningDaemon, n: number, type = 'payment.authorized'): Promise<number> {
  const customer = { id: `cus_${n}`, communityId: accountId(n) }
  const told = { customer: customer.id, payment: `pay_${n}`, data: { customer } }
  return (await send(daemon, wireEvent(type, told))).status
}

it('a payment gives a role, its refund takes it back, and both are told in metrics without the account', async () => {
  const { discord, daemon } = await withDiscord()
  discord.guild.join(accountId(1))
  expect(await pay(daemon, 1)).toBe(200)
  await eventually(() => expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([accountId(1)]))
  expect(await pay(daemon, 1, 'payment.refunded')).toBe(200)
  await eventually(() => expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([]))
  const metrics = await eventually(async () => {
    const text = await (await ask(daemon, '/metrics')).text()
    expect(text).toContain('latchkey_sync_calls_total{platform="discord",result="given"} 1')
    expect(text).toContain('latchkey_sync_calls_total{platform="discord",result="taken"} 1')
    return text
  })
  expect(metrics).not.toContain(accountId(1))
  expect(JSON.stringify(daemon.logged())).not.toContain(accountId(1))
})

it('while the platform hangs, deliveries are acknowledged, and the daemon stops', async () => {
  const { discord, daemon } = await withDiscord()
  await discord.setState('hang')
  const numbers = Array.from({ length: 50 }, (_, i) => i + 1)
  discord.guild.join(...numbers.map(accountId))
  expect(await pay(daemon, 1)).toBe(200)
  await eventually(() => expect(discord.calls.length).toBeGreaterThan(0))
  const statuses = await Promise.all(numbers.slice(1).map((n) => pay(daemon, n)))
  expect(new Set(statuses)).toEqual(new Set([200]))
  expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([])
  await daemon.stop()
})

it('what could not be done before it stopped is made up for after a restart', async () => {
  const { discord, daemon } = await withDiscord()
  discord.guild.join(accountId(1), accountId(2))
  await discord.setState('refuse')
  await pay(daemon, 1)
  await pay(daemon, 2)
  await pay(daemon, 2, 'payment.refunded')
  await discord.setState('up')
  const again = await daemon.restart()
  again.setNow(NOW + 3_600_000)
  await eventually(() => expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([accountId(1)]))
})

it('a platform that only a config read later names is followed from then on', async () => {
  const discord = await startDiscord()
  const daemon = await runDaemon()
  discord.guild.join(accountId(1))
  await pay(daemon, 1)
  await daemon.readAgain(configFor(discord))
  await eventually(() => expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([accountId(1)]))
})

it('of two configs read one right after the other the last one counts', async () => {
  const discord = await startDiscord()
  const daemon = await runDaemon()
  discord.guild.join(accountId(1))
  await Promise.all([daemon.readAgain(configFor(discord)), daemon.readAgain({})])
  await pay(daemon, 1)
  await daemon.stop()
  expect(discord.calls).toEqual([])
})
