import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { MIGRATIONS } from '../../migrations/index.js'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { createBatchWriter } from '../../src/ingest/commit.js'
import { undatedAct } from '../../src/people/acts.js'
import { NORMALIZER_VERSION } from '../../src/provider/event.js'
import { executedMigrations, migrate } from '../../src/store/migrate.js'
import { loadJobRecord, NOTHING_READ, saveJob, saveJobRecord } from '../../src/store/recompute.js'
import { ENVIRONMENTS } from '../../src/store/schema.js'
import { savePolicy } from '../../src/store/settings.js'
import { API_KEY, ask, call, NOW, type RunningDaemon, runDaemon, send } from '../daemon/running-daemon.js'
import { storedEvents } from '../daemon/stored.js'
import { openStream } from '../daemon/stream-client.js'
import { PRODUCT, wireEvent } from '../daemon/wire-events.js'
import { accountId, BOT_TOKEN, GOLD_ROLE_ID, GUILD_ID } from '../platforms/discord-ids.js'
import { startDiscord } from '../platforms/discord-server.js'
import { eventually } from '../setup/eventually.js'
import { keyEntry, openStoreAt, postgresAt } from '../world.js'
import { storeAt } from './lease-store.js'

/** Two daemons on one database. */
async function two(config: Record<string, unknown> = {}): Promise<readonly [RunningDaemon, RunningDaemon]> {
  const first = await runDaemon({ config })
  return [first, await runDaemon({ config, folder: first.folder })]
}

const paid = (n: number, type = 'payment.authorized') =>
  wireEvent(type, {
    customer: `cus_${n}`,
    payment: `pay_${n}`,
    data: { customer: { id: `cus_${n}`, communityId: accountId(n) } },
  })

const dispositionsOf = (answers: readonly Response[]) =>
  Promise.all(answers.map(async (answer) => ((await answer.json()) as { disposition: string }).disposition))

interface Page {
  readonly items: readonly { readonly cursor: string; readonly customerId: string }[]
}

async function changesAfter(daemon: RunningDaemon, cursor: string | null): Promise<Page['items']> {
  const page = await ask(daemon, `/changes?limit=7${cursor === null ? '' : `&cursor=${cursor}`}`)
  return ((await page.json()) as Page).items
}

