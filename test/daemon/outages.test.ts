import { describe, expect, it } from 'vitest'
import { checkSync } from '../../src/doctor/sync.js'
import { accountId, BOT_TOKEN, GOLD_ROLE_ID, GUILD_ID } from '../platforms/discord-ids.js'
import { startDiscord } from '../platforms/discord-server.js'
import * as telegramServer from '../platforms/telegram-server.js'
import { eventually } from '../setup/eventually.js'
import { SECRET, startAnswering } from '../sync/webhook/receiver.js'
import { ask, call, NOW, type RunningDaemon, runDaemon, send } from './running-daemon.js'
import { PRODUCT, wireEvent } from './wire-events.js'

const discordConfig = (url: string) => ({
  products: { [PRODUCT]: { targets: [{ adapter: 'discord', guildId: GUILD_ID, roleId: GOLD_ROLE_ID }] } },
  sync: { discord: { botToken: BOT_TOKEN, apiUrl: url } },
})

/** A daemon whose clock goes on by itself, faster than time: whatever it waits for comes soon. */
async function running(config: Record<string, unknown>) {
  const daemon = await runDaemon({ config })
  let now = NOW
  let sent = 0
  /** Lets seconds pass, and has what is due done, until a check holds. */
  const until = <T>(check: () => T | Promise<T>) =>
    eventually(async () => {
      now += 2_000
      daemon.setNow(now)
      await call(daemon, 'POST', '/sync/run', {})
      return check()
    })
  return {
    daemon,
    pass(ms: number) {
      now += ms
    },
    /** A payment of another customer, which also has everything looked at. */
    async pay() {
      sent += 1
      const customer = { id: `cus_${sent}`, communityId: accountId(sent) }
      const told = { customer: customer.id, payment: `pay_${sent}`, data: { customer } }
      expect((await send(daemon, wireEvent('payment.authorized', told))).status).toBe(200)
    },
    until,
    /** The one line with these words, once it is there. */
    said: (words: string) =>
      until(() => {
        const [line, ...others] = lines(daemon, words)
        expect([line, others]).toEqual([expect.anything(), []])
        return line
      }),
    doctor: async () => checkSync((await json(daemon, '/sync')) as Parameters<typeof checkSync>[0], now),
  }
}

const lines = (daemon: RunningDaemon, words: string) =>
  daemon.logged().filter(({ msg }) => String(msg).includes(words))

const notes = async (daemon: RunningDaemon) => {
  const answer = await ask(daemon, '/readyz')
  expect(answer.status).toBe(200)
  return ((await answer.json()) as { notes: string[] }).notes
}

const json = async (daemon: RunningDaemon, path: string) =>
  (await (await ask(daemon, path)).json()) as Record<string, unknown>

