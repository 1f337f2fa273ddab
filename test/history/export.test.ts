import { expect, it } from 'vitest'
import { exportEvents } from '../../src/history/export.js'
import { insertEvents } from '../../src/store/events.js'
import { newEvent, subscriptionEvent } from '../store/sample-events.js'
import { everyEvent, numberedEvents, storeOf } from '../store/stored-events.js'

const LATE = newEvent(subscriptionEvent({ id: 'evt_late' }))

it('an export goes through more events than one step, all of them once', async () => {
  const db = await storeOf(numberedEvents(1_203))
  const progress: (readonly [number, number])[] = []
  const bodies: string[] = []
  for await (const exported of exportEvents(db, everyEvent(), (...at) => progress.push(at))) {
    if ('line' in exported) bodies.push(JSON.parse(exported.line).bodyBase64)
  }
  expect(bodies).toEqual(numberedEvents(1_203).map(({ body }) => body?.toString('base64')))
  expect(progress).toEqual([
    [500, 1_203],
    [1_000, 1_203],
    [1_203, 1_203],
  ])
})

it('an export ends at the event that was the newest when it began', async () => {
  const db = await storeOf(numberedEvents(700))
  let lines = 0
  for await (const _ of exportEvents(db, everyEvent(), () => {})) {
    if (lines === 0) await db.transaction().execute((trx) => insertEvents(trx, [LATE]))
    lines += 1
  }
  expect(lines).toBe(700)
})
