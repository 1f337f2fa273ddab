import { describe, expect, it } from 'vitest'
import { loadChanges } from '../../src/store/changes.js'
import { loadCustomers } from '../../src/store/customers.js'
import { accountId, BOT_TOKEN, GOLD_ROLE_ID, GUILD_ID } from '../platforms/discord-ids.js'
import { startDiscord } from '../platforms/discord-server.js'
import { entitlement } from './observed.js'
import { type Answered, call, NOW, type RunningDaemon, runDaemon, send } from './running-daemon.js'
import { storedEvents } from './stored.js'

const GRANT = { productId: 'pro_1', reason: 'support case 17' }
const GRANTS = '/customers/cus_1/grants'
const BLOCKS = '/customers/cus_1/blocks'

const changesOf = (daemon: RunningDaemon) =>
  daemon.stored(async (db) =>
    (await loadChanges(db, 'live', 0, 100)).map(({ productId, before, after, cause }) => ({
      productId,
      from: before.status,
      to: after.status,
      cause: cause.eventId,
    })),
  )

const pay = (daemon: RunningDaemon) =>
  send(
    daemon,
    JSON.stringify({
      id: 'evt_paid',
      type: 'payment.authorized',
      created_at: '2026-03-01T11:00:00.000Z',
      data: { id: 'pay_1', customer_id: 'cus_1', product_id: 'pro_1', method: 'CARD' },
    }),
  )

describe('a grant', () => {
  it('gives access from its answer on, and says who gave it and why', async () => {
    const daemon = await runDaemon()
    const { status, json } = await call(daemon, 'POST', GRANTS, { ...GRANT, until: '2026-03-02T12:00:00Z' })
    expect(status).toBe(201)
    expect(json).toMatchObject({
      eventId: expect.stringMatching(/^man_[0-9a-f]{32}$/),
      customerId: 'cus_1',
      entitlements: [{ productId: 'pro_1', status: 'ending', until: '2026-03-02T12:00:00.000Z' }],
    })
    expect(await entitlement(daemon, { product: 'pro_1' })).toMatchObject({
      active: true,
      sources: [{ id: 'cus_1/pro_1', kind: 'manual', active: true, rail: 'unknown', eventId: json.eventId }],
    })
    const [event] = await storedEvents(daemon)
    expect(event).toMatchObject({
      event_id: json.eventId,
      endpoint: 'manual',
      type: 'manual.granted',
      generation: null,
      disposition: 'applied',
    })
    expect(JSON.parse(String(event?.body))).toMatchObject({ actor: 'operator', reason: 'support case 17' })
    expect(await changesOf(daemon)).toEqual([
      { productId: 'pro_1', from: 'none', to: 'ending', cause: json.eventId },
    ])
  })

  it('ends by itself, as completed', async () => {
    const daemon = await runDaemon()
    await call(daemon, 'POST', GRANTS, { ...GRANT, until: '2026-03-02T12:00:00Z' })
    daemon.setNow(Date.parse('2026-03-02T12:00:00Z'))
    expect(await entitlement(daemon, { product: 'pro_1' })).toMatchObject({
      active: false,
      status: 'completed',
    })
  })

  it('is one grant under one Idempotency-Key, however often it is asked for', async () => {
    const daemon = await runDaemon()
    const headers = { 'Idempotency-Key': 'case-17' }
    const body = { ...GRANT, until: '2026-03-02T12:00:00Z' }
    const asked = [1, 2, 3].map(() => call(daemon, 'POST', GRANTS, body, headers))
    const answers = await Promise.all(asked)
    // Still the first answer's grant after its end has passed: a repeat asks for nothing new.
    daemon.setNow(Date.parse('2026-03-03T12:00:00Z'))
    answers.push(await call(daemon, 'POST', GRANTS, body, headers))
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201])
    expect(new Set(answers.map(({ json }) => json.eventId)).size).toBe(1)
    expect(await storedEvents(daemon)).toHaveLength(1)
    expect(await daemon.stored((db) => db.selectFrom('event_conflicts').selectAll().execute())).toEqual([])
  })

  it('is refused under an Idempotency-Key that was used for another', async () => {
    const daemon = await runDaemon()
    const headers = { 'Idempotency-Key': 'case-17' }
    await call(daemon, 'POST', GRANTS, GRANT, headers)
    for (const [path, body] of [
      [GRANTS, { ...GRANT, productId: 'pro_2' }],
      ['/customers/cus_2/grants', GRANT],
    ] as const) {
      expect(await call(daemon, 'POST', path, body, headers)).toMatchObject({
        status: 422,
        json: { code: 'idempotency_key_conflict' },
      })
    }
    expect(await storedEvents(daemon)).toHaveLength(1)
  })

  it('is refused with an end in the past, and nothing is stored', async () => {
    const daemon = await runDaemon()
    const past = { ...GRANT, until: '2026-03-01T12:00:00Z' }
    expect(await call(daemon, 'POST', GRANTS, past)).toMatchObject({
      status: 400,
      json: { code: 'invalid_request', errors: [{ path: 'until' }] },
    })
    expect(await storedEvents(daemon)).toEqual([])
  })
})

