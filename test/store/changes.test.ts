import { describe, expect, it } from 'vitest'
import { NEVER_GRANTED } from '../../src/entitlements/entitlement.js'
import {
  appendChanges,
  changeLogEpoch,
  formatCursor,
  latestCursor,
  loadChanges,
  type NewChange,
  numberIn,
  startChangeLogEpoch,
} from '../../src/store/changes.js'
import { NOON } from './events.js'
import { temporaryStore } from './temporary-store.js'

const CHANGE: NewChange = {
  at: NOON,
  environment: 'live',
  customerId: 'cus_1',
  productId: 'pro_1',
  before: NEVER_GRANTED,
  after: { active: true, status: 'active', since: NOON, until: null },
  cause: { kind: 'event', eventId: 'evt_1' },
}

it('reads a change that was written before a field was added to what is shown', async () => {
  const db = await temporaryStore()
  const { until, ...after } = CHANGE.after
  const older = { ...CHANGE, after: after as typeof CHANGE.after }
  await db.transaction().execute((trx) => appendChanges(trx, [older]))
  expect(await loadChanges(db, 'live', 0, 1)).toEqual([{ ...CHANGE, cursor: 1 }])
})

describe('a cursor of the change log', () => {
  it('is never given twice, even when the newest changes are gone', async () => {
    const db = await temporaryStore()
    expect(await latestCursor(db)).toBe(0)
    await db.transaction().execute((trx) => appendChanges(trx, [CHANGE, CHANGE]))
    await db.deleteFrom('changes').execute()
    await db.transaction().execute((trx) => appendChanges(trx, [CHANGE]))
    expect(await latestCursor(db)).toBe(3)
  })

  it('leads back to its number in the epoch that told it, and nowhere in any other', async () => {
    const db = await temporaryStore()
    const epochs = [await changeLogEpoch(db)]
    for (let i = 0; i < 2; i += 1) {
      await db.transaction().execute(startChangeLogEpoch)
      epochs.push(await changeLogEpoch(db))
    }
    const [first = '', second = ''] = epochs
    expect(new Set(epochs).size).toBe(3)
    expect([numberIn(first, formatCursor(first, 17)), numberIn(first, formatCursor(first, 0))]).toEqual([
      17, 0,
    ])
    expect(numberIn(second, formatCursor(first, 17))).toBeNull()
  })

  it.each(['', '17', '0.', '.17', '0.x', '0.-1', '0.1e3', '0.17 ', '0.9999999999999999', '1.17'])(
    'is not %j',
    (text) => {
      expect(numberIn('0', text)).toBeNull()
    },
  )
})
