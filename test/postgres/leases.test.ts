import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { openPostgresStore } from '../../src/store/postgres/store.js'
import { eventually } from '../setup/eventually.js'
import { openStoreAt, postgresAt } from '../world.js'
import { storeAt } from './lease-store.js'
import { openWay, urlBy } from './way.js'

describe('a lease', () => {
  it('is held by one, and keeps a holder who was stopped for a while from writing', async () => {
    const file = 'a lease'
    const [one, other] = [await storeAt(file, 'test'), await storeAt(file, 'test')]
    const outcome = await one.lease.during(one.own, async (fenced) => {
      expect(await other.lease.during(other.own, async () => 'both')).toBeNull()
      const write = () =>
        fenced.transaction().execute((trx) => sql`insert into settings values ('written', 'x')`.execute(trx))
      // What others find once this one has stood still for too long.
      await sql`update settings set value = split_part(value, ' ', 1) || ' 1' where key = 'lease.test'`.execute(
        fenced,
      )
      expect(await other.lease.during(other.own, () => write().catch(({ message }: Error) => message))).toBe(
        'Another instance has taken this over.',
      )
      return 'ended'
    })
    expect(outcome).toBe('ended')
    const { rows } = await sql`select key from settings where key in ('lease.test', 'written')`.execute(
      one.reader,
    )
    expect(rows).toEqual([])
    await Promise.all([one.close(), other.close()])
  })

  it('ends for a holder that cannot renew it before another one takes it', async () => {
    const file = 'a lease that ends'
    const [one, other] = [await storeAt(file, 'test'), await storeAt(file, 'test')]
    const changes: boolean[] = []
    const taken = Promise.withResolvers<void>()
    /** Whether the first holder still thought that it had the lease. */
    const takenOver = Promise.withResolvers<boolean>()
    one.lease.keep(() => {
      changes.push(one.lease.isHeld())
      taken.resolve()
    })
    await taken.promise
    other.lease.keep(() => takenOver.resolve(one.lease.isHeld()))
    await one.close()
    expect(await takenOver.promise).toBe(false)
    await eventually(() => expect(changes).toEqual([true, false]))
    await Promise.all([one.lease.release(), other.lease.release()])
    await other.close()
  })

  it('is given back by one that was released while it took it', async () => {
    const file = 'a lease taken late'
    const { lease, close } = await storeAt(file, 'test')
    const db = await openStoreAt(file, { readOnly: false })
    const { promise: hindered, resolve: letGo } = Promise.withResolvers<void>()
    const { promise: hinders, resolve: hinder } = Promise.withResolvers<void>()
    const hindering = db.transaction().execute(async (trx) => {
      await sql`insert into settings values ('lease.test', 'another 1')`.execute(trx)
      hinder()
      await hindered
      await sql`delete from settings where key = 'lease.test'`.execute(trx)
    })
    await hinders
    lease.keep(() => {})
    await eventually(async () => {
      const { rows } = await sql`select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`.execute(db)
      expect(rows).toHaveLength(1)
    })
    const released = lease.release()
    letGo()
    await Promise.all([hindering, released])
    await close()
    const { rows } = await sql`select from settings where key = 'lease.test'`.execute(db)
    expect(rows).toEqual([])
    await db.destroy()
  })

  it('cannot be asked for while the database is away, which whoever asks is told', async () => {
    const options = await postgresAt('a lease out of reach')
    const way = await openWay(() => Number(new URL(options.url).port))
    const url = urlBy(way, options.url)
    const store = await openPostgresStore({ ...options, url }, DOCUMENTED_POLICY, (db) => ({
      close: () => db.destroy(),
    }))
    const lease = store.lease('test')
    expect(await lease.isTaken()).toBe(false)
    way.become('cut')
    await expect(lease.isTaken()).rejects.toMatchObject({ code: 'store_unavailable' })
    await store.close()
  })

  it('is taken from a holder that has not renewed it for 15 s, whatever end the database shows', async () => {
    const takeFrom = async (value: string) => {
      const file = `a lease of ${value}`
      const store = await storeAt(file, 'test')
      const db = await openStoreAt(file, { readOnly: false })
      await sql`insert into settings values ('lease.test', ${value})`.execute(db)
      const from = performance.now()
      const taken = Promise.withResolvers<void>()
      store.lease.keep(taken.resolve)
      await taken.promise
      expect(performance.now() - from).toBeGreaterThan(15_000)
      expect(store.lease.isHeld()).toBe(true)
      await store.lease.release()
      await Promise.all([db.destroy(), store.close()])
    }
    // As after a step of the clock of the database, ahead or back.
    await Promise.all([takeFrom('another 1'), takeFrom('another 9999999999999')])
  })
})
