import { rmSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { checkErasureList } from '../../../src/cli/doctor/check-erasure-list.js'
import { appendDoubt, appendErasures, erasureFileOf } from '../../../src/store/erasure-file.js'
import { NOW, recordedErasure, settleStore } from '../../ingest/settled-erasures.js'
import { open, temporaryFile } from '../../store/temporary-store.js'

/** A database that knows of one erasure, and so does the list beside it. */
async function settledStore() {
  const file = temporaryFile()
  appendErasures(erasureFileOf(file), [recordedErasure(1)])
  await settleStore(file)
  return { file, list: erasureFileOf(file), db: open(file, true) }
}

describe('the doctor', () => {
  it('says nothing of a list and a database that tell the same', async () => {
    const { file, db } = await settledStore()
    expect(await checkErasureList(db, file, false)).toEqual([])
  })

  it.each([
    ['restart', true],
    ['start', false],
  ])(
    'says how many on the list the database does not know, and to %s the daemon',
    async (start, isServed) => {
      const { file, list, db } = await settledStore()
      appendErasures(list, [recordedErasure(2), recordedErasure(3)])
      expect(await checkErasureList(db, file, isServed)).toMatchObject([
        {
          level: 'warn',
          detail: `2 erasures on ${list} unknown to the database`,
          todo: `${start} the daemon, which erases them again`,
        },
      ])
    },
  )

  it('says that the list lacks whom the database knows', async () => {
    const { file, list, db } = await settledStore()
    rmSync(list)
    expect(await checkErasureList(db, file, false)).toMatchObject([
      { level: 'warn', detail: `1 erasure missing in ${list}` },
    ])
  })

  it('says from when on erasures are known, whether the list tells of it or, where it is lost, the database', async () => {
    const { file, list, db } = await settledStore()
    appendDoubt(list, NOW)
    const told = {
      level: 'warn',
      detail: expect.stringContaining('erased before 2026-03-01T12:00:00.000Z may be back'),
      todo: `erase them again, and then remove the lines with mayLackErasuresBefore from ${list}`,
    }
    expect(await checkErasureList(db, file, false)).toMatchObject([told])
    await settleStore(file)
    rmSync(list)
    expect(await checkErasureList(db, file, false)).toMatchObject([
      told,
      { detail: `1 erasure missing in ${list}` },
    ])
  })
})
