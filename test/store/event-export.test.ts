import type { Kysely } from 'kysely'
import { describe, expect, it } from 'vitest'
import { type ExportedDelivery, exportDeliveries } from '../../src/store/event-export.js'
import { insertEvents } from '../../src/store/events.js'
import type { Database } from '../../src/store/schema.js'
import { alterBody } from '../setup/alter-body.js'
import { NOON, newEvent, paymentEvent, subscriptionEvent } from './sample-events.js'
import { deliverAgain, everyEvent, numberedEvents, storeOf } from './stored-events.js'

const EVENT = newEvent(paymentEvent())
const OTHER = newEvent(paymentEvent(), { body: '{"other":"body"}', endpoint: 'v2', receivedAt: NOON + 9_000 })
const NEXT = newEvent(subscriptionEvent(), { receivedAt: NOON + 2_000 })
const LATE = newEvent(subscriptionEvent({ id: 'evt_late' }))

async function collect(db: Kysely<Database>, filter = everyEvent()): Promise<readonly ExportedDelivery[]> {
  const exported: ExportedDelivery[] = []
  for await (const delivery of exportDeliveries(db, filter, () => {})) exported.push(delivery)
  return exported
}

describe('an export', () => {
  it('holds every delivery as it came, oldest first, other bodies after the one that stands', async () => {
    const db = await storeOf([EVENT, NEXT])
    await deliverAgain(db, OTHER)
    const exported = await collect(db)
    expect(exported).toEqual(
      [EVENT, OTHER, NEXT].map(({ environment, eventId, endpoint, receivedAt, headers, body }) => {
        return { environment, eventId, endpoint, receivedAt, headers, body, isAltered: false, reading: null }
      }),
    )
  })

  it('tells of no bytes that are not the ones that came, and says so', async () => {
    const db = await storeOf([EVENT, NEXT])
    await deliverAgain(db, OTHER)
    await alterBody(db, 'evt_1', '{"altered":"body"}')
    await alterBody(db, 'evt_1', null, 'event_conflicts')
    expect(await collect(db)).toMatchObject([
      { eventId: 'evt_1', body: null, isAltered: true },
      { eventId: 'evt_1', body: null, isAltered: true },
      { eventId: 'evt_2', body: NEXT.body, isAltered: false },
    ])
  })

  it('goes through more events than one step, all of them once', async () => {
    const db = await storeOf(numberedEvents(1_203))
    const progress: (readonly [number, number])[] = []
    const exported = exportDeliveries(db, everyEvent(), (...told) => progress.push(told))
    const ids: string[] = []
    for await (const { eventId } of exported) ids.push(eventId)
    expect(ids).toEqual(Array.from({ length: 1_203 }, (_, i) => `evt_${i}`))
    expect(progress).toEqual([
      [500, 1_203],
      [1_000, 1_203],
      [1_203, 1_203],
    ])
  })

  it('ends at the event that was the newest when it began', async () => {
    const db = await storeOf(numberedEvents(700))
    const ids: string[] = []
    for await (const { eventId } of exportDeliveries(db, everyEvent(), () => {})) {
      if (ids.length === 0) await db.transaction().execute((trx) => insertEvents(trx, [LATE]))
      ids.push(eventId)
    }
    expect(ids).toHaveLength(700)
    expect(ids).not.toContain('evt_late')
  })

  it('holds what the filter means', async () => {
    const db = await storeOf([EVENT, NEXT])
    const exported = await collect(db, everyEvent({ type: 'subscription.created' }))
    expect(exported.map(({ eventId }) => eventId)).toEqual(['evt_2'])
  })
})
