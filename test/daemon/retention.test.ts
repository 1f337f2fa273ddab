import { describe, expect, it } from 'vitest'
import { call, NOW, type RunningDaemon, runDaemon, send } from './running-daemon.js'
import { storedEvents, storedUnder } from './stored.js'

const DAY = 86_400_000
const RETENTION = { retention: { bodiesAfter: '90d' } }

const event = (id: string, data: object, type = 'payment.authorized') =>
  JSON.stringify({ id, type, created_at: '2026-03-01T11:00:00.000Z', livemode: true, data })

const PAID = event('evt_paid', {
  id: 'pay_1',
  method: 'CARD',
  customer: { id: 'cus_1', email: 'a@example.com' },
  product: 'pro_1',
})
const OTHER = event('evt_paid', { id: 'pay_other', customer: { id: 'cus_2' } })
const HELD = event('evt_held', { id: 'pay_2', method: 'CARD', product: 'pro_1' })
const NAMING = event('evt_naming', { id: 'pay_2', method: 'CARD', customer: 'cus_3', product: 'pro_1' })
const BROKEN = '{"id": "evt_broken"'

/** A daemon with some events, and the same a hundred days later. */
async function aged(...bodies: readonly string[]): Promise<RunningDaemon> {
  const daemon = await runDaemon({ config: RETENTION })
  for (const body of bodies) expect((await send(daemon, body)).status).toBe(200)
  return later(daemon)
}

/** What time makes due is done at the start, and then every minute. */
async function later(daemon: RunningDaemon): Promise<RunningDaemon> {
  await daemon.stop()
  return runDaemon({ config: RETENTION, folder: daemon.folder, now: NOW + 100 * DAY })
}

const bodiesLeft = async (daemon: RunningDaemon) =>
  (await storedEvents(daemon)).filter(({ body }) => body !== null).map(({ event_id }) => event_id)

describe('bodies older than they are to be kept', () => {
  it('go, and leave all that was read from them', async () => {
    const daemon = await aged(PAID)
    await expect.poll(() => bodiesLeft(daemon)).toEqual([])
    expect(await storedUnder(daemon, 'evt_paid')).toMatchObject([
      {
        body_removed: 'expired',
        body_removed_at: NOW + 100 * DAY,
        body_bytes: PAID.length,
        disposition: 'applied',
      },
    ])
    expect((await call(daemon, 'GET', '/entitlements/cus_1/pro_1')).json).toMatchObject({ active: true })
    expect((await call(daemon, 'GET', '/customers/cus_1')).json).toMatchObject({
      identities: { email: { value: 'a@example.com' } },
    })
    expect((await call(daemon, 'GET', '/events/evt_paid')).json).toMatchObject({
      bodyBytes: PAID.length,
      bodyRemoved: { why: 'expired', at: new Date(NOW + 100 * DAY).toISOString() },
    })
    expect(await call(daemon, 'GET', '/events/evt_paid/body')).toMatchObject({
      status: 410,
      json: { code: 'body_removed' },
    })
  })

  it('are known when they come again, and others under their id too', async () => {
    const daemon = await aged(PAID, OTHER)
    await expect.poll(() => bodiesLeft(daemon)).toEqual([])
    const timestamp = String(Math.floor((NOW + 100 * DAY) / 1000))
    const answers = []
    for (const body of [PAID, OTHER]) answers.push(await (await send(daemon, body, { timestamp })).json())
    expect(answers).toMatchObject([{ disposition: 'duplicate' }, { disposition: 'duplicate' }])
    const conflicts = await daemon.stored((db) => db.selectFrom('event_conflicts').selectAll().execute())
    expect(conflicts).toMatchObject([{ body: null, body_removed: 'expired', deliveries: 2 }])
  })

  it('stay while their event waits or cannot be used, and go once it counts', async () => {
    const daemon = await aged(PAID, HELD, BROKEN)
    const [, , broken] = await storedEvents(daemon)
    await expect.poll(() => bodiesLeft(daemon)).toEqual(['evt_held', broken?.event_id])
    const timestamp = String(Math.floor((NOW + 100 * DAY) / 1000))
    await send(daemon, NAMING, { timestamp })
    const next = await later(daemon)
    await expect.poll(() => bodiesLeft(next)).toEqual([broken?.event_id, 'evt_naming'])
  })

  it('are folded as they stand by a replay, which says how many', async () => {
    const daemon = await aged(PAID, HELD)
    await expect.poll(() => bodiesLeft(daemon)).toEqual(['evt_held'])
    const { status, json } = await call(daemon, 'POST', '/replays', { filter: {}, dryRun: false })
    expect(status).toBe(202)
    const told = async () => (await call(daemon, 'GET', `/replays/${json.id}`)).json
    await expect.poll(told).toMatchObject({
      state: 'done',
      summary: { read: 1, notReplayable: 1, changed: 0, gains: 0, losses: 0 },
    })
    expect((await call(daemon, 'GET', '/entitlements/cus_1/pro_1')).json).toMatchObject({ active: true })
  })

  it.each([
    ['for ever where the config says nothing', {}, 1_000],
    ['as long as they are young', RETENTION, 89],
  ])('are kept %s', async (_how, config, days) => {
    const daemon = await runDaemon({ config })
    await send(daemon, PAID)
    await daemon.stop()
    const next = await runDaemon({ config, folder: daemon.folder, now: NOW + days * DAY })
    await next.stop()
    expect(await bodiesLeft(next)).toEqual(['evt_paid'])
  })
})
