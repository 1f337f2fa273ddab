import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { accountId, BOT_TOKEN, GOLD_ROLE_ID, GUILD_ID } from '../platforms/discord-ids.js'
import { type LocalDiscord, startDiscord } from '../platforms/discord-server.js'
import { eventually } from '../setup/eventually.js'
import { SECRET, startAnswering } from '../sync/webhook/receiver.js'
import { ENGINE, postgresAt } from '../world.js'
import { ask, call, NOW, type RunningDaemon, runDaemon, send } from './running-daemon.js'
import { PRODUCT, wireEvent } from './wire-events.js'

const TARGET = `discord:${GUILD_ID}:${GOLD_ROLE_ID}`
const ROLE = { adapter: 'discord', guildId: GUILD_ID, roleId: GOLD_ROLE_ID }

const configFor = (discord: LocalDiscord, products: object = { [PRODUCT]: { targets: [ROLE] } }) => ({
  products,
  sync: { discord: { botToken: BOT_TOKEN, apiUrl: discord.url } },
})

async function withDiscord() {
  const discord = await startDiscord()
  discord.guild.join(accountId(1), accountId(2))
  const daemon = await runDaemon({ config: configFor(discord) })
  // What comes while a first start takes over the mapping would count as its doing.
  expect((await askSync(daemon, 'run')).status).toBe(200)
  return { discord, daemon, holders: () => discord.guild.holders(GOLD_ROLE_ID) }
}

/** A payment of cus_1, whose account is the first, under this event id. */
async function pay(daemon: RunningDaemon, id: string, type = 'payment.authorized', told = {}) {
  const data = { customer: { id: 'cus_1', communityId: accountId(1) } }
  expect((await send(daemon, wireEvent(type, { id, data, ...told }))).status).toBe(200)
}

const askSync = (daemon: RunningDaemon, what: string, body: object = {}) =>
  call(daemon, 'POST', `/sync/${what}`, body)

const lines = (daemon: RunningDaemon, msg: string) => daemon.logged().filter((line) => line.msg === msg)

/** The lines about roles that were given and taken, in order. */
const done = (daemon: RunningDaemon) =>
  daemon
    .logged()
    .filter(({ msg }) => msg === 'membership given' || msg === 'membership taken')
    .map(({ msg, cause }) => [msg, cause])

const MEMBERSHIP = {
  level: 'info',
  environment: 'live',
  customerId: 'cus_1',
  platform: 'discord',
  target: TARGET,
}

describe('the log tells of each role that is given or taken', () => {
  it('with the event that changed access', async () => {
    const { daemon, holders } = await withDiscord()
    await pay(daemon, 'evt_pay')
    await eventually(() => expect(lines(daemon, 'membership given')).toHaveLength(1))
    await pay(daemon, 'evt_refund', 'payment.refunded')
    await eventually(() => expect(lines(daemon, 'membership taken')).toHaveLength(1))
    expect(holders()).toEqual([])
    expect(lines(daemon, 'membership given')).toMatchObject([
      { ...MEMBERSHIP, productIds: [PRODUCT], cause: { kind: 'event', eventId: 'evt_pay' } },
    ])
    expect(lines(daemon, 'membership taken')).toMatchObject([
      { ...MEMBERSHIP, productIds: [PRODUCT], cause: { kind: 'event', eventId: 'evt_refund' } },
    ])
    const metrics = await eventually(async () => {
      const text = await (await ask(daemon, '/metrics')).text()
      for (const result of ['given', 'taken'])
        expect(text).toContain(`latchkey_sync_calls_total{platform="discord",result="${result}"} 1`)
      return text
    })
    expect(JSON.stringify(daemon.logged()) + metrics).not.toContain(accountId(1))
  })

  it('with the clock, where a manual grant has ended', async () => {
    const { discord, daemon } = await withDiscord()
    await call(daemon, 'PUT', '/customers/cus_1/identities', { communityId: accountId(1) })
    const until = new Date(NOW + 60_000).toISOString()
    const grant = { productId: PRODUCT, until, reason: 'a trial' }
    const { json } = await call(daemon, 'POST', '/customers/cus_1/grants', grant)
    await eventually(() => expect(lines(daemon, 'membership given')).toHaveLength(1))
    expect(done(daemon)).toEqual([['membership given', { kind: 'event', eventId: json.eventId }]])
    await daemon.stop()
    const later = await runDaemon({ config: configFor(discord), folder: daemon.folder, now: NOW + 61_000 })
    await eventually(() =>
      expect(done(later)).toEqual([['membership taken', { kind: 'clock', eventId: null }]]),
    )
  })

  it('with the link, where the account is another one now', async () => {
    const { daemon, holders } = await withDiscord()
    await pay(daemon, 'evt_pay')
    await eventually(() => expect(done(daemon)).toHaveLength(1))
    daemon.setNow(NOW + 60_000)
    const link = { communityId: accountId(2) }
    const { json } = await call(daemon, 'PUT', '/customers/cus_1/identities', link)
    await eventually(() => expect(done(daemon)).toHaveLength(3))
    expect(holders()).toEqual([accountId(2)])
    const cause = { kind: 'link', eventId: json.eventId }
    expect(done(daemon).slice(1)).toEqual(
      expect.arrayContaining([
        ['membership given', cause],
        ['membership taken', cause],
      ]),
    )
    expect(lines(daemon, 'membership taken')).toMatchObject([{ customerId: 'cus_1', productIds: [PRODUCT] }])
  })

  it.runIf(ENGINE === 'postgres')('with each of these, though readers of the log see none yet', async () => {
    const { daemon } = await withDiscord()
    const underWay = new pg.Client({ connectionString: (await postgresAt(daemon.databaseFile)).url })
    await underWay.connect()
    await underWay.query('begin; select pg_current_xact_id()')
    await pay(daemon, 'evt_pay')
    await eventually(() => expect(done(daemon)).toHaveLength(1))
    daemon.setNow(NOW + 60_000)
    const link = { communityId: accountId(2) }
    const { json } = await call(daemon, 'PUT', '/customers/cus_1/identities', link)
    await eventually(() => expect(done(daemon)).toHaveLength(3))
    await underWay.end()
    const causes = done(daemon).map(([, cause]) => cause)
    const linked = { kind: 'link', eventId: json.eventId }
    expect(causes).toEqual([{ kind: 'event', eventId: 'evt_pay' }, linked, linked])
  })

  it('with the config, where a product has a role no more', async () => {
    const { discord, daemon, holders } = await withDiscord()
    await pay(daemon, 'evt_pay')
    await eventually(() => expect(done(daemon)).toHaveLength(1))
    await daemon.readAgain(configFor(discord, {}))
    await eventually(() => expect(done(daemon)).toHaveLength(2))
    expect(holders()).toEqual([])
    expect(done(daemon)[1]).toEqual(['membership taken', { kind: 'config', eventId: null }])
  })

  it('with the sweep, where the role was lost on the platform', async () => {
    const { discord, daemon, holders } = await withDiscord()
    await pay(daemon, 'evt_pay')
    await eventually(() => expect(done(daemon)).toHaveLength(1))
    discord.guild.take(accountId(1), GOLD_ROLE_ID)
    daemon.setNow(NOW + 60_000)
    await askSync(daemon, 'run', { sweep: true })
    await eventually(() => expect(holders()).toEqual([accountId(1)]))
    await eventually(() => expect(done(daemon)).toHaveLength(2))
    expect(done(daemon)[1]).toEqual(['membership given', { kind: 'sweep', eventId: null }])
  })

  it('with the event, though it came before a restart', async () => {
    const { daemon, holders } = await withDiscord()
    await askSync(daemon, 'pause')
    await pay(daemon, 'evt_pay')
    await eventually(async () =>
      expect(await daemon.stored((db) => db.selectFrom('memberships').selectAll().execute())).toHaveLength(1),
    )
    const again = await daemon.restart()
    await askSync(again, 'resume')
    await eventually(() => expect(holders()).toEqual([accountId(1)]))
    await eventually(() =>
      expect(done(again)).toEqual([['membership given', { kind: 'event', eventId: 'evt_pay' }]]),
    )
  })
})

