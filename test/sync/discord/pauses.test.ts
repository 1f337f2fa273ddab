import { expect, it } from 'vitest'
import { createPauses } from '../../../src/sync/discord/calls.js'

const NOW = Date.UTC(2026, 0, 5)
const BUCKET = '/guilds/1100000000000000010/members/:id'

it('keeps the longest of the waits that answers told, whichever came last', () => {
  let now = NOW
  const pauses = createPauses(() => now)

  expect(pauses.limited(BUCKET, NOW + 5_000)).toMatchObject({ notBefore: NOW + 5_000, scope: 'target' })
  expect(pauses.limited(BUCKET, NOW + 3_000)).toMatchObject({ notBefore: NOW + 5_000, scope: 'target' })
  now = NOW + 4_999
  expect(() => pauses.check(BUCKET)).toThrow(expect.objectContaining({ notBefore: NOW + 5_000 }))
  now = NOW + 5_000
  pauses.check(BUCKET)
  expect(pauses.limited(BUCKET, NOW + 6_000)).toMatchObject({ notBefore: NOW + 6_000 })
})