describe('revoking', () => {
  it('revokes what was granted by hand', async () => {
    const daemon = await runDaemon()
    await call(daemon, 'POST', GRANTS, GRANT)
    // At the same instant of a clock that stands still: the order of acts decides.
    expect(await call(daemon, 'DELETE', `${GRANTS}/pro_1`)).toMatchObject({
      status: 200,
      json: { entitlements: [{ productId: 'pro_1', active: false, status: 'revoked' }] },
    })
    expect((await call(daemon, 'POST', GRANTS, GRANT)).json.entitlements).toMatchObject([{ active: true }])
  })

  it('is refused where nothing was granted by hand, whatever was paid', async () => {
    const daemon = await runDaemon()
    await pay(daemon)
    expect(await call(daemon, 'DELETE', `${GRANTS}/pro_1`)).toMatchObject({
      status: 404,
      json: { code: 'grant_not_found' },
    })
    expect(await entitlement(daemon, { product: 'pro_1' })).toMatchObject({ active: true })
  })
})

describe('a block', () => {
  it('that is not there cannot be lifted', async () => {
    const daemon = await runDaemon()
    const notFound = { status: 404, json: { code: 'block_not_found' } }
    const lift = (path = '') => call(daemon, 'DELETE', `${BLOCKS}${path}`, {})
    for (const path of ['', '/pro_1']) expect(await lift(path)).toMatchObject(notFound)
    await call(daemon, 'PUT', BLOCKS, { reason: 'fraud' })
    expect(await lift('/pro_1')).toMatchObject(notFound)
    expect(await lift()).toMatchObject({ status: 200 })
    expect(await lift()).toMatchObject(notFound)
  })

  it('takes access away whatever was paid, until it is lifted, and both are changes', async () => {
    const daemon = await runDaemon()
    await pay(daemon)
    const blocked = await call(daemon, 'PUT', BLOCKS, { reason: 'under review' })
    expect(blocked).toMatchObject({
      status: 200,
      json: {
        entitlements: [{ active: false, status: 'blocked', sources: [{ id: 'pay_1', active: true }] }],
      },
    })
    daemon.setNow(NOW + 60_000)
    const lifted = await call(daemon, 'DELETE', BLOCKS)
    expect(lifted.json.entitlements).toMatchObject([
      { active: true, status: 'active', since: '2026-03-01T12:01:00.500Z' },
    ])
    expect(await changesOf(daemon)).toEqual([
      { productId: 'pro_1', from: 'none', to: 'active', cause: 'evt_paid' },
      { productId: 'pro_1', from: 'active', to: 'blocked', cause: blocked.json.eventId },
      { productId: 'pro_1', from: 'blocked', to: 'active', cause: lifted.json.eventId },
    ])
    expect(await entitlement(daemon, { product: 'pro_1', query: '?at=2026-03-01T12:00:30Z' })).toMatchObject({
      status: 'blocked',
    })
    expect(await entitlement(daemon, { product: 'pro_1', query: '?at=2026-03-01T11:30:00Z' })).toMatchObject({
      active: true,
    })
  })

  it('on one product shows there, also where it was never granted', async () => {
    const daemon = await runDaemon()
    await pay(daemon)
    await call(daemon, 'PUT', `${BLOCKS}/pro_2`, { reason: 'not for them' })
    expect(await entitlement(daemon, { product: 'pro_1' })).toMatchObject({ active: true })
    expect(await entitlement(daemon, { product: 'pro_2' })).toMatchObject({
      active: false,
      status: 'blocked',
    })
    expect((await call(daemon, 'DELETE', `${BLOCKS}/pro_2`)).json.entitlements).toMatchObject([
      { productId: 'pro_1' },
    ])
  })

  it('on every product shows for one that was never granted', async () => {
    const daemon = await runDaemon()
    await call(daemon, 'PUT', BLOCKS, { reason: 'under review' })
    expect(await entitlement(daemon, { product: 'pro_9' })).toMatchObject({
      active: false,
      status: 'blocked',
    })
  })

  it('holds against what is paid after it', async () => {
    const daemon = await runDaemon()
    await call(daemon, 'PUT', BLOCKS, { reason: 'under review' })
    await pay(daemon)
    expect(await entitlement(daemon, { product: 'pro_1' })).toMatchObject({
      active: false,
      status: 'blocked',
    })
  })
})

describe('linked identities', () => {
  const IDENTITIES = '/customers/cus_1/identities'

  it('are known of the customer, the newest of each kind', async () => {
    const daemon = await runDaemon()
    await call(daemon, 'PUT', IDENTITIES, { communityId: '80351110224678912', messengerId: '901' })
    const { status } = await call(daemon, 'PUT', IDENTITIES, { communityId: '80351110224678913' })
    expect(status).toBe(200)
    const known = await daemon.stored((db) => loadCustomers(db, 'live', ['cus_1']))
    expect(known.get('cus_1')?.facts).toMatchObject({
      communityId: { value: '80351110224678913' },
      messengerId: { value: '901' },
    })
  })
})

