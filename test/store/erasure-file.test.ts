import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import {
  appendDoubt,
  appendErasures,
  countUnreadable,
  erasureFileOf,
  isWholeList,
  readDoubt,
  readErasures,
} from '../../src/store/erasure-file.js'
import { temporaryFile } from './temporary-store.js'

const erasure = (n: number) =>
  ({
    environment: 'live',
    customerId: `cus_${n}`,
    eventId: `man_${n}`,
    at: n,
    actor: 'a',
    reason: null,
    fingerprints: [{ key: 'k', known: ['f'] }],
  }) as const

it('holds every erasure in order, for its owner alone, and none where there is no file', () => {
  const file = erasureFileOf(temporaryFile())
  expect(readErasures(file)).toEqual([])
  appendErasures(file, [])
  expect(readErasures(file)).toEqual([])
  appendErasures(file, [erasure(1), erasure(2)])
  appendErasures(file, [erasure(3)])
  expect(readErasures(file)).toEqual([erasure(1), erasure(2), erasure(3)])
  expect(statSync(file).mode & 0o777).toBe(0o600)
})

it('leaves out a line that a crash cut off, and goes on after it', () => {
  const file = erasureFileOf(temporaryFile())
  appendErasures(file, [erasure(1)])
  appendFileSync(file, JSON.stringify(erasure(2)).slice(0, 30))
  expect(readErasures(file)).toEqual([erasure(1)])
  appendErasures(file, [erasure(3)])
  expect(readErasures(file)).toEqual([erasure(1), erasure(3)])
  expect(readFileSync(file, 'utf8').split('\n')).toHaveLength(4)
})

it('reads the lines of a program that kept no fingerprints', () => {
  const file = erasureFileOf(temporaryFile())
  const { fingerprints, ...earlier } = erasure(1)
  appendErasures(file, [erasure(2)])
  appendFileSync(file, `${JSON.stringify(earlier)}\n`)
  expect(fingerprints).toHaveLength(1)
  expect(readErasures(file)).toEqual([erasure(2), { ...earlier, fingerprints: [] }])
})

it('counts the lines that tell of nobody, a cut off one among them', () => {
  const file = erasureFileOf(temporaryFile())
  expect(countUnreadable(file)).toBeNull()
  appendErasures(file, [erasure(1)])
  expect(countUnreadable(file)).toBe(0)
  appendFileSync(file, 'garbage\n7\n{"customerId":')
  expect(countUnreadable(file)).toBe(3)
  expect(readErasures(file)).toEqual([erasure(1)])
})

it('is whole where it is there, every line tells of an erasure, and none says that some may be missing', () => {
  const file = erasureFileOf(temporaryFile())
  expect([isWholeList(file), readDoubt(file)]).toEqual([false, null])
  appendErasures(file, [erasure(1)])
  expect([isWholeList(file), readDoubt(file)]).toEqual([true, null])
  appendFileSync(file, 'garbage\n')
  expect([isWholeList(file), readDoubt(file)]).toEqual([false, null])
})

it('says from when on it is whole, in a line of its own, whatever is written down after that', () => {
  const file = erasureFileOf(temporaryFile())
  appendDoubt(file, 2_000)
  appendDoubt(file, 1_000)
  appendErasures(file, [erasure(1)])
  expect([isWholeList(file), readDoubt(file), countUnreadable(file)]).toEqual([false, 2_000, 0])
  expect(readErasures(file)).toEqual([erasure(1)])
  const lines = readFileSync(file, 'utf8').split('\n')
  writeFileSync(file, lines.filter((line) => !line.includes('mayLackErasuresBefore')).join('\n'))
  expect([isWholeList(file), readDoubt(file)]).toEqual([true, null])
})
