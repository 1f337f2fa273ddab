import { appendFileSync, readFileSync, statSync } from 'node:fs'
import { expect, it } from 'vitest'
import { erasureListOf, listErasures, readErasureList } from '../../src/people/erasure-list.js'
import { byHand } from '../entitlements/events.js'
import { temporaryFile } from '../store/temporary-store.js'

const act = (n: number) => ({
  ...byHand('manual.erased', n, { id: `man_${n}`, productId: null }),
  customerId: `cus_${n}`,
  environment: 'live' as const,
})

const customersOn = (list: string) => readErasureList(list)?.erasures.map(({ customerId }) => customerId)

it('holds everybody once, in order, for its owner alone, and nobody where there is no file', () => {
  const list = erasureListOf(temporaryFile())
  listErasures(list, [])
  expect(readErasureList(list)).toBeNull()
  listErasures(list, [act(1), act(2)])
  listErasures(list, [act(2), act(3)])
  expect(customersOn(list)).toEqual(['cus_1', 'cus_2', 'cus_3'])
  expect(statSync(list).mode & 0o777).toBe(0o600)
})

it('goes on after a line that a crash cut off, which it counts', () => {
  const list = erasureListOf(temporaryFile())
  listErasures(list, [act(1)])
  appendFileSync(list, readFileSync(list).subarray(0, 30))
  expect(readErasureList(list)).toMatchObject({ unreadable: 1 })
  listErasures(list, [act(2)])
  expect(customersOn(list)).toEqual(['cus_1', 'cus_2'])
  expect(readErasureList(list)).toMatchObject({ unreadable: 1 })
})

it('counts lines that say something else', () => {
  const list = erasureListOf(temporaryFile())
  listErasures(list, [act(1)])
  appendFileSync(list, 'garbage\n{}\n[]\nnull\n\n')
  expect(readErasureList(list)).toMatchObject({ erasures: [{ customerId: 'cus_1' }], unreadable: 4 })
})
