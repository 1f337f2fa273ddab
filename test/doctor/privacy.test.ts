import { appendFileSync, realpathSync } from 'node:fs'
import type { Transaction } from 'kysely'
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

type Config = Pick<Parameters<typeof checkPrivacy>[1], 'retention'>

/** An empty store, and what the doctor finds of it. */
async function patient() {
  const file = temporaryFile()
  const db = await temporaryStore(file)
  const inTransaction = <T>(work: (trx: Transaction<Database>) => Promise<T>) =>
    db.transaction().execute(work)
  return {
    db,
    list: erasureListOf(realpathSync(file)),
    inTransaction,
    addEvent(age: number, disposition: 'applied' | 'held' = 'applied') {
      const receivedAt = NOW - age
      const event = paymentEvent({
        type: 'payment.authorized',
        paymentId: `pay_${age}`,
        createdAt: receivedAt,
      })
      const stored = newEvent({ ...event, id: `evt_${age}` }, { receivedAt, disposition })
      return inTransaction((trx) => insertEvents(trx, [stored]))
    },
    check: (config: Config = RETENTION, isServed = true) =>
      checkPrivacy(db, { ...config, database: { url: `sqlite:${file}`, file } }, isServed, NOW),
  }
}

describe('the doctor, of erasures and bodies,', () => {
  it('finds nothing wrong where nothing is stored', async () => {
    expect(await (await patient()).check()).toMatchObject([
      { level: 'ok', what: 'erasures' },
      { level: 'ok', what: 'bodies', detail: 'none' },
    ])
  })

  const ACTS = ['cus_1', 'cus_2'].map((customerId) => ({
    ...byHand('manual.erased', 0, { id: `man_${customerId}`, productId: null }),
    customerId,
    environment: 'live' as const,
  }))
  const garble = (list: string) => appendFileSync(list, '{"environment":')

  it.each([
    ['is missing', true, 0, () => {}, /is missing/, 'restart the daemon, which writes it again'],
    ['is missing', false, 0, () => {}, /is missing/, 'start the daemon, which writes it again'],
    ['has too few', true, 1, () => {}, /different/, 'restart the daemon, which makes both the same'],
    ['is damaged', true, 2, garble, /^1 line of .* can’t be read$/, expect.stringContaining('a good copy')],
  ])('warns where the list %s', async (_how, isServed, listed, harm, detail, todo) => {
    const { list, inTransaction, check } = await patient()
    await inTransaction((trx) => saveErasures(trx, ACTS))
    listErasures(list, ACTS.slice(0, listed))
    harm(list)
    const [erasures] = await check(RETENTION, isServed)
    expect(erasures).toEqual({ level: 'warn', what: 'erasures', detail: expect.stringMatching(detail), todo })
  })

  it('warns of an erasure that is not finished where no daemon finishes it', async () => {
    const { list, inTransaction, check } = await patient()
    await inTransaction((trx) => saveErasures(trx, ACTS))
    listErasures(list, ACTS)
    const erasures = async (isServed: boolean) => (await check(RETENTION, isServed))[0]
    expect(await erasures(true)).toMatchObject({ level: 'ok' })
    const todo = 'start the daemon, or run `latchkey erase` again'
    expect(await erasures(false)).toMatchObject({ level: 'warn', detail: '2 erasures not finished', todo })
    for (const act of ACTS) await inTransaction((trx) => finishErasure(trx, act, false, NOW))
    expect(await erasures(false)).toMatchObject({ level: 'ok' })
  })

  it.each([
    ['younger than they are kept', 179 * DAY, RETENTION, 'ok'],
    ['due since less than a day', 181 * DAY, RETENTION, 'ok'],
    ['older than that', 181 * DAY + 1, RETENTION, 'warn'],
    ['of any age, where they are kept for ever', 999 * DAY, { retention: null }, 'ok'],
  ])('looks at bodies %s', async (_how, age, config, level) => {
    const { addEvent, check } = await patient()
    await addEvent(age)
    expect((await check(config))[1]).toMatchObject({ level, what: 'bodies' })
  })

  it('tells the oldest body, also of one that was imported after a younger one came', async () => {
    const { db, addEvent, check } = await patient()
    for (const age of [5 * DAY, 400 * DAY]) await addEvent(age)
    const found = async (config?: Config) => (await check(config))[1]
    expect(await found()).toMatchObject({
      level: 'ok',
      detail:
        'the oldest arrived 400d ago, the next to be removed arrived 5d ago; they are removed after 180d',
    })
    const detail = 'the oldest arrived 400d ago; they are kept for ever'
    expect(await found({ retention: null })).toMatchObject({ level: 'ok', detail })
    expect(await firstKeptBodyAt(db)).toBe(NOW - 5 * DAY)
  })

  it('tells of bodies that are kept beyond their age, since their events wait', async () => {
    const { db, addEvent, inTransaction, check } = await patient()
    await addEvent(200 * DAY, 'held')
    await inTransaction((trx) => expireBodies(trx, NOW - 180 * DAY, NOW))
    const detail = '1 event older than that held or quarantined, the oldest for 200d'
    expect((await check())[2]).toMatchObject({ level: 'warn', what: 'kept bodies', detail })
    expect(await check({ retention: null })).toHaveLength(2)
    expect(await firstKeptBodyAt(db)).toBe(NOW - 200 * DAY)
  })
})
