/* What several processes on one database do about each other: hear of commits, and take turns by leases. */

import { randomUUID } from 'node:crypto'
import { type RawBuilder, sql } from 'kysely'
import pg from 'pg'
import { beside } from '../engine.js'
import type { Db, Tx } from '../schema.js'
import { getSetting } from '../settings.js'
import { connectionOf, withCode } from './connection.js'
import { openPostgres, type PostgresOptions } from './dialect.js'
import { CHANNEL } from './transactions.js'

const LISTEN_AGAIN_MS = 1_000

export interface CommitListener {
  /** Another process has committed; called after a loss of the connection, too, since some may have been missed. */
  onCommit(): void
  /** The database has gone, and did not come back at the first try. */
  lost(error: unknown): void
  /** It is back, so long after it had gone. */
  found(afterMs: number): void
}

/**
 * Listens for the commits of other processes, as long as it takes.
 * @param own what this process announces itself
 * @returns ends it
 */
export function hear(
  { url }: PostgresOptions,
  own: string,
  { onCommit, lost, found }: CommitListener,
): () => Promise<void> {
  let client: pg.Client | null = null
  let timer: NodeJS.Timeout | undefined
  let isStopped = false
  /** Since when there is no connection; null: there is one. */
  let goneSince: number | null = null
  let isLost = false

  async function listen(): Promise<void> {
    const next = new pg.Client({ ...connectionOf(url), application_name: 'latchkey' })
    client = next
    next.on('error', () => {})
    next.on('end', () => {
      goneSince ??= performance.now()
      if (!isStopped) timer = setTimeout(() => void listen(), LISTEN_AGAIN_MS)
    })
    next.on('notification', ({ payload }) => {
      if (payload !== own) onCommit()
    })
    try {
      await next.connect()
      await next.query(`listen "${CHANNEL}"`)
      if (isLost && goneSince !== null) found(performance.now() - goneSince)
      goneSince = null
      isLost = false
      onCommit()
    } catch (error) {
      if (!isLost && !isStopped) lost(withCode(error))
      isLost = true
      // A failed connection ends, too, and is tried again.
      await next.end().catch(() => {})
    }
  }

  void listen()
  return async () => {
    isStopped = true
    clearTimeout(timer)
    await client?.end().catch(() => {})
  }
}

/** Without a renewal for so long, another process may take over. */
const LEASE_MS = 15_000
/** Its holder ends it so much earlier: a call that is checked just before still leaves in time, though the process stalls. */
const MARGIN_MS = 3_000
const RENEW_MS = 4_000

const now = sql`(extract(epoch from clock_timestamp()) * 1000)::bigint`

/** Of a lease: by the clock of the database. */
const HAS_ENDED = sql`split_part(settings.value, ' ', 2)::bigint < ${now}`

/** The lease of the process that follows access. */
export const FOLLOWING = 'following'

/**
 * What one process has at a time. It is a setting with its holder and its end. All that its holder writes keeps the row
 * as it is, and taking it from the holder waits for that; renewing it does not.
 * @param db a writer that announces nothing
 */
