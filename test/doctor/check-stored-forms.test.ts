import { expect, it } from 'vitest'
import { checkStoredForms } from '../../src/doctor/stored.js'
import { packHistory } from '../../src/entitlements/history.js'
import { insertEvents } from '../../src/store/events.js'
import { paymentEvent } from '../entitlements/events.js'
import { newEvent } from '../store/events.js'
import { temporaryStore } from '../store/temporary-store.js'

/** More than are read at once. */
const EVENTS = 501

const SOURCE = { environment: 'live', kind: 'payment', customer_id: 'cus_1', newest_at: 0 } as const
const STATE = JSON.stringify({ intervals: [] })
const HISTORY = packHistory([])

/** A store of many events and two sources. */
async function patient() {
  const db = await temporaryStore()
  const events = Array.from({ length: EVENTS }, (_, n) => newEvent(paymentEvent({ id: `evt_${n}` })))
  const sources = ['pay_1', 'pay_2'].map((id) => ({
    ...SOURCE,
    source_id: id,
    state: STATE,
    history: HISTORY,
  }))
  await db.transaction().execute((trx) => insertEvents(trx, events))
  await db.insertInto('sources').values(sources).execute()
  return db
}

it('the doctor finds that all stored forms can be read', async () => {
  const db = await patient()
  await db.updateTable('events').set({ normalized: null }).where('event_id', '=', 'evt_7').execute()
  expect(await checkStoredForms(db)).toEqual([
    { level: 'ok', what: 'stored forms', detail: 'all can be read, of 500 events and 2 sources', todo: null },
  ])
})

it.each(['{"half":', 'null', '{}'])(
  'the doctor names the events of which is stored %s',
  async (normalized) => {
    const db = await patient()
    const broken = ['evt_500', 'evt_3', 'evt_1', 'evt_2']
    await db.updateTable('events').set({ normalized }).where('event_id', 'in', broken).execute()
    expect(await checkStoredForms(db)).toEqual([
      {
        level: 'fail',
        what: 'stored forms',
        detail: '4 of 501 events can’t be read (evt_1 in live, evt_2 in live, evt_3 in live, and 1 more)',
        todo: 'restore a backup; `latchkey replay` reads them anew where their bodies are there',
      },
    ])
  },
)

it.each([
  { state: '{"half":' },
  { state: '{}' },
  { history: '{"half":' },
  { history: `${HISTORY}\n7\tevt_7` },
])('the doctor names the source of which is stored %j', async (stored) => {
  const db = await patient()
  await db.updateTable('sources').set(stored).where('source_id', '=', 'pay_2').execute()
  expect(await checkStoredForms(db)).toEqual([
    {
      level: 'fail',
      what: 'stored forms',
      detail: '1 of 2 sources can’t be read (payment pay_2 in live)',
      todo: 'fold them anew: `latchkey rebuild`',
    },
  ])
})

it('the doctor names sources before events, since a replay needs the state of a source', async () => {
  const db = await patient()
  await db.updateTable('events').set({ normalized: '{' }).where('event_id', '=', 'evt_7').execute()
  await db.updateTable('sources').set({ state: '{' }).where('source_id', '=', 'pay_2').execute()
  expect(await checkStoredForms(db)).toMatchObject([
    { detail: '1 of 2 sources can’t be read (payment pay_2 in live)' },
    { detail: '1 of 501 events can’t be read (evt_7 in live)' },
  ])
})
