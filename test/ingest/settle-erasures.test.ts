import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { recordErasuresOf } from '../../src/ingest/settle-erasures.js'
import { loadDoubt } from '../../src/store/erasure-doubt.js'
import {
  appendDoubt,
  appendErasures,
  erasureFileOf,
  type RecordedErasure,
  readDoubt,
  readErasures,
} from '../../src/store/erasure-file.js'
import { open, temporaryFile } from '../store/temporary-store.js'
import { NOW, recordedErasure, settleStore } from './settled-erasures.js'

const EARLIER = NOW - 1_000
const ADA = recordedErasure(1)

/** A stored database, of which a list tells that these were erased, and since when it may lack some. */
async function settledStore(erasures: readonly RecordedErasure[], doubt: number | null): Promise<string> {
  const file = temporaryFile()
  if (doubt !== null) appendDoubt(erasureFileOf(file), doubt)
  appendErasures(erasureFileOf(file), erasures)
  await settleStore(file)
  return file
}

const doubtIn = (file: string) => loadDoubt(open(file, true))

it('writes down first that some may be missing, so that what is begun then never passes for a whole list', async () => {
  const file = await settledStore([ADA], EARLIER)
  const list = erasureFileOf(temporaryFile())
  await recordErasuresOf(file, list, NOW)
  const [first = ''] = readFileSync(list, 'utf8').split('\n')
  expect(JSON.parse(first)).toEqual({ mayLackErasuresBefore: '2026-03-01T12:00:00.000Z' })
  expect(readErasures(list)).toMatchObject([{ customerId: ADA.customerId }])
})

it.each<[string, (list: string) => void]>([
  ['no list', () => {}],
  ['a damaged one', (list) => appendErasures(list, [ADA])],
])('takes the word of a database that is not in doubt, beside %s', async (_which, make) => {
  const file = await settledStore([ADA], null)
  const list = erasureFileOf(temporaryFile())
  make(list)
  if (existsSync(list)) writeFileSync(list, 'garbage\n')
  await recordErasuresOf(file, list, NOW)
  expect([readDoubt(list), readErasures(list).length]).toEqual([null, 1])
})

it('is in doubt beside no list where there was no database, or none that can be read', async () => {
  const file = await settledStore([], null)
  writeFileSync(file, 'damaged')
  for (const before of [null, file]) {
    const list = erasureFileOf(temporaryFile())
    await recordErasuresOf(before, list, NOW)
    expect(readDoubt(list)).toBe(NOW)
  }
})

it('keeps a doubt in the database, and writes it down again where the list is lost', async () => {
  const file = await settledStore([ADA], EARLIER)
  expect(await doubtIn(file)).toBe(EARLIER)
  rmSync(erasureFileOf(file))
  await settleStore(file)
  expect(readDoubt(erasureFileOf(file))).toBe(EARLIER)
})

it('ends a doubt once the list is whole', async () => {
  const file = await settledStore([ADA], EARLIER)
  rmSync(erasureFileOf(file))
  appendErasures(erasureFileOf(file), [ADA])
  await settleStore(file)
  expect([await doubtIn(file), readDoubt(erasureFileOf(file))]).toEqual([null, null])
})
