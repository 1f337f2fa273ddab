import type { Kysely } from 'kysely'
import { onTestFinished, vi } from 'vitest'
import { createWriter } from '../../../src/daemon/writer.js'
import { CHANGE_TYPES } from '../../../src/entitlements/entitlement.js'
import { createLogger } from '../../../src/log.js'
import {
  appendChanges,
  ensureChangeLogEpoch,
  type NewChange,
  startChangeLogEpoch,
} from '../../../src/store/changes.js'
import type { Database } from '../../../src/store/schema.js'
import { createOutages } from '../../../src/sync/outages.js'
import type { WebhookAddress } from '../../../src/sync/outbound/message.js'
import { createOutbound } from '../../../src/sync/outbound/outbound.js'
import { createOutgoing } from '../../../src/sync/outgoing.js'
import type { WriteSync } from '../../../src/sync/writes.js'
import { emptyStores } from '../../store/temporary-store.js'
import { SECRET } from './receiver.js'

export const NOON = Date.parse('2026-03-01T12:00:00.000Z')

type Address = Partial<WebhookAddress> & Pick<WebhookAddress, 'url'>

/** The address that is told of everything live, unless said otherwise. */
export function addressOf({ url, ...others }: Address): WebhookAddress {
  const { id, secrets, types, environments, disabled } = { ...ALL, ...others }
  return { id, url, secrets, types, environments, disabled }
}

const ALL = {
  id: 'default',
  secrets: [SECRET],
  types: CHANGE_TYPES,
  environments: ['live'],
  disabled: false,
} as const

export interface OutboundStore {
  readonly db: Kysely<Database>
  readonly writeSync: WriteSync
  /** Everything that was logged. */
  readonly logged: () => string
  /** Has these happen, and whoever tells them look. */
  change(...changes: readonly Partial<NewChange>[]): Promise<void>
  /** What a restore does to the change log. */
  restore(): Promise<void>
  pause(isPaused: boolean): void
  /** Has calls held back from now on, or no longer, as they leave. */
  holdBack(isHeldBack: boolean): void
  /** How many calls were held back. */
  readonly heldBack: () => number
  /** Starts to tell these addresses, as a daemon would. */
  tell(...addresses: readonly Address[]): ReturnType<typeof createOutbound>
}

/** A store with a change log, and a clock that stands still at noon: the library that verifies reads it too. */
export async function outboundStore(): Promise<OutboundStore> {
  // The date alone: timers run as they do.
  vi.setSystemTime(NOON)
  onTestFinished(() => void vi.useRealTimers())
  const stores = await emptyStores(2)
  onTestFinished(async () => void (await Promise.all(stores.map((store) => store.destroy()))))
  const [writing, db] = stores as [Kysely<Database>, Kysely<Database>]
  await ensureChangeLogEpoch(writing)
  const { writeSync } = createWriter({ db: writing, clock: Date.now, erasureList: null })
  const lines: string[] = []
  const log = createLogger('debug', { write: (line) => void lines.push(line) })
  let isPaused = false
  let isHeldBack = false
  let heldBack = 0
  const outgoing = createOutgoing(() => {
    if (isHeldBack) heldBack += 1
    return !isHeldBack
  })
  let running: Awaited<ReturnType<typeof createOutbound>> | null = null
  return {
    db,
    writeSync,
    logged: () => lines.join(''),
    async change(...changes) {
      const all = changes.map((one) => ({ ...CHANGE, ...one }))
      await writing.transaction().execute((trx) => appendChanges(trx, all))
      running?.wake()
    },
    restore: () => writing.transaction().execute(startChangeLogEpoch),
    pause(next) {
      isPaused = next
    },
    holdBack(next) {
      isHeldBack = next
    },
    heldBack: () => heldBack,
    async tell(...addresses) {
      const outages = createOutages(Date.now, log)
      const outbound = await createOutbound({
        db,
        writeSync,
        addresses: () => addresses.map(addressOf),
        featuresOf: (productId) => [`feature of ${productId}`],
        isPaused: async () => isPaused,
        clock: Date.now,
        random: () => 1,
        reachOf: (id) => outages.of(`webhook:${id}`),
        outgoing,
        log,
      })
      onTestFinished(() => outbound.stop())
      running = outbound
      return outbound
    },
  }
}

export const CHANGE: NewChange = {
  at: NOON - 1_000,
  environment: 'live',
  customerId: 'cus_1',
  productId: 'pro_1',
  before: { active: false, status: 'none', since: null, until: null },
  after: { active: true, status: 'ending', since: NOON - 2_000, until: NOON + 60_000 },
  cause: { kind: 'event', eventId: 'evt_1' },
}

/** Lets time pass, and has what is due looked for. */
export function pass(outbound: Awaited<ReturnType<typeof createOutbound>>, ms: number): void {
  vi.setSystemTime(Date.now() + ms)
  outbound.wake()
}
