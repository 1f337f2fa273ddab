import { appendFileSync, realpathSync } from 'node:fs'
import type { Kysely } from 'kysely'
import { describe, expect, it } from 'vitest'
import { checkPrivacy } from '../../src/doctor/upkeep.js'
import { erasureListOf, listErasures } from '../../src/people/erasure-list.js'
import { finishErasure, saveErasures } from '../../src/store/erasures.js'
import { insertEvents } from '../../src/store/events.js'
import { expireBodies, firstKeptBodyAt } from '../../src/store/expire-bodies.js'
import type { Database } from '../../src/store/schema.js'
import { byHand, paymentEvent } from '../entitlements/events.js'
import { newEvent } from '../store/events.js'
import { temporaryFile, temporaryStore } from '../store/temporary-store.js'

const NOW = Date.UTC(2026, 2, 1, 12)
const DAY = 86_400_000
const RETENTION = { retention: { bodiesAfterMs: 180 * DAY } }

/** A store with one event of some age. */
interface Told {
  readonly eventAge?: number
  readonly disposition?: 'applied' | 'held'
}

async function storeWith({ eventAge = 0, disposition = 'applied' }: Told = {}, file = temporaryFile()) {
  const db = await temporaryStore(file)
  const receivedAt = NOW - eventAge
  await db.transaction().execute((trx) =>
    insertEvents(trx, [
      newEvent(paymentEvent({ type: 'payment.authorized', paymentId: 'pay_1', createdAt: receivedAt }), {
        receivedAt,
        disposition,
      }),
    ]),
  )
  return db
}

function check(db: Kysely<Database>, config: Config, file: string, isServed = true) {
  return checkPrivacy(db, { ...config, database: { url: `sqlite:${file}`, file } }, isServed, NOW)
}
type Config = Pick<Parameters<typeof checkPrivacy>[1], 'retention'>

describe('the doctor', () => {
  it('finds nothing wrong where nothing is stored', async () => {
    const file = temporaryFile()
    expect(await check(await temporaryStore(file), RETENTION, file)).toMatchObject([
      { level: 'ok', what: 'erasures' },
      { level: 'ok', what: 'bodies', detail: 'none' },
    ])
  })

  const ACTS = ['cus_1', 'cus_2'].map((customerId) => ({
    ...byHand('manual.erased', 0, { id: `man_${customerId}`, productId: null }),
    customerId,
    environment: 'live' as const,
  }))

  it.each([
    ['is missing', true, 0, () => {}, /is missing/, 'restart the daemon, which writes it again'],
    ['is missing', false, 0, () => {}, /is missing/, 'start the daemon, which writes it again'],
    ['has too few', true, 1, () => {}, /different/, 'restart the daemon, which makes both the same'],
    ['is damaged', true, 2, garble, /^1 line of .* can’t be read$/, expect.stringContaining('put a copy')],
  ])('warns where the list of erasures %s', async (_how, isServed, listed, harm, detail, todo) => {
    const file = temporaryFile()
    const db = await temporaryStore(file)
    await db.transaction().execute((trx) => saveErasures(trx, ACTS))
    const list = erasureListOf(realpathSync(file))
    listErasures(list, ACTS.slice(0, listed))
    harm(list)
    const [erasures] = await check(db, RETENTION, file, isServed)
    expect(erasures).toEqual({ level: 'warn', what: 'erasures', detail: expect.stringMatching(detail), todo })
  })

  function garble(list: string): void {
    appendFileSync(list, '{"environment":')
  }

  it('warns of an erasure that is not finished where no daemon finishes it', async () => {
    const file = temporaryFile()
    const db = await temporaryStore(file)
    await db.transaction().execute((trx) => saveErasures(trx, ACTS))
    listErasures(erasureListOf(realpathSync(file)), ACTS)
    const erasures = async (isServed: boolean) => (await check(db, RETENTION, file, isServed))[0]
    expect(await erasures(true)).toMatchObject({ level: 'ok' })
    expect(await erasures(false)).toMatchObject({
      level: 'warn',
      detail: '2 erasures not finished',
      todo: 'start the daemon, or run `latchkey erase` again',
    })
    for (const act of ACTS) {
      await db.transaction().execute((trx) => finishErasure(trx, act, false, NOW))
    }
    expect(await erasures(false)).toMatchObject({ level: 'ok' })
  })

  it.each([
    ['younger than they are kept', 179 * DAY, RETENTION, 'ok'],
    ['due since less than a day', 181 * DAY, RETENTION, 'ok'],
    ['older than that', 181 * DAY + 1, RETENTION, 'warn'],
    ['of any age, where they are kept for ever', 999 * DAY, { retention: null }, 'ok'],
  ])('looks at bodies %s', async (_how, eventAge, config, level) => {
    const file = temporaryFile()
    const [, bodies] = await check(await storeWith({ eventAge }, file), config, file)
    expect(bodies).toMatchObject({ level, what: 'bodies' })
  })

  it.each([
    [RETENTION, 'the oldest came 400d ago, the next to go 5d ago; they go after 180d'],
    [{ retention: null }, 'the oldest came 400d ago; they are kept for ever'],
  ])(
    'tells the oldest body, also of one that was imported after a younger one came',
    async (config, detail) => {
      const file = temporaryFile()
      const db = await storeWith({ eventAge: 5 * DAY }, file)
      const receivedAt = NOW - 400 * DAY
      const imported = paymentEvent({ type: 'payment.succeeded', paymentId: 'pay_0', createdAt: receivedAt })
      await db.transaction().execute((trx) => insertEvents(trx, [newEvent(imported, { receivedAt })]))
      const [, bodies] = await check(db, config, file)
      expect(bodies).toMatchObject({ level: 'ok', what: 'bodies', detail })
      expect(await firstKeptBodyAt(db)).toBe(NOW - 5 * DAY)
    },
  )

  it('tells of bodies that are kept beyond their age, since their events wait', async () => {
    const file = temporaryFile()
    const db = await storeWith({ eventAge: 200 * DAY, disposition: 'held' }, file)
    const before = NOW - RETENTION.retention.bodiesAfterMs
    await db.transaction().execute((trx) => expireBodies(trx, before, NOW))
    expect((await check(db, RETENTION, file))[2]).toMatchObject({
      level: 'warn',
      what: 'kept bodies',
      detail: '1 event older than that held or quarantined, the oldest for 200d',
    })
    expect(await check(db, { retention: null }, file)).toHaveLength(2)
    expect(await firstKeptBodyAt(db)).toBe(NOW - 200 * DAY)
  })
})