export function createLease(db: Db, options: PostgresOptions, name: string) {
  const key = `lease.${name}`
  const holder = randomUUID()
  const isOurs = sql`settings.value like ${`${holder} %`}`
  let timer: NodeJS.Timeout | undefined
  let ending: NodeJS.Timeout | undefined
  /** By this process's own clock: one that was stopped for a while finds it moved on. */
  let heldUntil = 0
  const isHeld = () => performance.now() < heldUntil
  let look = () => {}
  let isReleased = false
  let claiming: Promise<unknown> = Promise.resolve()

  const value = sql`concat(${holder}::text, ' ', ${now} + ${LEASE_MS}::bigint)`

  /** @returns whether it is still ours */
  async function renewIn(trx: Tx): Promise<boolean> {
    const { rows } = await sql`
      update settings set value = ${value} where key = ${key} and ${isOurs} returning key`.execute(trx)
    return rows.length > 0
  }

  /** @returns whether it is ours from now on */
  async function takeIn(trx: Tx, isOver: RawBuilder<unknown>): Promise<boolean> {
    // Waits for what its holder is writing.
    await sql`select from settings where key = ${key} for update`.execute(trx)
    const { rows } = await sql`insert into settings (key, value) values (${key}, ${value})
      on conflict (key) do update set value = excluded.value where ${isOver} returning key`.execute(trx)
    return rows.length > 0
  }

  /** @param isOver of the lease of another */
  function claim(isOver: RawBuilder<unknown> = HAS_ENDED): Promise<boolean> {
    const claimed = claimNow(isOver)
    claiming = claimed.catch(() => {})
    return claimed
  }

  async function claimNow(isOver: RawBuilder<unknown>): Promise<boolean> {
    const from = performance.now()
    const isClaimed = await beside(db, async (trx) => (await renewIn(trx)) || (await takeIn(trx, isOver)))
    // It may have ended meanwhile, and what its holder does with it.
    look()
    heldUntil = isClaimed ? from + LEASE_MS - MARGIN_MS : 0
    clearTimeout(ending)
    // A timer may come a millisecond early, and would find it still held.
    if (isHeld()) ending = setTimeout(() => look(), heldUntil - performance.now() + 2)
    look()
    return isHeld()
  }

  /** As another process renewed it last, and since when we know it so. */
  let seen = { value: '', since: 0 }

  /** Takes it from a process that has not renewed it for so long by our own clock: that of the database may be set. */
  async function claimUnrenewed(): Promise<void> {
    const isUnrenewed = performance.now() >= seen.since + LEASE_MS
    if (await claim(isUnrenewed ? sql`settings.value = ${seen.value}` : sql`false`)) return
    const value = (await getSetting(db, key)) ?? ''
    if (value !== seen.value) seen = { value, since: performance.now() }
  }

  /** Whether any process has it. */
  async function isTaken(): Promise<boolean> {
    const { rows } = await sql`
      select 1 from settings where key = ${key} and split_part(value, ' ', 2)::bigint >= ${now}`.execute(db)
    return rows.length > 0
  }

  async function release(): Promise<void> {
    isReleased = true
    look = () => {}
    clearTimeout(timer)
    // It may be ours only then.
    await claiming
    clearTimeout(ending)
    if (heldUntil === 0) return
    heldUntil = 0
    // If that fails, it ends by itself.
    await sql`delete from settings where key = ${key} and ${isOurs}`.execute(db).catch(() => {})
  }

  /** Opens the database so that no transaction begins in it once another process has the lease. */
  const openFenced = (announcing: string) =>
    openPostgres(options, 'write', { announcing, holding: { lease: key, holder }, most: 2 })

  return {
    openFenced,
    isHeld,
    isTaken,
    /** Takes it as soon as nobody has it, and renews it; `changed` is called when it was taken or lost. */
    keep(changed: () => void): void {
      let wasHeld = false
      look = () => {
        if (isHeld() === wasHeld) return
        wasHeld = !wasHeld
        changed()
      }
      const renew = async (): Promise<void> => {
        // An unreachable database: it is ours until its end.
        await claimUnrenewed().catch(() => {})
        if (!isReleased) timer = setTimeout(() => void renew(), RENEW_MS)
      }
      timer = setTimeout(() => void renew())
    },
    /** Works while it has the lease; null: another process has it. */
    async during<Answer>(announcing: string, work: (db: Db) => Promise<Answer>): Promise<Answer | null> {
      if (!(await claim())) return null
      const renewing = setInterval(() => void claim().catch(() => {}), RENEW_MS)
      const fenced = openFenced(announcing)
      try {
        return await work(fenced)
      } finally {
        clearInterval(renewing)
        await fenced.destroy()
        await release()
      }
    },
    release,
  }
}
