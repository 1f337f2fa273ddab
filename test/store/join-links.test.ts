import type { Kysely } from 'kysely'
import { describe, expect, it } from 'vitest'
import { isInviteUsed, keepInvite, takeInvite } from '../../src/store/invites.js'
import { forgetJoinLinks } from '../../src/store/join-links.js'
import { keepLinkToken, takeLinkToken } from '../../src/store/link-tokens.js'
import type { Database } from '../../src/store/schema.js'
import { temporaryStore } from './temporary-store.js'

const NOON = Date.parse('2026-03-01T12:00:00.000Z')
const DAY_MS = 86_400_000
const HASH = 'a'.repeat(64)
const OTHER_HASH = 'b'.repeat(64)
const LINK = { sha256: HASH, environment: 'live', customerId: 'cus_1', expiresAt: NOON + DAY_MS } as const

const KINDS = [
  ['a token', keepLinkToken, takeLinkToken],
  ['an invite', keepInvite, takeInvite],
] as const

describe.each(KINDS)('%s', (_, keep, take) => {
  const taken = (db: Kysely<Database>, accountId: string, { sha256 = HASH, at = NOON } = {}) =>
    db.transaction().execute((trx) => take(trx, { sha256, accountId, at }))
  const kept = async (...links: readonly Parameters<typeof keep>[1][]) => {
    const db = await temporaryStore()
    for (const link of links) await db.transaction().execute((trx) => keep(trx, link, NOON))
    return db
  }

  it('leads to its customer, in its environment', async () => {
    const db = await kept(LINK, { ...LINK, sha256: OTHER_HASH, environment: 'sandbox', customerId: 'cus_2' })
    expect(await taken(db, '1')).toEqual({ environment: 'live', customerId: 'cus_1' })
    expect(await taken(db, '1', { sha256: OTHER_HASH })).toEqual({
      environment: 'sandbox',
      customerId: 'cus_2',
    })
  })

  it('leads nobody but the first account there, and that one again', async () => {
    const db = await kept(LINK)
    await taken(db, '1')
    expect(await taken(db, '2')).toBeNull()
    expect(await taken(db, '1')).toEqual({ environment: 'live', customerId: 'cus_1' })
  })

  it('leads nowhere from its end on', async () => {
    const db = await kept(LINK)
    expect(await taken(db, '1', { at: LINK.expiresAt })).toBeNull()
    expect(await taken(db, '1', { at: LINK.expiresAt - 1 })).not.toBeNull()
  })

  it('leads nowhere once its customer is forgotten, in that environment', async () => {
    const db = await kept(
      LINK,
      { ...LINK, sha256: OTHER_HASH, environment: 'sandbox' },
      { ...LINK, sha256: 'c'.repeat(64), customerId: 'cus_2' },
    )
    await db.transaction().execute((trx) => forgetJoinLinks(trx, 'live', 'cus_1'))
    expect(await taken(db, '1')).toBeNull()
    expect(await taken(db, '1', { sha256: OTHER_HASH })).not.toBeNull()
    expect(await taken(db, '1', { sha256: 'c'.repeat(64) })).not.toBeNull()
  })

  it('is not kept for good', async () => {
    const db = await kept(LINK)
    const after = LINK.expiresAt + 7 * DAY_MS + 1
    const next = { ...LINK, sha256: OTHER_HASH, expiresAt: after + DAY_MS }
    await db.transaction().execute((trx) => keep(trx, next, after))
    expect(await taken(db, '1', { at: NOON })).toBeNull()
    expect(await taken(db, '1', { sha256: OTHER_HASH })).not.toBeNull()
  })
})

describe('an invite', () => {
  it('is known to be used only once somebody has', async () => {
    const db = await temporaryStore()
    await db.transaction().execute((trx) => keepInvite(trx, LINK, NOON))
    expect([await isInviteUsed(db, HASH), await isInviteUsed(db, OTHER_HASH)]).toEqual([false, false])
    await db.transaction().execute((trx) => takeInvite(trx, { sha256: HASH, accountId: '1', at: NOON }))
    expect(await isInviteUsed(db, HASH)).toBe(true)
  })
})
