import type { Kysely } from 'kysely'
import { describe, expect, it } from 'vitest'
import {
  forgetJoinLinks,
  isJoinLinkUsed,
  keepJoinLink,
  type NewJoinLink,
  takeJoinLink,
} from '../../src/store/join-links.js'
import type { Database } from '../../src/store/schema.js'
import { temporaryStore } from './temporary-store.js'

const NOON = Date.parse('2026-03-01T12:00:00.000Z')
const DAY_MS = 86_400_000
const HASH = 'a'.repeat(64)
const OTHER_HASH = 'b'.repeat(64)
const LINK = { sha256: HASH, environment: 'live', customerId: 'cus_1', expiresAt: NOON + DAY_MS } as const

describe.each(['token', 'invite'] as const)('a link of the kind %s', (kind) => {
  const taken = (db: Kysely<Database>, accountId: string, { sha256 = HASH, at = NOON } = {}) =>
    db.transaction().execute((trx) => takeJoinLink(trx, { kind, sha256, accountId, at }))
  const kept = async (...links: readonly Omit<NewJoinLink, 'kind'>[]) => {
    const db = await temporaryStore()
    for (const link of links)
      await db.transaction().execute((trx) => keepJoinLink(trx, { kind, ...link }, NOON))
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
    await db.transaction().execute((trx) => keepJoinLink(trx, { kind, ...next }, after))
    expect(await taken(db, '1', { at: NOON })).toBeNull()
    expect(await taken(db, '1', { sha256: OTHER_HASH })).not.toBeNull()
  })
})

describe('an invite', () => {
  const invite = { kind: 'invite', sha256: HASH } as const

  it('is known to be used only once somebody has', async () => {
    const db = await temporaryStore()
    await db.transaction().execute((trx) => keepJoinLink(trx, { ...LINK, ...invite }, NOON))
    expect(await isJoinLinkUsed(db, invite)).toBe(false)
    expect(await isJoinLinkUsed(db, { ...invite, sha256: OTHER_HASH })).toBe(false)
    await db.transaction().execute((trx) => takeJoinLink(trx, { ...invite, accountId: '1', at: NOON }))
    expect(await isJoinLinkUsed(db, invite)).toBe(true)
  })

  it('links nobody as a token', async () => {
    const db = await temporaryStore()
    await db.transaction().execute((trx) => keepJoinLink(trx, { ...LINK, ...invite }, NOON))
    const use = { ...invite, kind: 'token', accountId: '1', at: NOON } as const
    expect(await db.transaction().execute((trx) => takeJoinLink(trx, use))).toBeNull()
  })
})
