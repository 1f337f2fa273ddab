import type { Kysely } from 'kysely'
import { describe, expect, it } from 'vitest'
import { createDeliveryWatch } from '../../src/operations/delivery-watch.js'
import { insertEvents, type NewEvent } from '../../src/store/events.js'
import type { Database } from '../../src/store/schema.js'
import { newEvent, paymentEvent } from '../store/sample-events.js'
import { temporaryStore } from '../store/temporary-store.js'

const MINUTE = 60_000
const DAY = 86_400_000
const START = Date.parse('2026-03-02T00:00:00Z')

async function store(db: Kysely<Database>, events: readonly NewEvent[]): Promise<void> {
  await db.transaction().execute((trx) => insertEvents(trx, events))
}

function arrived(endpoint: string, receivedAt: number, told: Partial<Omit<NewEvent, 'body'>> = {}): NewEvent {
  const eventId = `evt_${endpoint}_${receivedAt}`
  return newEvent(paymentEvent({ id: eventId }), { endpoint, receivedAt, ...told })
}

/** One every so often from the start. */
function steady(endpoint: string, every: number, count: number): NewEvent[] {
  return Array.from({ length: count }, (_, n) => arrived(endpoint, START + n * every))
}

describe('the watch over deliveries', () => {
  it('tells nothing of an empty store, and goes on from there', async () => {
    const db = await temporaryStore()
    const readGaps = createDeliveryWatch({ db, clock: () => START + MINUTE })
    expect(await readGaps()).toEqual(new Map())
    await store(db, [arrived('v3', START)])
    expect((await readGaps()).get('v3')).toMatchObject({ lastAt: START, current: MINUTE })
  })

  it('tells each endpoint apart', async () => {
    const db = await temporaryStore()
    await store(db, [...steady('v3', MINUTE, 30), arrived('legacy', START + 5)])
    const gaps = await createDeliveryWatch({ db, clock: () => START + 30 * MINUTE })()
    expect(gaps.get('v3')).toMatchObject({ lastAt: START + 29 * MINUTE, usualInterval: MINUTE })
    expect(gaps.get('legacy')).toMatchObject({ lastAt: START + 5, usualInterval: null })
  })

  it('takes no act by hand for a delivery', async () => {
    const db = await temporaryStore()
    await store(db, [arrived('manual', START), arrived('manual', START + 1, { headers: null })])
    const gaps = await createDeliveryWatch({ db, clock: () => START + 2 })()
    expect(gaps.get('manual')).toMatchObject({ lastAt: START })
  })

  it('takes in each arrival once, though several ask at the same time', async () => {
    const db = await temporaryStore()
    const readGaps = createDeliveryWatch({ db, clock: () => START + DAY })
    await store(db, [arrived('v3', START), arrived('v3', START + MINUTE)])
    await Promise.all([readGaps(), readGaps()])
    await store(db, [arrived('v3', START + 2 * MINUTE)])
    const [one, other] = await Promise.all([readGaps(), readGaps()])
    expect(one).toEqual(other)
    expect(one.get('v3')).toMatchObject({ lastAt: START + 2 * MINUTE, usualInterval: MINUTE })
  })

  it('looks back over days in a store of more events than are read, and sees how long nights are', async () => {
    const db = await temporaryStore()
    const day = (n: number) => steady('v3', 20_000, 1_000).map((event) => at(event, n * DAY))
    for (let n = 0; n < 9; n += 1) await store(db, day(n))
    const last = START + 8 * DAY + 999 * 20_000
    const night = DAY - 999 * 20_000
    const gap = (await createDeliveryWatch({ db, clock: () => last + night })()).get('v3')
    expect(gap).toMatchObject({ lastAt: last, usualInterval: 20_000, isUnusual: false })
    expect(gap?.unusualAfter).toBeGreaterThanOrEqual(2 * night)
    expect(gap?.unusualAfter).toBeLessThan(2 * (night + 60 * MINUTE))
  })

  it('keeps a quiet endpoint in sight beside a busy one', async () => {
    const db = await temporaryStore()
    let now = START + 10 * DAY
    const readGaps = createDeliveryWatch({ db, clock: () => now })
    await store(db, steady('quiet', 4 * 60 * MINUTE, 60))
    await readGaps()
    await store(db, steady('busy', MINUTE, 6_000))
    now = START + 12 * DAY
    expect((await readGaps()).get('quiet')).toMatchObject({ usualInterval: null, isUnusual: true })
  })
})

function at(event: NewEvent, later: number): NewEvent {
  const receivedAt = event.receivedAt + later
  return { ...event, receivedAt, eventId: `${event.eventId}_${receivedAt}` }
}
