import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { ReplayJson } from '../../src/handlers/replays.js'
import { accountId, BOT_TOKEN, GOLD_ROLE_ID, GUILD_ID } from '../platforms/discord-ids.js'
import { startDiscord } from '../platforms/discord-server.js'
import { misread } from '../setup/alter-body.js'
import { eventually } from '../setup/eventually.js'
import { ask, NOW, type RunningDaemon, runDaemon, send, sharedDaemon } from './running-daemon.js'
import { CUSTOMER, PRODUCT, wireEvent } from './wire-events.js'

const ADMIN_KEY = 'lk_admin_key'
const SANDBOX_KEY = 'lk_sandbox_admin_key'
const READ_KEY = 'lk_read_only_key'

function keyOf(name: string, key: string, scopes: readonly string[], environments = ['live', 'sandbox']) {
  return { name, hash: `sha256:${createHash('sha256').update(key).digest('hex')}`, scopes, environments }
}

const CONFIG = {
  api: {
    keys: [
      keyOf('admin', ADMIN_KEY, ['admin', 'events', 'read']),
      keyOf('sandbox', SANDBOX_KEY, ['admin'], ['sandbox']),
      keyOf('app', READ_KEY, ['read', 'events', 'write']),
    ],
  },
}

const EARLIER = '2026-01-31T12:00:00Z'
const LATER = '2026-01-31T13:00:00+00:30'

const PAID = wireEvent('payment.authorized', {
  id: 'evt_paid',
  data: { customer: { id: CUSTOMER, communityId: accountId(1) } },
})

/** A daemon whose store holds a payment that the program before this one could not read. */
async function daemonAfterMisreading(config: Record<string, unknown> = {}): Promise<RunningDaemon> {
  const before = await runDaemon({ config: CONFIG })
  const unreadable = 'nobody can read this'
  await send(before, unreadable)
  await before.stop()
  await misread(before.databaseFile, [{ unreadable, body: PAID }])
  return runDaemon({ config: { ...CONFIG, ...config }, folder: before.folder })
}

function call(daemon: RunningDaemon, method: string, path: string, body?: unknown, key = ADMIN_KEY) {
  return fetch(`${daemon.url}${path}`, {
    method,
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

async function replayed(daemon: RunningDaemon, body: unknown, query = ''): Promise<ReplayJson> {
  const started = await call(daemon, 'POST', `/replays${query}`, body)
  expect(started.status).toBe(202)
  const { id } = (await started.json()) as ReplayJson
  expect(started.headers.get('location')).toBe(`/replays/${id}`)
  return eventually(async () => {
    const status = (await (await call(daemon, 'GET', `/replays/${id}`)).json()) as ReplayJson
    expect(status.state).not.toBe('running')
    return status
  })
}

async function get(daemon: RunningDaemon, path: string): Promise<unknown> {
  return (await ask(daemon, path, { Authorization: `Bearer ${ADMIN_KEY}` })).json()
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

  it.each([
    ['that met all it was to read', {}],
    ['that met a part of it', { customerId: 'cus_first' }],
    ['that met nothing', { disposition: 'held' }],
  ])('is at its end once it is done: %s', async (_name, filter) => {
    const daemon = await runDaemon({ config: CONFIG })
    for (const customer of ['cus_first', 'cus_second', 'cus_third']) {
      await send(daemon, wireEvent('payment.authorized', { customer, payment: `pay_${customer}` }))
    }
    expect(await replayed(daemon, { filter })).toMatchObject({
      state: 'done',
      progress: { reached: 3, total: 3, remainingSeconds: 0 },
    })
  })

  it('on trial tells the same and changes nothing', async () => {
    const daemon = await daemonAfterMisreading()
    const before = await daemon.stored((db) => db.selectFrom('events').selectAll().execute())
    const trial = await replayed(daemon, { dryRun: true })
    expect(trial).toMatchObject({
      dryRun: true,
      summary: { read: 1, recovered: 1, ...GAINED, calls: { gives: 0 } },
    })
    expect(await get(daemon, `/entitlements/${CUSTOMER}`)).toMatchObject({ entitlements: [] })
    expect(await daemon.stored((db) => db.selectFrom('events').selectAll().execute())).toEqual(before)
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
      config: { ...CONFIG, endpoints: { live: { environment: 'sandbox', secrets } } },
      folder: daemon.folder,
    })
    expect((await replayed(moved, {}, '?environment=live')).summary).toMatchObject({ read: 0, skipped: 2 })
  })

  it.each<[string, object, object]>([
    ['of a type', { type: 'payment.authorized' }, { read: 1 }],
    ['of another type', { type: 'payment.refunded' }, { read: 0 }],
    ['of a customer', { customerId: CUSTOMER }, { read: 1 }],
    ['through an endpoint', { endpoint: 'live' }, { read: 2 }],
    ['since', { from: new Date(NOW).toISOString() }, { read: 2 }],
    ['before', { to: new Date(NOW).toISOString() }, { read: 0 }],
  ])('reads only what its filter means: %s', async (_, filter, summary) => {
    const daemon = await daemonAfterMisreading()
    await send(daemon, wireEvent('payment.authorized', { id: 'evt_other', payment: 'pay_2' }))
    expect((await replayed(daemon, { filter })).summary).toMatchObject(summary)
  })
})

