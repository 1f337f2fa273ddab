import type { Insertable, Kysely } from 'kysely'
import { describe, expect, it } from 'vitest'
import { storedSync } from '../../src/daemon/stored-sync.js'
import { checkSync } from '../../src/doctor/sync.js'
import { CHANGE_TYPES } from '../../src/entitlements/entitlement.js'
import { syncStateJson } from '../../src/handlers/sync.js'
import { queueMessages, recordOutcomes } from '../../src/store/message-queue.js'
import type { Database, MembershipsTable } from '../../src/store/schema.js'
import { setSyncPaused } from '../../src/store/sync-state.js'
import { load } from '../config/config-file.js'
import { temporaryFile, temporaryStore } from '../store/temporary-store.js'

const NOW = Date.parse('2026-03-20T12:00:00Z')
const HOUR = 3_600_000

const MEMBER: Omit<Insertable<MembershipsTable>, 'account_id'> = {
  environment: 'live',
  target: 'discord:1:2',
  customer_id: 'cus_1',
  desired: 1,
  desired_since: NOW - HOUR,
  applied: 'member',
  applied_at: NOW - HOUR,
  given: 1,
  state: 'settled',
  next_attempt_at: null,
}

/** A stopped store, whose product is followed by a role, and what the doctor finds of it. */
async function patient(sync: object = {}) {
  const file = temporaryFile()
  const db = await temporaryStore(file)
  const { config } = load({
    database: { url: `sqlite:${file}` },
    products: { pro_1: { targets: [{ adapter: 'discord', guildId: '1', roleId: '2' }] } },
    sync: { discord: { botToken: 'd' }, removals: { atMost: 0, percent: 0 }, ...sync },
  })
  const add = (...rows: readonly Partial<typeof MEMBER>[]) => {
    const values = rows.map((row, n) => ({ ...MEMBER, account_id: String(n), ...row }))
    return db.insertInto('memberships').values(values).execute()
  }
  return {
    db,
    add,
    check: async () => checkSync(syncStateJson(await storedSync(db, config, () => NOW).status()), NOW),
  }
}

/** Queues a change of access, as it happened so long ago; with what was answered since, if anything. */
async function queue(db: Kysely<Database>, age: number, error?: string, failed = false): Promise<void> {
  const snapshot = JSON.stringify({ active: true, status: 'active', since: null, until: null })
  const at = NOW - age
  const about = { at, environment: 'live', customer_id: `cus_${age}`, product_id: 'pro_1' } as const
  const change = {
    ...about,
    before: snapshot,
    after: snapshot,
    cause_kind: 'clock',
    cause_event_id: null,
  } as const
  await db.transaction().execute(async (trx) => {
    const all = { webhook: 'default', types: CHANGE_TYPES, environments: ['live' as const], limit: 10 }
    await queueMessages(trx, all, at)
    const added = trx.insertInto('changes').values(change).returning('cursor')
    const { cursor } = await added.executeTakeFirstOrThrow()
    await queueMessages(trx, all, at)
    if (error === undefined) return
    const result = failed
      ? ({ kind: 'failed', reason: 'gone', error } as const)
      : ({ kind: 'retry', error, firstAttemptAt: at, nextAttemptAt: NOW + HOUR } as const)
    const log = [{ at, status: 500, error: null, ms: 1 }] as const
    const key = { cursor, webhook: 'default', environment: 'live' } as const
    await recordOutcomes(trx, [{ ...key, queuedAt: at, customerId: `cus_${age}`, log, result }])
  })
}

describe('the doctor, of what follows access,', () => {
  it.each<[string, readonly Partial<typeof MEMBER>[], readonly object[]]>([
    [
      'that memberships are settled',
      [{}, {}, { state: 'due', applied: 'absent', next_attempt_at: NOW }],
      [{ level: 'ok', what: 'sync', detail: '1 target, 2 settled, 1 under way', todo: null }],
    ],
    [
      'nothing amiss in customers who have still to join',
      [{ state: 'waiting', applied: 'absent', error_code: 'member_not_in_guild' }],
      [
        {
          level: 'ok',
          detail: '1 target, 0 settled, 0 under way, 1 waiting for the customer to join',
          todo: null,
        },
      ],
    ],
    [
      'that somebody has to take out by hand whom no call can',
      [{ state: 'stuck', desired: 0, error_code: 'member_is_admin' }],
      [
        { level: 'ok' },
        { level: 'warn', what: 'sync parked', detail: '1 membership parked until somebody acts' },
      ],
    ],
    [
      'what is parked, and what waits beyond the bound',
      [
        { state: 'parked', applied: 'absent', error_code: 'member_missing' },
        { state: 'due', desired: 0, next_attempt_at: NOW },
      ],
      [
        { level: 'ok', what: 'sync', detail: '1 target, 0 settled, 0 under way' },
        { level: 'warn', what: 'sync parked', detail: '1 membership parked until somebody acts' },
        { level: 'warn', what: 'sync bound', detail: '1 removal above the bound, held for review' },
      ],
    ],
  ])('finds %s', async (_what, rows, findings) => {
    const { add, check } = await patient()
    await add(...rows)
    expect(await check()).toMatchObject(findings)
  })

  it('finds that it is paused, and nothing where nothing is configured', async () => {
    const { db, check } = await patient()
    await db.transaction().execute((trx) => setSyncPaused(trx, true, NOW))
    const detail = 'paused, 1 target, 0 settled, 0 under way'
    expect(await check()).toMatchObject([{ level: 'warn', what: 'sync', detail }])
    const nothing = await storedSync(await temporaryStore(), load({}).config, () => NOW).status()
    expect(checkSync(syncStateJson(nothing), NOW)).toEqual([])
  })

  it('finds how the outbound webhook is', async () => {
    const url = 'https://app.example/hooks?key=hidden'
    const { db, check } = await patient({ webhook: { url, secret: `whsec_${'A'.repeat(32)}` } })
    const webhook = async () => (await check()).filter(({ what }) => what === 'sync webhook:default')
    expect(await webhook()).toMatchObject([{ level: 'ok', detail: 'nothing to send' }])
    await queue(db, HOUR / 2)
    expect(await webhook()).toMatchObject([{ level: 'ok', detail: '1 waiting for 30m' }])
    await queue(db, 2 * HOUR, 'answered 500')
    const pending = '2 waiting for 2h, last error 2h ago: answered 500'
    expect(await webhook()).toMatchObject([{ level: 'warn', detail: pending, todo: 'check the receiver' }])
    await queue(db, 3 * HOUR, 'answered 410', true)
    const todo = 'fix the receiver, then `latchkey sync run --retry --target webhook:default`'
    const detail = '2 waiting for 2h, 1 failed, last error 3h ago: answered 410'
    expect(await webhook()).toMatchObject([{ level: 'warn', detail, todo }])
    expect(JSON.stringify(await check())).not.toContain('hidden')
  })
})
