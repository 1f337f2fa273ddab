import { expect, it } from 'vitest'
import type { FeaturedAnswer } from '../../src/entitlements/features.js'
import { createKeptAnswers } from '../../src/handlers/kept-answers.js'

const NOON = Date.parse('2026-03-01T12:00:00.000Z')

function answer(customerId: string, told: Partial<FeaturedAnswer> = {}): FeaturedAnswer {
  const unknown = { validUntil: null, cursor: '7', blocked: false, entitlements: [], features: [] } as const
  return { customerId, environment: 'live', asOf: NOON, ...unknown, ...told }
}

it('puts the instant in its place, whatever an id says', () => {
  const kept = createKeptAnswers()
  const odd = 'cus_"asOf":null,"asOf":""'
  kept.keep(answer(odd))
  expect(JSON.parse(kept.find('live', odd, NOON)?.text(NOON) ?? '')).toMatchObject({
    customerId: odd,
    asOf: '2026-03-01T12:00:00.000Z',
    entitlements: [],
  })
})

it('finds nothing that was to be forgotten', () => {
  const kept = createKeptAnswers()
  for (const id of ['cus_1', 'cus_2']) kept.keep(answer(id))
  kept.forget('sandbox', ['cus_1'])
  expect(kept.find('live', 'cus_1', NOON)).not.toBeNull()
  kept.forget('live', ['cus_1', 'cus_3'])
  expect(kept.find('live', 'cus_1', NOON)).toBeNull()
  expect(kept.find('live', 'cus_2', NOON)).not.toBeNull()
  kept.forgetAll()
  expect(kept.find('live', 'cus_2', NOON)).toBeNull()
})

it('keeps nothing while the store is changed at large, well or not', async () => {
  const kept = createKeptAnswers()
  kept.keep(answer('cus_1'))
  await kept.clearedDuring(async () => {
    expect(kept.find('live', 'cus_1', NOON)).toBeNull()
    kept.keep(answer('cus_1'))
    expect(kept.find('live', 'cus_1', NOON)).toBeNull()
  })
  const failing = kept.clearedDuring(async () => {
    throw new Error('the change failed')
  })
  await expect(failing).rejects.toThrow('the change failed')
  kept.keep(answer('cus_1'))
  expect(kept.find('live', 'cus_1', NOON)).not.toBeNull()
})

it('keeps only so many: the one that was kept first goes first', () => {
  const kept = createKeptAnswers(2)
  for (const id of ['cus_1', 'cus_2', 'cus_3']) kept.keep(answer(id))
  const found = ['cus_1', 'cus_2', 'cus_3'].filter((id) => kept.find('live', id, NOON) !== null)
  expect(found).toEqual(['cus_2', 'cus_3'])
})