describe('the routes of replays', () => {
  const untouched = sharedDaemon({ config: CONFIG })

  it('are for administrators, of the environments that their key is for', async () => {
    const daemon = await runDaemon({ config: CONFIG })
    const { id } = await replayed(daemon, {})
    expect((await call(daemon, 'POST', '/replays', {}, READ_KEY)).status).toBe(403)
    expect((await call(daemon, 'GET', '/replays', undefined, READ_KEY)).status).toBe(403)
    expect((await call(daemon, 'DELETE', `/replays/${id}`, undefined, READ_KEY)).status).toBe(403)
    expect((await call(daemon, 'POST', '/replays', {}, 'lk_nobody')).status).toBe(401)
    expect((await call(daemon, 'POST', '/replays?environment=live', {}, SANDBOX_KEY)).status).toBe(403)
    expect((await call(daemon, 'GET', `/replays/${id}`, undefined, SANDBOX_KEY)).status).toBe(404)
    expect(await (await call(daemon, 'GET', '/replays', undefined, SANDBOX_KEY)).json()).toMatchObject({
      items: [],
    })
    expect(await get(daemon, '/replays')).toMatchObject({
      items: [{ id, state: 'done' }],
      pagination: { nextCursor: null, hasMore: false },
    })
  })

  it.each<[string, unknown, string]>([
    ['a filter that nobody knows', { filter: { customer: 'cus_1' } }, 'filter'],
    ['a disposition that no event has', { filter: { disposition: 'duplicate' } }, 'filter.disposition'],
    ['a time that is none', { filter: { from: 'yesterday' } }, 'filter.from'],
    ['an end ahead of the beginning', { filter: { from: LATER, to: EARLIER } }, 'filter.from'],
    ['an endpoint that there is not', { filter: { endpoint: 'other' } }, 'filter.endpoint'],
    ['a dry run that is no yes or no', { dryRun: 'yes' }, 'dryRun'],
  ])('refuse %s', async (_, body, path) => {
    const refused = await call(untouched(), 'POST', '/replays', body)
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({ code: 'invalid_request', errors: [{ path }] })
    expect(await get(untouched(), '/replays')).toMatchObject({ items: [] })
  })

  it('know nothing of a replay that never was', async () => {
    for (const method of ['GET', 'DELETE']) {
      const answer = await call(untouched(), method, '/replays/rep_1')
      expect(answer.status).toBe(404)
      expect(await answer.json()).toMatchObject({ code: 'replay_not_found' })
    }
    expect((await call(untouched(), 'PUT', '/replays/rep_1', {})).status).toBe(405)
  })
})
