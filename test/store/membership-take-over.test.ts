import { copyFileSync, existsSync, linkSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Kysely } from 'kysely'
import { describe, expect, it } from 'vitest'
import { MIGRATIONS } from '../../migrations/index.js'
import { backUp } from '../../src/store/backup.js'
import { settleChangeLogEpoch } from '../../src/store/change-cursor.js'
import { loadMemberships, membershipKey } from '../../src/store/membership.js'
import { absorb, takeSteps } from '../../src/store/membership-writes.js'
import { migrate } from '../../src/store/migrate.js'
import { keepMovedGroup, loadMovedGroups } from '../../src/store/moved-groups.js'
import { loadOwedUnbans, oweUnban } from '../../src/store/owed-unbans.js'
import { restore } from '../../src/store/restore.js'
import type { Database } from '../../src/store/schema.js'
import { loadSyncMarks } from '../../src/store/sync-marks.js'
import { cutInHalf } from './filled-store.js'
import { open, temporaryFile, temporaryStore } from './temporary-store.js'

const NOON = Date.UTC(2026, 2, 1, 12)
const AT = { now: NOON, eraseAgain: async () => 0 }
const TARGET = { environment: 'live', target: 'discord:1:10' } as const

/** Gives the role to these, as a daemon does. */
async function give(db: Kysely<Database>, accountIds: readonly string[]): Promise<void> {
  const keys = accountIds.map((accountId) => ({ ...TARGET, accountId }))
  const desires = keys.map((key) => ({ ...key, customerId: `cus_${key.accountId}`, desired: true }))
  await db.transaction().execute(async (trx) => {
    await absorb(trx, { desires, cursor: '0.1', marks: [] }, NOON)
    await takeSteps(
      trx,
      keys.map((key) => ({ key, step: { kind: 'begin', action: 'give' } })),
      NOON,
    )
    await takeSteps(
      trx,
      keys.map((key) => ({ key, step: { kind: 'gave' } })),
      NOON,
    )
  })
}

/** A store, and a backup from before what `since` does to it. */
async function backedUp(since: (db: Kysely<Database>) => Promise<void>) {
  const file = temporaryFile()
  const db = await temporaryStore(file)
  await settleChangeLogEpoch(db)
  const backup = join(dirname(file), 'backup.db')
  await backUp(file, backup, { overwrite: false })
  await since(db)
  return { file, backup, db }
}

async function stored(file: string, accountId: string) {
  const key = { ...TARGET, accountId }
  return (await loadMemberships(open(file, true), [key])).get(membershipKey(key))
}

describe('a restored store', () => {
  it('knows whom a role was given after the backup, and has each of them looked at again', async () => {
    const { file, backup, db } = await backedUp((since) => give(since, ['a', 'b']))
    await db.destroy()
    expect(await restore(file, backup, AT)).toMatchObject({ membershipsKept: 2 })
    const given = { given: true, applied: 'member', customerId: 'cus_b' }
    expect(await stored(file, 'b')).toMatchObject(given)
    const marks = (await loadSyncMarks(open(file, true), 10)).map(({ customerId }) => customerId)
    expect(marks.sort()).toEqual(['cus_a', 'cus_b'])
  })

  it('knows it from the log of a killed daemon, too, after an interrupted restore as well', async () => {
    const { file, backup } = await backedUp((since) => give(since, ['a']))
    for (const isInterrupted of [false, true]) {
      const killed = temporaryFile()
      await temporaryStore(killed).then((db) => db.destroy())
      for (const suffix of ['', '-wal', '-shm']) copyFileSync(`${file}${suffix}`, `${killed}${suffix}`)
      if (isInterrupted) {
        const kept = `${killed}.before-restore-20260201T000000.000Z`
        linkSync(killed, kept)
        renameSync(`${killed}-wal`, `${kept}-wal`)
      }
      expect(await restore(killed, backup, AT)).toMatchObject({ membershipsKept: 1 })
      expect(await stored(killed, 'a')).toMatchObject({ given: true })
    }
  })

  it('takes over any number of them', async () => {
    const accountIds = Array.from({ length: 2_001 }, (_, n) => `account ${n}`)
    const { file, backup, db } = await backedUp((since) => give(since, accountIds))
    await db.destroy()
    expect(await restore(file, backup, AT)).toMatchObject({ membershipsKept: 2_001 })
    expect(await stored(file, 'account 2000')).toMatchObject({ given: true })
  })

  it('knows where groups went, and which bans are to be lifted', async () => {
    const { file, backup, db } = await backedUp((since) =>
      since.transaction().execute(async (trx) => {
        await keepMovedGroup(trx, { groupId: '-1', movedTo: '-1001' })
        await oweUnban(trx, { groupId: '-1', accountId: '7' })
      }),
    )
    await db.destroy()
    await restore(file, backup, AT)
    const restored = open(file, true)
    expect(await loadMovedGroups(restored)).toEqual(new Map([['-1', '-1001']]))
    expect(await loadOwedUnbans(restored)).toEqual([{ groupId: '-1', accountId: '7' }])
  })

  it('knows what the backup knows of those of whom the replaced one knows nothing', async () => {
    const { file, backup, db } = await backedUp((since) => give(since, ['a']))
    await backUp(file, backup, { overwrite: true })
    await db.deleteFrom('memberships').execute()
    await db.destroy()
    expect(await restore(file, backup, AT)).toMatchObject({ membershipsKept: 0 })
    expect(await stored(file, 'a')).toMatchObject({ given: true })
  })

  it('has nothing to take over from one that is older than memberships', async () => {
    const { backup } = await backedUp(async () => {})
    const file = temporaryFile()
    const older = open(file)
    await migrate(
      older,
      MIGRATIONS.filter(({ name }) => name < '0005'),
    )
    await older.destroy()
    expect(await restore(file, backup, AT)).toMatchObject({ membershipsKept: 0 })
  })

  it('says that it could take nothing over from one that is damaged, and stands', async () => {
    const { file, backup, db } = await backedUp((since) => give(since, ['a', 'b']))
    await db.destroy()
    cutInHalf(file)
    expect(await restore(file, backup, AT)).toMatchObject({ membershipsKept: null })
    expect(existsSync(file)).toBe(true)
    expect(await stored(file, 'a')).toBeUndefined()
  })
})
