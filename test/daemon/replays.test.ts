import { describe, expect, it } from 'vitest'
import type { ReplayJson } from '../../src/handlers/replays.js'
import { accountId, BOT_TOKEN, GOLD_ROLE_ID, GUILD_ID } from '../platforms/discord-ids.js'
import { startDiscord } from '../platforms/discord-server.js'
import { misread } from '../setup/alter-body.js'
import { eventually } from '../setup/eventually.js'
import { ask, call, NOW, type RunningDaemon, runDaemon, send } from './running-daemon.js'
import { CUSTOMER, PRODUCT, wireEvent } from './wire-events.js'

const PAID = wireEvent('payment.authorized', {
  id: 'evt_paid',
  data: { customer: { id: CUSTOMER, communityId: accountId(1) } },
})

/** A daemon whose store holds a payment that the program before this one could not read. */
async function daemonAfterMisreading(config: Record<string, unknown> = {}): Promise<RunningDaemon> {
  const before = await runDaemon()
  const unreadable = 'nobody can read this'
  await send(before, unreadable)
  await before.stop()
  await misread(before.databaseFile, [{ unreadable, body: PAID }])
  return runDaemon({ config, folder: before.folder })
}

async function replayed(daemon: RunningDaemon, body: unknown, query = ''): Promise<ReplayJson> {
  const started = await call(daemon, 'POST', `/replays${query}`, body)
  expect(started.status).toBe(202)
  return eventually(async () => {
    const status = (await get(daemon, `/replays/${started.json.id}`)) as ReplayJson
    expect(status.state).not.toBe('running')
    return status
  })
}

async function get(daemon: RunningDaemon, path: string): Promise<unknown> {
  return (await ask(daemon, path)).json()
}

const GAINED = {
  gains: 1,
  losses: 0,
  otherwise: 0,
  sample: [
    {
      environment: 'live',
      customerId: CUSTOMER,
      productId: PRODUCT,
      before: { active: false, status: 'none' },
      after: { active: true, status: 'active' },
    },
  ],
}

describe('a replay', () => {
  it('of one event reads that one alone, however many came with it, and none that is not there', async () => {
    const daemon = await runDaemon()
    const others = ['evt_1', 'evt_2', 'evt_3'].map((id) => wireEvent('payment.authorized', { id }))
    for (const body of others) await send(daemon, body)
    const { filter, summary } = await replayed(daemon, { filter: { eventId: 'evt_2' }, dryRun: true })
    expect([filter.eventId, summary?.read]).toEqual(['evt_2', 1])
    expect((await replayed(daemon, { dryRun: true })).summary?.read).toBe(3)
    const wrong = await call(daemon, 'POST', '/replays', { filter: { eventId: 'evt_9' } })
    expect(wrong).toMatchObject({
      status: 400,
      json: { errors: [{ path: 'filter.eventId', message: 'is not the id of a stored event' }] },
    })
  })

  it('turns what can be read by now into access, in its place, once', async () => {
    const daemon = await daemonAfterMisreading()
    expect(await get(daemon, `/entitlements/${CUSTOMER}`)).toMatchObject({ entitlements: [] })
    const first = await replayed(daemon, { filter: { disposition: 'quarantined' } })
    expect(first).toMatchObject({
      state: 'done',
      dryRun: false,
      filter: { environment: 'live', disposition: 'quarantined', type: null },
      summary: { read: 1, changed: 1, recovered: 1, quarantined: 0, ...GAINED },
    })
    expect(await get(daemon, `/entitlements/${CUSTOMER}/${PRODUCT}`)).toMatchObject({ active: true })
    expect(await get(daemon, '/events/evt_paid')).toMatchObject({
      disposition: 'applied',
      receivedAt: new Date(NOW).toISOString(),
    })

    const again = await replayed(daemon, {})
    expect(again.summary).toMatchObject({ read: 1, changed: 0, gains: 0, losses: 0, otherwise: 0 })
    expect(await daemon.stored((db) => db.selectFrom('changes').select('cause_kind').execute())).toEqual([
      { cause_kind: 'rebuild' },
    ])
  })

  it('is known after a restart, until somebody is erased whose accounts it may name', async () => {
    const before = await daemonAfterMisreading()
    const { id } = await replayed(before, { dryRun: true })
    const daemon = await before.restart()
    expect(await get(daemon, '/replays')).toMatchObject({ items: [{ id, state: 'done', dryRun: true }] })
    expect((await call(daemon, 'DELETE', '/customers/cus_2')).status).toBe(200)
    expect(await get(daemon, '/replays')).toMatchObject({ items: [] })
  })

  it('is at its end once it is done, whether it met all, a part or nothing', async () => {
    const daemon = await runDaemon()
    for (const customer of ['cus_first', 'cus_second', 'cus_third']) {
      await send(daemon, wireEvent('payment.authorized', { customer, payment: `pay_${customer}` }))
    }
    const progress = { reached: 3, total: 3, remainingSeconds: 0 }
    for (const filter of [{}, { customerId: 'cus_first' }, { disposition: 'held' }]) {
      expect(await replayed(daemon, { filter })).toMatchObject({ state: 'done', progress })
    }
  })

  it('on trial tells which roles would follow, and has nobody given one', async () => {
    const discord = await startDiscord()
    discord.guild.join(accountId(1))
    const daemon = await daemonAfterMisreading({
      products: {
        [PRODUCT]: { targets: [{ adapter: 'discord', guildId: GUILD_ID, roleId: GOLD_ROLE_ID }] },
      },
      sync: { discord: { botToken: BOT_TOKEN, apiUrl: discord.url } },
    })
    const trial = await replayed(daemon, { dryRun: true })
    const target = `discord:${GUILD_ID}:${GOLD_ROLE_ID}`
    expect(trial.summary?.calls).toEqual({
      gives: 1,
      takes: 0,
      sample: [
        { environment: 'live', target, accountId: accountId(1), customerId: CUSTOMER, action: 'give' },
      ],
    })
    expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([])

    expect((await replayed(daemon, {})).summary).toMatchObject({ ...GAINED, calls: null })
    await eventually(() => expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([accountId(1)]))
  })

  it('leaves alone what has the id of another event, and what came through an endpoint that has moved', async () => {
    const daemon = await daemonAfterMisreading()
    await send(daemon, PAID)
    expect((await replayed(daemon, {})).summary).toMatchObject({ read: 1, changed: 0, duplicates: 1 })
    await daemon.stop()
    const secrets = ['whsec_moved_0123456789']
    const moved = await runDaemon({
      config: { endpoints: { live: { environment: 'sandbox', secrets } } },
      folder: daemon.folder,
    })
    expect((await replayed(moved, {}, '?environment=live')).summary).toMatchObject({ read: 0, skipped: 2 })
  })

  it('reads only what its filter means', async () => {
    const daemon = await daemonAfterMisreading()
    await send(daemon, wireEvent('payment.authorized', { id: 'evt_other', payment: 'pay_2' }))
    // What could not be read has no type and no customer until the first replay of all.
    for (const [filter, read] of [
      [{ type: 'payment.authorized' }, 1],
      [{ type: 'payment.refunded' }, 0],
      [{ customerId: CUSTOMER }, 1],
      [{ to: new Date(NOW).toISOString() }, 0],
      [{ endpoint: 'live' }, 2],
      [{ from: new Date(NOW).toISOString() }, 2],
    ] as const) {
      const { summary } = await replayed(daemon, { filter })
      expect({ filter, read: summary?.read }).toEqual({ filter, read })
    }
  })
})
