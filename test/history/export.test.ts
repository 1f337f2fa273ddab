import type { Kysely } from 'kysely'
import { expect, it } from 'vitest'
import { type ExportPage, readExportPage } from '../../src/history/export.js'
import { insertEvents } from '../../src/store/events.js'
import type { Database } from '../../src/store/schema.js'
import { paymentEvent, subscriptionEvent } from '../entitlements/events.js'
import { everyEvent, newEvent, numberedEvents, storeOf } from '../store/events.js'

const LATE = newEvent(subscriptionEvent({ id: 'evt_late' }))

/** All pages of an export; `between`: what happens after each. */
async function pagesOf(db: Kysely<Database>, between = async () => {}): Promise<readonly ExportPage[]> {
  const pages: ExportPage[] = []
  do {
    pages.push(await readExportPage(db, everyEvent(), pages.at(-1) ?? null))
    await between()
  } while (Number(pages.at(-1)?.reached) < Number(pages.at(-1)?.newest))
  return pages
}

it('an export goes through more events than one step, all of them once', async () => {
  const pages = await pagesOf(await storeOf(numberedEvents(1_203)))
  const bodies = pages.flatMap(({ lines }) => lines.map((line) => JSON.parse(line).bodyBase64))
  expect(bodies).toEqual(numberedEvents(1_203).map(({ body }) => body?.toString('base64')))
  expect(pages.at(-1)).toMatchObject({ reached: 1_203, newest: 1_203 })
})

it('an export goes on where a page ended because it was large, and ends at the event that was the newest when it began', async () => {
  const large = Array.from({ length: 200 }, (_, n) =>
    newEvent(paymentEvent({ id: `evt_${n}`, paymentId: `pay_${n}` }), { body: 'x'.repeat(40_000) }),
  )
  const db = await storeOf(large)
  let isLate = false
  const pages = await pagesOf(db, async () => {
    if (!isLate) await db.transaction().execute((trx) => insertEvents(trx, [LATE]))
    isLate = true
  })
  expect(pages.length).toBeGreaterThan(2)
  expect(pages.flatMap(({ lines }) => lines)).toHaveLength(200)
})
