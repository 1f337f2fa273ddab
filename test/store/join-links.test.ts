import { expect, it } from 'vitest'
import { forgetJoinLinks, keepJoinLink, type NewJoinLink, takeJoinLink } from '../../src/store/join-links.js'
import { temporaryStore } from './temporary-store.js'

/* That a link leads its first follower to its customer for its time is proved with the messenger itself. */

const NOON = Date.parse('2026-03-01T12:00:00.000Z')
const DAY_MS = 86_400_000
const LINK = { environment: 'live', customerId: 'cus_1', expiresAt: NOON + DAY_MS } as const

async function storeWith(...links: readonly NewJoinLink[]) {
  const db = await temporaryStore()
  const keep = (link: NewJoinLink, at: number) =>
    db.transaction().execute((trx) => keepJoinLink(trx, link, at))
  for (const link of links) await keep(link, NOON)
  const taken = (kind: NewJoinLink['kind'], sha256: string) =>
    db.transaction().execute((trx) => takeJoinLink(trx, { kind, sha256, accountId: '1', at: NOON }))
  return { db, keep, taken }
}

it.each(['token', 'invite'] as const)('forgetting a customer forgets the %s of nobody else', async (kind) => {
  const { db, taken } = await storeWith(
    { ...LINK, kind, sha256: 'a' },
    { ...LINK, kind, sha256: 'b', environment: 'sandbox' },
    { ...LINK, kind, sha256: 'c', customerId: 'cus_2' },
  )
  await db.transaction().execute((trx) => forgetJoinLinks(trx, 'live', 'cus_1'))
  expect(await taken(kind, 'a')).toBeNull()
  expect(await taken(kind, 'b')).toEqual({ environment: 'sandbox', customerId: 'cus_1' })
  expect(await taken(kind, 'c')).toEqual({ environment: 'live', customerId: 'cus_2' })
})

it('a link is not kept for good', async () => {
  const { keep, taken } = await storeWith({ ...LINK, kind: 'token', sha256: 'a' })
  const after = LINK.expiresAt + 7 * DAY_MS + 1
  await keep({ ...LINK, kind: 'token', sha256: 'b', expiresAt: after + DAY_MS }, after)
  expect([await taken('token', 'a'), await taken('token', 'b')]).toEqual([null, expect.anything()])
})

it('an invite links nobody as a token', async () => {
  const { taken } = await storeWith({ ...LINK, kind: 'invite', sha256: 'a' })
  expect(await taken('token', 'a')).toBeNull()
})

it.each(['token', 'invite'] as const)(
  'an account is not noted beside an erased customer by the %s of theirs',
  async (kind) => {
    const { db, taken } = await storeWith(
      { ...LINK, kind, sha256: 'a' },
      { ...LINK, kind, sha256: 'b', environment: 'sandbox' },
    )
    const row = {
      environment: 'live',
      customer_id: 'cus_1',
      event_id: 'man_1',
      erased_at: NOON,
      was_known: 0,
    } as const
    await db
      .insertInto('erasures')
      .values({ ...row, finished_at: null })
      .execute()
    expect(await taken(kind, 'a')).toBeNull()
    expect(await taken(kind, 'b')).toEqual({ environment: 'sandbox', customerId: 'cus_1' })
    const noted = await db.selectFrom('join_links').select(['sha256', 'used_by']).orderBy('sha256').execute()
    expect(noted).toEqual([
      { sha256: 'a', used_by: null },
      { sha256: 'b', used_by: '1' },
    ])
  },
)