it('an act comes after the one before it, even where the clock was set back', async () => {
  const daemon = await runDaemon()
  await call(daemon, 'POST', GRANTS, GRANT)
  daemon.setNow(NOW - 3_600_000)
  await call(daemon, 'DELETE', `${GRANTS}/pro_1`)
  expect(await entitlement(daemon, { product: 'pro_1' })).toMatchObject({ active: false, status: 'revoked' })
  expect((await storedEvents(daemon)).map(({ created_at }) => created_at)).toEqual([NOW, NOW + 1])
})

describe('a dry run', () => {
  const DRY = '?dryRun=true'

  it('answers as the act would, and stores nothing', async () => {
    const daemon = await runDaemon()
    const end = { ...GRANT, until: '2026-03-22T12:00:00.000Z' }
    const dry = await call(daemon, 'POST', `${GRANTS}${DRY}`, end)
    expect(dry).toMatchObject({ status: 201, json: { calls: [] } })
    expect(await storedEvents(daemon)).toEqual([])
    const { json } = await call(daemon, 'POST', GRANTS, end)
    expect(json.calls).toBeUndefined()
    expect(dry.json.entitlements).toMatchObject([{ productId: 'pro_1', status: 'ending', until: end.until }])
    // Each has an id and a place in the change log of its own.
    const shown = ({ eventId, cursor, calls, ...rest }: Answered['json']) =>
      JSON.stringify(rest).replaceAll(String(eventId), 'the act')
    expect(shown(dry.json)).toBe(shown(json))
  })

  it('says what a block and the end of a grant would leave', async () => {
    const daemon = await runDaemon()
    await pay(daemon)
    await call(daemon, 'POST', GRANTS, GRANT)
    const blocked = await call(daemon, 'PUT', `${BLOCKS}/pro_1${DRY}`, { reason: 'abuse' })
    expect(blocked.json.entitlements).toMatchObject([
      { productId: 'pro_1', active: false, status: 'blocked' },
    ])
    const revoked = await call(daemon, 'DELETE', `${GRANTS}/pro_1${DRY}`, {})
    expect(revoked.json.entitlements).toMatchObject([
      {
        active: true,
        sources: [
          { kind: 'manual', active: false },
          { kind: 'payment', active: true },
        ],
      },
    ])
    expect(await entitlement(daemon, { product: 'pro_1' })).toMatchObject({ active: true, status: 'active' })
    expect(await storedEvents(daemon)).toHaveLength(2)
  })

  it('is refused as the act would be', async () => {
    const daemon = await runDaemon()
    const past = { ...GRANT, until: '2026-03-01T11:00:00Z' }
    expect(await call(daemon, 'POST', `${GRANTS}${DRY}`, past)).toMatchObject({
      status: 400,
      json: { errors: [{ path: 'until' }] },
    })
    expect(await call(daemon, 'DELETE', `${GRANTS}/pro_1${DRY}`, {})).toMatchObject({
      json: { code: 'grant_not_found' },
    })
    expect(await call(daemon, 'DELETE', `${BLOCKS}${DRY}`, {})).toMatchObject({
      json: { code: 'block_not_found' },
    })
  })

  it('names the calls to platforms that would follow', async () => {
    const discord = await startDiscord()
    const role = { adapter: 'discord', guildId: GUILD_ID, roleId: GOLD_ROLE_ID }
    const config = {
      products: { pro_1: { targets: [role] } },
      sync: { discord: { botToken: BOT_TOKEN, apiUrl: discord.url } },
    }
    const daemon = await runDaemon({ config })
    await call(daemon, 'POST', '/sync/pause')
    const calls = async (method: string, path: string, body: object) =>
      (await call(daemon, method, `${path}${DRY}`, body)).json.calls
    const link = { communityId: accountId(1) }
    const gives = { environment: 'live', customerId: 'cus_1', accountId: accountId(1), action: 'give' }
    const target = `discord:${GUILD_ID}:${GOLD_ROLE_ID}`

    expect(await calls('POST', GRANTS, GRANT)).toEqual([])
    await call(daemon, 'PUT', '/customers/cus_1/identities', link)
    expect(await calls('POST', GRANTS, GRANT)).toEqual([{ ...gives, target }])

    await call(daemon, 'POST', '/customers/cus_2/grants', GRANT)
    const linked = await calls('PUT', '/customers/cus_2/identities', { communityId: accountId(2) })
    expect(linked).toEqual([{ ...gives, customerId: 'cus_2', accountId: accountId(2), target }])
    expect(discord.calls.filter(({ method }) => method !== 'GET')).toEqual([])
  })
})
