import { describe, expect, it } from 'vitest'
import { changeLogEpoch, formatCursor, numberIn, startChangeLogEpoch } from '../../src/store/changes.js'
import { temporaryStore } from './temporary-store.js'

describe('a cursor of the change log', () => {
  it('leads back to its number in the epoch that told it', async () => {
    const epoch = await changeLogEpoch(await temporaryStore())
    expect(numberIn(epoch, formatCursor(epoch, 17))).toBe(17)
    expect(numberIn(epoch, formatCursor(epoch, 0))).toBe(0)
  })

  it('is unknown in the next epoch, and every epoch is another', async () => {
    const db = await temporaryStore()
    const epochs = [await changeLogEpoch(db)]
    for (let i = 0; i < 2; i += 1) {
      await db.transaction().execute(startChangeLogEpoch)
      epochs.push(await changeLogEpoch(db))
    }
    expect(new Set(epochs).size).toBe(3)
    expect(numberIn(epochs[1] ?? '', formatCursor(epochs[0] ?? '', 17))).toBeNull()
  })

  it.each(['', '17', '0.', '.17', '0.x', '0.-1', '0.1e3', '0.17 ', '0.9999999999999999', '1.17'])(
    'is not %j',
    (text) => {
      expect(numberIn('0', text)).toBeNull()
    },
  )
})
