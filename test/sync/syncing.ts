import { type Kysely, sql } from 'kysely'
import { pino } from 'pino'
import { expect, onTestFinished } from 'vitest'
import { createWriter } from '../../src/daemon/writer.js'
import type { Environment } from '../../src/provider/event.js'
import { appendChanges, ensureChangeLogEpoch, logEnd } from '../../src/store/changes.js'
import { loadCustomers, saveCustomers } from '../../src/store/customers.js'
import { saveEntitlements } from '../../src/store/entitlements.js'
import type { Database } from '../../src/store/schema.js'
import { createOutages } from '../../src/sync/outages.js'
import { createSync, type Sync, type SyncDeps } from '../../src/sync/sync.js'
import type { DiscordTarget, SyncedProduct, TelegramTarget } from '../../src/sync/target.js'
import type { WriteSync } from '../../src/sync/writes.js'
import { eventually } from '../setup/eventually.js'
import { emptyStores } from '../store/temporary-store.js'
import { ENGINE } from '../world.js'
import { type Community, createCommunity } from './community.js'

export const NOON = Date.parse('2026-03-01T12:00:00.000Z')
export const HOUR = 3_600_000

export const GOLD: DiscordTarget = { adapter: 'discord', guildId: '1', roleId: '10', environment: 'live' }
export const SILVER: DiscordTarget = { adapter: 'discord', guildId: '1', roleId: '20', environment: 'live' }
export const GROUP: TelegramTarget = { adapter: 'telegram', groupId: '-100', environment: 'live' }
export const PRODUCTS: readonly SyncedProduct[] = [
  { id: 'pro_gold', targets: [GOLD] },
  { id: 'pro_platinum', targets: [GOLD] },
  { id: 'pro_silver', targets: [SILVER] },
]

export interface Access {
  readonly customerId: string
  readonly active: boolean
  readonly productId?: string
  readonly environment?: Environment
}

export interface Syncing {
  readonly db: Kysely<Database>
  readonly reader: Kysely<Database>
  readonly community: Community
  readonly sync: Sync
  readonly writeSync: WriteSync
  /** Everything logged so far, a line each. */
  readonly logged: readonly Record<string, unknown>[]
  readonly clock: () => number
  pass(ms: number): void
  /** Writes access and its change in one transaction, as ingest does. */
  access(...changes: readonly Access[]): Promise<void>
  /** Links accounts, as ingest does; null: they have none any more. */
  link(customerId: string, accountId: string | null, environment?: Environment): Promise<void>
  /** Another one on the same store and the same community, as after a restart. */
  start(deps?: Partial<SyncDeps>): Promise<Sync>
}

export interface SyncingOptions {
  readonly community?: Community
  readonly deps?: Partial<SyncDeps>
}

/** Sync on a real store and a community in memory, at a clock that moves when it is told to. */
export async function syncing({ community: given, deps = {} }: SyncingOptions = {}): Promise<Syncing> {
  const stores = await emptyStores(2)
  onTestFinished(async () => void (await Promise.all(stores.map((store) => store.destroy()))))
  const [db, reader] = stores as [Kysely<Database>, Kysely<Database>]
  // No write waits for the disk: what is stored is asked of this process alone.
  if (ENGINE === 'sqlite') await sql`pragma synchronous = off`.execute(db)
  await ensureChangeLogEpoch(db)
  let now = NOON
  const clock = () => now
  const { writeSync } = createWriter({ db, clock, erasureList: null })
  const community = given ?? createCommunity({ clock })
  const logged: Record<string, unknown>[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void logged.push(JSON.parse(line)) })

  let running: Sync | null = null
  async function start(more: Partial<SyncDeps> = {}): Promise<Sync> {
    await running?.stop()
    const sync = await createSync({
      db: reader,
      writeSync,
      products: PRODUCTS,
      platforms: [community],
      removals: () => ({ atMost: 20, percent: 10 }),
      clock,
      random: () => 0.5,
      outages: createOutages(clock, log),
      log,
      ...deps,
      ...more,
    })
    running = sync
    onTestFinished(() => sync.stop())
    return sync
  }

  return {
    db,
    reader,
    community,
    sync: await start(),
    writeSync,
    logged,
    clock,
    pass: (ms) => {
      now += ms
    },
    async access(...changes) {
      await db.transaction().execute((trx) => writeAccess(trx, changes, now))
      // Other tests write to other databases of the server: from now on, none of their transactions hides the change.
      await eventually(async () =>
        expect(await logEnd(db)).toMatchObject({ isBehind: false, mayGoBack: false }),
      )
    },
    link: (customerId, accountId, environment = 'live') =>
      db.transaction().execute(async (trx) => {
        const stored = await loadCustomers(trx, environment, [customerId])
        const told = { value: accountId ?? '', at: now, by: 'evt_link' }
        const facts = accountId === null ? {} : { communityId: told, messengerId: told }
        await saveCustomers(trx, environment, stored, [{ customerId, facts, deletedAt: null }])
      }),
    start,
  }
}

async function writeAccess(
  trx: Parameters<typeof appendChanges>[0],
  changes: readonly Access[],
  now: number,
): Promise<void> {
  for (const { customerId, active, productId = 'pro_gold', environment = 'live' } of changes) {
    const was = { active: !active, status: active ? 'none' : 'active', since: null, until: null } as const
    const is = { active, status: active ? 'active' : 'expired', since: null, until: null } as const
    await saveEntitlements(trx, environment, [{ customerId, productId, ...is, nextChangeAt: null }])
    const cause = { kind: 'event', eventId: 'evt_1' } as const
    await appendChanges(trx, [{ at: now, environment, customerId, productId, before: was, after: is, cause }])
  }
}