describe('a platform that is down', () => {
  it('is a warning in the log, doctor, readyz, status and metrics until it is back', async () => {
    const discord = await startDiscord()
    const { daemon, pay, said, until, doctor } = await running(discordConfig(discord.url))
    discord.guild.join(accountId(1), accountId(2))
    await pay()
    await until(() => expect(discord.guild.holders(GOLD_ROLE_ID)).toHaveLength(1))
    await discord.setState('refuse')
    await pay()
    const reason = 'Discord could not be reached.'
    const line = await said('Discord is unreachable; retrying')
    expect(line).toMatchObject({ level: 'warn', platform: 'discord', reason })
    expect(await notes(daemon)).toEqual([`Discord has been unreachable since ${line?.since}; retrying.`])
    expect(await json(daemon, '/sync')).toMatchObject({
      unreachable: [{ platform: 'discord', since: line?.since, reason }],
    })
    expect(await (await ask(daemon, '/metrics')).text()).toContain(
      'latchkey_platform_unreachable{platform="discord"} 1',
    )
    expect(await doctor()).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        what: 'sync discord',
        detail: expect.stringContaining(reason),
      }),
    )

    await discord.setState('up')
    const back = await said('Discord is reachable again')
    expect(back).toMatchObject({ level: 'info', platform: 'discord', since: line?.since })
    expect(Number(back?.outForSeconds)).toBeGreaterThanOrEqual(60)
    expect(lines(daemon, 'unreachable')).toHaveLength(1)
    expect(await notes(daemon)).toEqual([])
    expect(await json(daemon, '/sync')).toMatchObject({ unreachable: [] })
    expect(await doctor()).not.toContainEqual(expect.objectContaining({ what: 'sync discord' }))
  })

  it('is no outage after single failed calls with answers in between', async () => {
    const discord = await startDiscord()
    const { daemon, pay, pass, until } = await running(discordConfig(discord.url))
    discord.guild.join(...Array.from({ length: 5 }, (_, n) => accountId(n + 1)))
    for (let n = 1; n <= 2; n += 1) {
      await discord.setState({ status: 500 })
      const before = discord.calls.length
      await pay()
      await until(() => expect(discord.calls.length).toBeGreaterThan(before))
      await discord.setState('up')
      await until(() => expect(discord.guild.holders(GOLD_ROLE_ID)).toHaveLength(n))
      pass(90_000)
      await until(() => {})
    }
    expect(lines(daemon, 'unreachable')).toEqual([])
    expect(lines(daemon, 'reachable again')).toEqual([])
    expect(await notes(daemon)).toEqual([])
  })

  it('is found to be back though nothing waits for it any more', async () => {
    const discord = await startDiscord()
    const { daemon, pay, said } = await running(discordConfig(discord.url))
    await discord.setState('refuse')
    await pay()
    await said('Discord is unreachable')
    const told = { customer: 'cus_1', payment: 'pay_1' }
    await send(daemon, wireEvent('payment.refunded', told))
    await eventually(async () =>
      expect(await json(daemon, '/sync')).toMatchObject({
        targets: [{ memberships: { due: 0, retrying: 0 } }],
      }),
    )
    await discord.setState('up')
    await said('Discord is reachable again')
  })

  it('is not told of while sync is paused, since nobody calls it then', async () => {
    const discord = await startDiscord()
    const { daemon, pay, until, doctor } = await running(discordConfig(discord.url))
    await discord.setState('refuse')
    await pay()
    await until(async () => expect(await notes(daemon)).toHaveLength(1))
    await call(daemon, 'POST', '/sync/pause')
    expect(await notes(daemon)).toEqual([])
    expect(await doctor()).toMatchObject([{ what: 'sync', detail: expect.stringContaining('paused') }])
  })

  it('is noticed though nothing waits for it, where it is polled', async () => {
    const telegram = await telegramServer.startTelegram()
    telegram.addGroup(-1001)
    const { daemon, said } = await running({
      products: { [PRODUCT]: { targets: [{ adapter: 'telegram', groupId: '-1001' }] } },
      sync: { telegram: { botToken: telegramServer.BOT_TOKEN, apiUrl: telegram.url } },
    })
    await eventually(() => expect(telegram.updates.isPolled()).toBe(true))
    telegram.isDown = true
    // Ends the poll that is under way.
    telegram.say(4_200_001, 'hello')
    await said('Telegram is unreachable; retrying')
    telegram.isDown = false
    await said('Telegram is reachable again')
    const told = lines(daemon, 'Telegram').filter(({ level }) => level !== 'debug')
    expect(told.map(({ level }) => level)).toEqual(['warn', 'info'])
  })
})

describe('a receiver of the outbound webhook that is down', () => {
  it('is a warning, once, until it takes a change again; it gets every change after the reload that adds it', async () => {
    const receiver = await startAnswering(500)
    const { daemon, pay, said, doctor } = await running({})
    await daemon.readAgain({ sync: { webhook: { url: receiver.url, secret: SECRET } } })
    expect(lines(daemon, 'sends every change from now on')).toHaveLength(1)
    await pay()
    const line = await said('webhook delivery is failing; retrying for up to 3 days')
    expect(line).toMatchObject({ level: 'warn', platform: 'webhook:default', reason: 'answered 500' })
    expect(await notes(daemon)).toEqual([
      `Delivery to webhook:default has been failing since ${line?.since}; retrying.`,
    ])
    const failing = { unreachable: [{ platform: 'webhook:default', reason: 'answered 500' }] }
    expect(await json(daemon, '/sync')).toMatchObject(failing)
    expect(await json(daemon, '/sync?environment=live')).toMatchObject(failing)
    expect(await json(daemon, '/sync?environment=sandbox')).toMatchObject({
      unreachable: [],
      webhooks: [{ waiting: 0, lastError: null }],
    })
    expect(await doctor()).toMatchObject([
      { level: 'warn', what: 'sync webhook:default', todo: 'check the receiver' },
    ])
    receiver.answerWith(204)
    await said('webhook delivery works again')
    expect(lines(daemon, 'webhook delivery is failing')).toHaveLength(1)
    expect(await notes(daemon)).toEqual([])
    expect(await doctor()).toMatchObject([{ level: 'ok', what: 'sync webhook:default' }])
  })
})