describe('two instances on one database', () => {
  it('store an event once that comes to both at the same time, and acknowledge it twice', async () => {
    const both = await two()
    for (let n = 1; n <= 20; n += 1) {
      const body = paid(n)
      const answers = await Promise.all(both.map((daemon) => send(daemon, body)))
      expect(answers.map(({ status }) => status)).toEqual([200, 200])
      expect((await dispositionsOf(answers)).sort()).toEqual(['applied', 'duplicate'])
    }
    expect(await storedEvents(both[0])).toHaveLength(20)
  })

  it('answer what the other has acknowledged at once, also if they were asked before', async () => {
    const [one, other] = await two()
    const isActive = async (daemon: RunningDaemon) =>
      ((await (await ask(daemon, `/entitlements/cus_1/${PRODUCT}`)).json()) as { active: boolean }).active
    for (const type of ['payment.authorized', 'payment.refunded'] as const) {
      expect(await isActive(other)).toBe(type === 'payment.refunded')
      await send(one, paid(1, type))
      expect(await isActive(other)).toBe(type === 'payment.authorized')
    }
  })

  it('show when a key was last used at the other, once that is stored', async () => {
    const app = keyEntry('app', 'lk_app')
    const operator = {
      ...keyEntry('operator', API_KEY),
      scopes: ['admin'],
      environments: ['live', 'sandbox'],
    }
    const [one, other] = await two({ api: { keys: [app, operator] } })
    const headers = { Authorization: 'Bearer lk_app' }
    expect((await fetch(`${one.url}/entitlements/cus_1`, { headers })).status).toBe(200)
    await one.stop()
    expect((await call(other, 'GET', '/keys')).json).toMatchObject({
      keys: [{ name: 'app', lastUsedAt: new Date(NOW).toISOString() }, { name: 'operator' }],
    })
  })

  it('take a session of the console that began at the other', async () => {
    const [one, other] = await two()
    const signedIn = await fetch(`${one.url}/console/session`, {
      method: 'POST',
      redirect: 'manual',
      headers: { Origin: one.url },
      body: new URLSearchParams({ key: API_KEY }),
    })
    const Cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? ''
    for (const { url } of [one, other]) {
      const answer = await fetch(`${url}/console/api/console/session`, { headers: { Cookie } })
      expect(answer.status).toBe(200)
    }
  })

  it('erase at one what comes later to the other', async () => {
    const [one, other] = await two()
    await send(other, paid(1))
    expect((await call(one, 'DELETE', '/customers/cus_1')).status).toBe(200)
    await send(other, paid(1, 'payment.refunded'))
    const bodies = (await storedEvents(one)).map(({ body }) => body?.toString() ?? '')
    expect(bodies.join()).not.toContain(accountId(1))
  })

  it('finish an erasure that another began, and ended before its end', async () => {
    const [one, other] = await two()
    await send(other, paid(1))
    const db = await openStoreAt(one.databaseFile, { readOnly: false })
    const write = createBatchWriter({ db, policy: () => DOCUMENTED_POLICY, clock: () => NOW })
    const by = { customerId: 'cus_1', actor: 'me', reason: null }
    await write([{ environment: 'live', undated: undatedAct({ id: 'man_1', type: 'manual.erased', ...by }) }])
    await db.destroy()
    await eventually(async () => {
      const bodies = (await storedEvents(one)).map(({ body }) => body?.toString() ?? '')
      expect(bodies.join()).not.toContain(accountId(1))
    })
  })

  it('write one change log, which a reader of pages finds without a hole or a double', async () => {
    const both = await two()
    const numbers = Array.from({ length: 120 }, (_, i) => i + 1)
    let isSending = true
    const sending = Promise.all(
      numbers.map((n) =>
        // A commit that takes too long is answered 503, and the provider sends again.
        eventually(async () => {
          const { status } = await send(both[n % 2] as RunningDaemon, paid(n))
          expect(status).toBe(200)
        }),
      ),
    ).finally(() => {
      isSending = false
    })
    const read: string[] = []
    let cursor: string | null = null
    for (let wasSending = true; ; wasSending = isSending) {
      const page: Page['items'] = await changesAfter(both[read.length % 2] as RunningDaemon, cursor)
      read.push(...page.map(({ customerId }) => customerId))
      cursor = page.at(-1)?.cursor ?? cursor
      if (page.length === 0 && !wasSending) break
    }
    await sending
    expect(read.toSorted()).toEqual(numbers.map((n) => `cus_${n}`).toSorted())
  })

  it('stream what the other has written, and go on for a client of the other', async () => {
    const [one, other] = await two()
    const client = await openStream(one)
    await Promise.all([1, 2, 3, 4].map((n) => send(n % 2 ? one : other, paid(n))))
    await eventually(() => expect(client.changes).toHaveLength(4))
    await one.stop()
    await client.ended
    await send(other, paid(5))
    const next = await openStream(other, '', { 'Last-Event-ID': client.lastEventId() })
    await send(other, paid(6))
    await eventually(() => expect(next.changes).toHaveLength(2))
    const read = [...client.changes, ...next.changes].map(({ customerId }) => customerId)
    expect(read.toSorted()).toEqual([1, 2, 3, 4, 5, 6].map((n) => `cus_${n}`))
    next.leave()
  })

  it('stream what came behind a transaction of another program once that has ended, though nobody says so', async () => {
    const both = await two()
    const client = await openStream(both[1])
    const db = await openStoreAt(both[0].databaseFile, { readOnly: false })
    const changes = () => client.changes.map(({ customerId }) => customerId)
    await db
      .transaction()
      .setIsolationLevel('read committed')
      .execute(async (trx) => {
        await sql`insert into settings values ('under way', '')`.execute(trx)
        for (const n of [1, 2]) expect((await send(both[0], paid(n))).status).toBe(200)
        expect(await changesAfter(both[0], null)).toEqual([])
        throw new Error('rolled back')
      })
      .catch(({ message }: Error) => expect(message).toBe('rolled back'))
    await eventually(() => expect(changes()).toEqual(['cus_1', 'cus_2']))
    client.leave()
    await db.destroy()
  })

  it('move sources to a policy at the other where one of them ended in the middle', async () => {
    const [one, other] = await two()
    await send(one, paid(1))
    await send(one, paid(1, 'payment.partially_refunded'))
    const isActive = async () =>
      ((await (await ask(other, `/entitlements/cus_1/${PRODUCT}`)).json()) as { active: boolean }).active
    expect(await isActive()).toBe(true)
    const revokeOn = { ...DOCUMENTED_POLICY.revokeOn, card: ['payment.partially_refunded'] as const }
    const policy = { ...DOCUMENTED_POLICY, revokeOn }
    const db = await openStoreAt(one.databaseFile, { readOnly: false })
    await db.transaction().execute(async (trx) => {
      await savePolicy(trx, policy)
      const place = { newest: 2, reached: 0, counts: NOTHING_READ, changesAfter: 0 }
      const about = { scope: ENVIRONMENTS, endpoints: null, policy, normalizerVersion: NORMALIZER_VERSION }
      await saveJob(trx, { ...about, ...place, isMoving: true })
    })
    await db.destroy()
    await one.stop()
    await eventually(async () => expect(await isActive()).toBe(false))
  })

  it('show, join and stop what the other replays, and know it as stopped once that has ended', async () => {
    const [one, other] = await two()
    await send(one, paid(1))
    const { id } = (await call(one, 'POST', '/replays', {})).json
    const path = `/replays/${id}`
    const shown = async (daemon: RunningDaemon) => (await call(daemon, 'GET', path)).json
    await eventually(async () => expect(await shown(one)).toMatchObject({ state: 'done' }))
    expect(await shown(other)).toEqual(await shown(one))

    // As if an instance that is long about it had it.
    const store = await storeAt(one.databaseFile)
    const db = await openStoreAt(one.databaseFile, { readOnly: false })
    const job = JSON.parse((await loadJobRecord(db, `${id}`)) ?? '') as object
    const save = (state: string) =>
      db.transaction().execute((trx) => {
        const outcome = { state, endedAt: NOW, reason: 'Stopped.' }
        return saveJobRecord(trx, { id: `${id}`, record: JSON.stringify({ ...job, outcome }) })
      })
    await save('running')
    await store.lease.during(store.own, async () => {
      for (const daemon of [one, other]) expect(await shown(daemon)).toMatchObject({ state: 'running' })
      expect(await call(one, 'POST', '/replays', {})).toMatchObject({ status: 202, json: { id } })
      expect(await call(one, 'POST', '/replays', { dryRun: true })).toMatchObject({
        status: 409,
        json: { code: 'replay_running' },
      })
      const stopping = call(other, 'DELETE', path)
      await eventually(async () => expect(await save('running')).toBe(true))
      await save('stopped')
      expect(await stopping).toMatchObject({ status: 200, json: { state: 'stopped', reason: 'Stopped.' } })
      await save('running')
    })
    expect(await shown(other)).toMatchObject({ state: 'stopped', reason: expect.stringMatching('again') })
    expect((await call(other, 'POST', '/replays', {})).json.id).not.toBe(id)
    await Promise.all([db.destroy(), store.close()])
  })

  it('call a platform at one of them, and at the other once that has stopped', async () => {
    const discord = await startDiscord()
    const [one, other] = await two({
      products: { [PRODUCT]: { targets: [{ adapter: 'discord', guildId: GUILD_ID, roleId: GOLD_ROLE_ID }] } },
      sync: { discord: { botToken: BOT_TOKEN, apiUrl: discord.url } },
    })
    discord.guild.join(accountId(1), accountId(2))
    const led = (daemon: RunningDaemon) =>
      daemon.logged().filter(({ msg }) => msg === 'which instance follows access has changed').length
    const given = (daemon: RunningDaemon) =>
      daemon.logged().filter(({ msg }) => msg === 'membership given').length
    await eventually(() => expect(led(one)).toBe(1))
    for (const [daemon, leads] of [
      [one, true],
      [other, false],
    ] as const) {
      expect((await call(daemon, 'GET', '/sync')).json).toMatchObject({ leads })
      expect((await call(daemon, 'GET', '/status')).json).toMatchObject({ sync: { leads } })
      expect((await call(daemon, 'POST', '/sync/run', {})).json).toMatchObject({ leads, left: 0 })
    }
    // The one that leads hears of it.
    await send(other, paid(1))
    await eventually(() => expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([accountId(1)]))
    await eventually(() => expect([given(one), given(other), led(other)]).toEqual([1, 0, 0]))
    await one.stop()
    await send(other, paid(2))
    await eventually(() => expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([accountId(1), accountId(2)]))
    await eventually(() => expect([given(one), given(other), led(other)]).toEqual([1, 1, 1]))
  })

  it('make no call that waits behind another as the lease goes to the other instance', async () => {
    const discord = await startDiscord()
    const config = {
      products: { [PRODUCT]: { targets: [{ adapter: 'discord', guildId: GUILD_ID, roleId: GOLD_ROLE_ID }] } },
      sync: { discord: { botToken: BOT_TOKEN, apiUrl: discord.url } },
    }
    const daemon = await runDaemon({ config })
    const customers = [1, 2, 3]
    discord.guild.join(...customers.map(accountId))
    const changes = () => discord.calls.filter(({ method }) => method === 'PUT')
    await eventually(async () =>
      expect((await call(daemon, 'GET', '/sync')).json).toMatchObject({ leads: true }),
    )
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
    const store = await openStoreAt(daemon.databaseFile, { readOnly: false })
    const begun = async () =>
      (await store.selectFrom('memberships').where('given', '=', 1).selectAll().execute()).length

    // The library sends the calls to one guild one after another.
    await discord.setState({ once: answered, route: 'role' })
    await call(daemon, 'POST', '/sync/pause', {})
    for (const n of customers) await send(daemon, paid(n))
    await eventually(async () =>
      expect((await call(daemon, 'GET', '/sync')).json).toMatchObject({
        targets: [{ memberships: { due: 3 } }],
      }),
    )
    await call(daemon, 'POST', '/sync/resume', {})
    await eventually(async () => expect([await begun(), changes().length]).toEqual([3, 1]))
    await sql`update settings set value = 'another 9999999999999' where key = 'lease.following'`.execute(
      store,
    )
    await eventually(async () =>
      expect((await call(daemon, 'GET', '/sync')).json).toMatchObject({ leads: false }),
    )
    answer()
    await daemon.stop()
    expect(changes()).toHaveLength(1)
    await store.destroy()
  })

  it('go on after every connection was lost', async () => {
    const [one, other] = await two()
    await send(one, paid(1))
    const db = await openStoreAt(one.databaseFile, { readOnly: false })
    await sql`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`.execute(db)
    await db.destroy()
    const answers = await Promise.all([2, 3, 4, 5].map((n) => send(n % 2 ? one : other, paid(n))))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect((await ask(one, `/entitlements/cus_5/${PRODUCT}`)).status).toBe(200)
  })
})

it('of the daemons that start at once on an empty database, one makes the tables; an older one starts no more', async () => {
  const { url } = await postgresAt('empty')
  const start = () => runDaemon({ config: { database: { url } } })
  const daemons = await Promise.all([start(), start(), start()])
  for (const [n, daemon] of daemons.entries()) {
    expect(await dispositionsOf([await send(daemon, paid(n))])).toEqual(['applied'])
  }
  const db = await openStoreAt('empty', { readOnly: false })
  expect((await executedMigrations(db)).map(({ name }) => name)).toEqual(MIGRATIONS.map(({ name }) => name))
  await migrate(db, [...MIGRATIONS, { name: '9999-of-tomorrow', create: () => ({ up: async () => {} }) }])
  await db.destroy()
  await expect(start()).rejects.toMatchObject({ code: 'schema_too_new' })
  expect(await dispositionsOf([await send(daemons[0] as RunningDaemon, paid(4))])).toEqual(['applied'])
})