it('the log tells once of a customer who has still to join', async () => {
  const { daemon, discord } = await withDiscord()
  discord.guild.leave(accountId(1))
  await pay(daemon, 'evt_pay')
  await eventually(() => expect(lines(daemon, 'membership waits for the customer')).toHaveLength(1))
  await askSync(daemon, 'run', { sweep: true })
  await askSync(daemon, 'run', { sweep: true })
  expect(lines(daemon, 'membership waits for the customer')).toMatchObject([
    { ...MEMBERSHIP, action: 'give', code: 'member_not_in_guild' },
  ])
})

describe('a start while sync is paused', () => {
  it('warns, and says since when', async () => {
    const { daemon } = await withDiscord()
    await askSync(daemon, 'pause')
    const again = await daemon.restart()
    const paused = again.logged().filter(({ msg }) => String(msg).includes('sync is paused'))
    expect(paused).toMatchObject([{ level: 'warn', since: new Date(NOW).toISOString() }])
    expect(paused[0]?.msg).toContain('latchkey sync resume')
    await askSync(again, 'resume')
    const resumed = await again.restart()
    expect(resumed.logged().filter(({ msg }) => String(msg).includes('sync is paused'))).toEqual([])
  })
})

it('the log tells of each webhook message that is given up, and of those delivered at debug', async () => {
  const receiver = await startAnswering(410)
  const daemon = await runDaemon({ config: { sync: { webhook: { url: receiver.url, secret: SECRET } } } })
  await pay(daemon, 'evt_pay')
  const about = { environment: 'live', customerId: 'cus_1', productId: PRODUCT }
  await eventually(() =>
    expect(
      daemon.logged().filter(({ msg }) => String(msg).includes('webhook delivery given up')),
    ).toMatchObject([
      { level: 'error', ...about, reason: 'gone', cause: { kind: 'event', eventId: 'evt_pay' } },
    ]),
  )
  receiver.answerWith(204)
  await pay(daemon, 'evt_refund', 'payment.refunded')
  await eventually(() =>
    expect(lines(daemon, 'webhook delivered')).toMatchObject([
      { level: 'debug', ...about, cause: { kind: 'event', eventId: 'evt_refund' } },
    ]),
  )
})

it('a platform that only a config read later names is followed from then on', async () => {
  const discord = await startDiscord()
  const daemon = await runDaemon()
  discord.guild.join(accountId(1))
  await pay(daemon, 'evt_pay')
  await daemon.readAgain(configFor(discord))
  await eventually(() => expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([accountId(1)]))
})

it('of two configs read one right after the other the last one counts', async () => {
  const discord = await startDiscord()
  const daemon = await runDaemon()
  discord.guild.join(accountId(1))
  await Promise.all([daemon.readAgain(configFor(discord)), daemon.readAgain({})])
  await pay(daemon, 'evt_pay')
  await daemon.stop()
  expect(discord.calls).toEqual([])
})
