import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { onTestFinished } from 'vitest'
import { createTelegram, type Telegram, type TelegramDeps } from '../../../src/daemon/telegram.js'
import { createWriter } from '../../../src/daemon/writer.js'
import { DOCUMENTED_POLICY } from '../../../src/entitlements/policy.js'
import type { Messenger } from '../../../src/handlers/telegram.js'
import type { ManualAct, Receipt } from '../../../src/ingest/delivery.js'
import { createLogger } from '../../../src/log.js'
import { createPerformAct, type PerformAct } from '../../../src/people/acts.js'
import { createErase } from '../../../src/people/erase.js'
import { type AccessQuery, readAccess } from '../../../src/store/access.js'
import { loadCustomers } from '../../../src/store/customers.js'
import { forgetJoinLinks } from '../../../src/store/join-links.js'
import { migrate } from '../../../src/store/migrate.js'
import { ensurePolicy } from '../../../src/store/settings.js'
import { createOutgoing } from '../../../src/sync/outgoing.js'
import type { Sync } from '../../../src/sync/sync.js'
import type { SyncedProduct, TelegramTarget } from '../../../src/sync/target.js'
import type { WriteSync } from '../../../src/sync/writes.js'
import { BOT_TOKEN, type LocalTelegram } from '../../platforms/telegram-server.js'
import { temporaryFile } from '../../store/temporary-store.js'
import { ENGINE, openStoreAt } from '../../world.js'

export const GROUP_ID = -1001234567890
export const GOLD_GROUP: TelegramTarget = {
  adapter: 'telegram',
  groupId: String(GROUP_ID),
  environment: 'live',
}
export const PRODUCTS: readonly SyncedProduct[] = [{ id: 'pro_gold', targets: [GOLD_GROUP] }]

export interface ConnectedTelegram extends Omit<Telegram, 'messenger'>, Messenger {
  readonly file: string
  /** Who asked to join, as the core was told. */
  readonly asked: readonly string[]
  /** How often the core was told to check again. */
  readonly rechecks: () => number
  /** Every line logged so far. */
  readonly logged: () => string
  readonly performAct: PerformAct
  /** The messenger account that is linked to a customer now. */
  readonly accountOf: (customerId: string) => Promise<string | undefined>
  readonly forget: (customerId: string) => Promise<void>
  readonly erase: (customerId: string) => Promise<unknown>
  readonly pause: () => Promise<void>
  readonly close: () => Promise<void>
}

export interface ConnectOptions {
  readonly file?: string
  readonly products?: readonly SyncedProduct[]
  readonly botToken?: string
  readonly clock?: () => number
  readonly accountAsked?: Sync['accountAsked']
  readonly isLeader?: () => boolean
  /** How the messenger writes. */
  readonly writing?: (own: WriteSync) => WriteSync
}

/** The messenger's part of the daemon on a store of its own; nobody may join unless told otherwise. */
export async function connect(
  server: LocalTelegram,
  options: ConnectOptions = {},
): Promise<ConnectedTelegram> {
  const { file = temporaryFile(), products = PRODUCTS, clock = Date.now } = options
  const { botToken = BOT_TOKEN, accountAsked = async () => 'decline', isLeader = () => true } = options
  const lines: string[] = []
  const asked: string[] = []
  let rechecks = 0
  if (ENGINE === 'sqlite') mkdirSync(dirname(file), { recursive: true })
  const [db, writing] = [
    await openStoreAt(file, { readOnly: false }),
    await openStoreAt(file, { readOnly: false }),
  ]
  await migrate(db)
  await ensurePolicy(db, DOCUMENTED_POLICY)
  const writer = createWriter({ db: writing, clock, erasureList: null })
  const answerAccess = (query: AccessQuery) => readAccess(db, clock, query)
  const write = async (act: ManualAct) => (await writer.writeBatch([act])).receipts[0] as Receipt
  const performAct = createPerformAct({ db, write, readAccess: answerAccess, clock })
  const finish = () => writer.finishErasures()
  const erase = createErase({ db, write, finish })
  const config = { botToken, apiUrl: `${server.url}/` }
  const deps: TelegramDeps = {
    products: () => products,
    db,
    writeSync: options.writing?.(writer.writeSync) ?? writer.writeSync,
    readAccess: answerAccess,
    performAct,
    accountAsked: (target, accountId) => {
      asked.push(accountId)
      return accountAsked(target, accountId)
    },
    recheck: () => {
      rechecks += 1
    },
    clock,
    isLeader,
    outgoing: createOutgoing(isLeader),
    random: () => 0,
    log: createLogger('trace', { write: (line) => void lines.push(line) }),
  }
  const telegram = createTelegram(deps, config, { answered: () => {}, failed: () => {} })
  let isClosed = false
  const close = async (): Promise<void> => {
    if (isClosed) return
    isClosed = true
    await telegram.stop()
    await writing.destroy()
    await db.destroy()
  }
  onTestFinished(close)
  return {
    ...telegram,
    ...telegram.messenger,
    file,
    asked,
    rechecks: () => rechecks,
    logged: () => lines.join(''),
    performAct,
    accountOf: async (customerId) =>
      (await loadCustomers(db, 'live', [customerId])).get(customerId)?.facts.messengerId?.value,
    forget: (customerId) => db.transaction().execute((trx) => forgetJoinLinks(trx, 'live', customerId)),
    erase: (customerId) => erase({ environment: 'live', customerId, actor: 'test', reason: null }),
    pause: async () => {
      await writer.writeSync('setSyncPaused', true)
    },
    close,
  }
}

/** Grants the product of the group, so that its customer may join. */
export async function grantGold({ performAct }: ConnectedTelegram, customerId: string): Promise<void> {
  await performAct({
    environment: 'live',
    customerId,
    act: { type: 'manual.granted', productId: 'pro_gold', until: null },
    actor: 'test',
    reason: 'a test',
    idempotencyKey: null,
  })
}
