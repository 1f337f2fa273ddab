import { createHash } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Kysely } from 'kysely'
import { pino } from 'pino'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { newBackfill, wholePlan } from '../../src/backfill/run.js'
import { createWriter } from '../../src/daemon/writer.js'
import { catalogOf } from '../../src/entitlements/features.js'
import type { AccessAnswer, Entitlement } from '../../src/entitlements/model.js'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { API_SCOPES, type ApiKey, UNLIMITED } from '../../src/handlers/api-key.js'
import { bytesBeingRead } from '../../src/handlers/body.js'
import { createKeptAnswers } from '../../src/handlers/kept-answers.js'
import { type ListenersDeps, startListeners } from '../../src/handlers/listeners.js'
import type { SyncControl } from '../../src/handlers/sync/deps.js'
import type { Delivery } from '../../src/ingest/delivery.js'
import { createMetrics } from '../../src/operations/metrics.js'
import { createPulse } from '../../src/operations/pulse.js'
import type { Endpoint } from '../../src/provider/endpoint.js'
import { signBody } from '../../src/provider/signature.js'
import type { Job, Replay } from '../../src/recompute/job.js'
import type { AccessQuery } from '../../src/store/access.js'
import { unavailable } from '../../src/store/engine.js'
import { migrate } from '../../src/store/migrate.js'
import type { Database } from '../../src/store/schema.js'
import { ensurePolicy } from '../../src/store/settings.js'
import { openDatabase } from '../../src/store/sqlite/dialect.js'
import { grantOf } from '../ingest/wire.js'
import { createFolder } from '../setup/create-folder.js'

type AtEnd = (end: () => Promise<void>) => void

export const FREE_PORT = { host: '127.0.0.1', port: 0 }
export const NOW = Date.parse('2026-03-01T12:00:00.000Z')
export const NOW_SECONDS = NOW / 1000
export const SECRET = 'whsec_front'
export const OLD_SECRET = 'whsec_rotated_out'

export const LIVE: Endpoint = {
  name: 'v3',
  environment: 'live',
  secrets: [
    { secret: SECRET, notAfter: null },
    { secret: OLD_SECRET, notAfter: NOW - 1 },
  ],
  toleranceSeconds: 300,
  aheadAtMostMs: 86_400_000,
}

/** A rebuild or a comparison that has just begun. */
const UNDER_WAY: Job = {
  id: 'job_1',
  kind: 'rebuild',
  number: 1,
  plan: { mode: 'apply', scope: ['live', 'sandbox'], endpoints: null, policy: null },
  startedAt: NOW,
  progress: { reached: 0, total: 1, perSecond: null, remainingSeconds: null },
  outcome: { state: 'running' },
}

export const GOLD: Entitlement = {
  productId: 'pro_gold',
  active: true,
  status: 'ending',
  since: NOW - 1000,
  until: NOW + 60_000,
  pastDue: false,
  sources: [
    {
      id: 'sub_1',
      kind: 'subscription',
      active: true,
      since: NOW - 1000,
      until: NOW + 60_000,
      rail: 'card',
      pastDue: false,
      cancelAtPeriodEnd: true,
      periodEnd: NOW + 60_000,
      reason: 'canceled',
      eventId: 'evt_1',
    },
  ],
}

/** A key named after its text, which is the whole secret of a test. */
export function apiKey(text: string, rights: Partial<ApiKey> = {}): ApiKey {
  const sha256 = createHash('sha256').update(text).digest('hex')
  return { name: text, sha256, scopes: ['read'], environments: ['live'], ...UNLIMITED, ...rights }
}

export function bearer(text: string): Record<string, string> {
  return { authorization: `Bearer ${text}` }
}

/** The headers of a delivery that is authentic, unless told otherwise. */
export function signed(
  body: string | Buffer,
  { secret = SECRET, timestamp = String(NOW_SECONDS) } = {},
): Record<string, string> {
  return {
    'x-webhook-event': 'payment.succeeded',
    'x-webhook-timestamp': timestamp,
    'x-webhook-signature': signBody(secret, timestamp, Buffer.from(body)),
  }
}

export function answerTo({ environment, customerId, at }: AccessQuery): AccessAnswer {
  return {
    customerId,
    environment,
    asOf: at ?? NOW,
    validUntil: NOW + 60_000,
    cursor: 'c_7',
    blocked: false,
    entitlements: customerId === 'cus_gold' ? [GOLD] : [],
  }
}

/** A store with so many customers, `cus_1` and so on: each has `pro_1` for good, by the event `evt_1` and so on. */
export async function frontStore(atEnd: AtEnd = onTestFinished, customers = 1): Promise<Kysely<Database>> {
  return openStored(await bytesOfStore(customers), atEnd)
}

/** A store without tables, so that no question is answered: as the daemon's reader says so, unless told otherwise. */
export function unreadableStore(
  atEnd: AtEnd = onTestFinished,
  errorFor: (error: unknown) => unknown = (error) => unavailable('read', error),
): Kysely<Database> {
  return openStored(Buffer.alloc(0), atEnd, errorFor)
}

function openStored(bytes: Buffer, atEnd: AtEnd, errorFor?: (error: unknown) => unknown): Kysely<Database> {
  const folder = createFolder()
  const file = join(folder, 'latchkey.db')
  writeFileSync(file, bytes)
  const db = openDatabase(file, { readOnly: false }, errorFor)
  atEnd(async () => {
    await db.destroy()
    rmSync(folder, { recursive: true })
  })
  return db
}

/** By the number of customers: to make one takes longer than most tests. */
const stores = new Map<number, Buffer>()

async function bytesOfStore(customers: number): Promise<Buffer> {
  const known = stores.get(customers)
  if (known !== undefined) return known
  const folder = createFolder()
  const file = join(folder, 'latchkey.db')
  try {
    const db = openDatabase(file, { readOnly: false })
    await migrate(db)
    await ensurePolicy(db, DOCUMENTED_POLICY)
    const { writeBatch } = createWriter({ db, clock: () => NOW, erasureList: null })
    await writeBatch(Array.from({ length: customers }, (_, i) => grantOf(i + 1)))
    // The last one to close moves everything from the write-ahead log into the file.
    await db.destroy()
    const bytes = readFileSync(file)
    stores.set(customers, bytes)
    return bytes
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Nothing follows access. */
export const SYNC_OFF: SyncControl = {
  targets: async () => [],
  webhooks: () => [],
  replay: async () => 0,
  test: async () => null,
  status: async () => ({
    paused: false,
    platforms: [],
    targets: [],
    unconfirmed: 0,
    sweptAt: null,
    checked: null,
    webhooks: [],
    unreachable: [],
    leads: true,
  }),
  memberships: async () => ({ items: [], next: null }),
  explain: async () => [],
  plan: async () => ({ paused: false, hash: null, calls: [] }),
  isStopping: () => false,
  run: async () => ({
    paused: false,
    given: 0,
    taken: 0,
    unchanged: 0,
    failed: 0,
    waiting: 0,
    parked: 0,
    unconfirmed: 0,
    stopped: 0,
    left: 0,
    messages: 0,
    leads: true,
  }),
  check: async () => [],
  pause: async () => {},
  resume: async () => {},
}

/** Nothing was computed again so far. */
const NO_JOBS: ListenersDeps['jobs'] = {
  startRebuild: async () => UNDER_WAY,
  startComparison: async () => UNDER_WAY,
  last: async () => null,
  startReplay: () => {
    throw new Error('nothing is replayed here')
  },
  replays: async () => [],
  findReplay: async () => null,
  stopReplay: async () => null,
}

const NO_BACKFILLS: ListenersDeps['backfills'] = {
  start: () => Promise.reject(new Error('none is started here')),
  list: async () => [],
  find: async () => null,
  stop: async () => null,
}

/** What a front was asked, told and made to say, as it happened. */
export interface Front {
  readonly url: string
  readonly webhooksUrl: string
  readonly metricsUrl: string
  readonly stop: () => Promise<void>
  readonly deliveries: Delivery[]
  readonly questions: AccessQuery[]
  readonly logged: Record<string, unknown>[]
}

type Seen = Pick<Front, 'deliveries' | 'questions' | 'logged'>

/** A store that is read, and plain functions for all that is done. */
export async function frontDeps(
  { deliveries, questions, logged }: Seen,
  atEnd: AtEnd = onTestFinished,
): Promise<ListenersDeps> {
  return {
    db: await frontStore(atEnd),
    socketFile: null,
    addresses: { ...FREE_PORT, trustProxy: 0, webhooks: null, metrics: null },
    endpoints: () => [LIVE],
    reference: 'externalRef',
    keptAnswers: createKeptAnswers(),
    catalog: () => catalogOf([]),
    changeStream: { open: async () => (res) => res.end() },
    apiKeys: () => [apiKey('other'), apiKey('app')],
    keyUsed: () => {},
    ingest: async (delivery) => {
      deliveries.push(delivery)
      return { id: 'evt_1', disposition: 'applied' }
    },
    performAct: async (request) => ({ eventId: 'man_1', access: answerTo({ ...request, at: null }) }),
    previewAct: async (request) => ({
      eventId: 'man_1',
      access: answerTo({ ...request, at: null }),
      accounts: null,
    }),
    previewCalls: async () => ({ gives: 0, takes: 0, sample: [] }),
    erase: async ({ environment, customerId }) => ({
      environment,
      customerId,
      eventId: 'man_1',
      erasedAt: NOW,
      wasKnown: true,
      finishedAt: NOW,
    }),
    readAccess: async (question) => {
      questions.push(question)
      return answerTo(question)
    },
    policyIn: () => DOCUMENTED_POLICY,
    configuredPolicy: () => DOCUMENTED_POLICY,
    examine: async () => [],
    importLines: async (lines) => lines.map(() => ({ outcome: 'applied' })),
    jobs: NO_JOBS,
    backfills: NO_BACKFILLS,
    messenger: () => null,
    sync: SYNC_OFF,
    isWriterAlive: () => true,
    readiness: async () => ({ ready: true, notes: [] }),
    control: {
      status: async () => ({
        version: '1.0.0',
        pid: 1,
        startedAt: NOW,
        config: '/config.json',
        ready: true,
        notes: [],
        listeners: { api: '', webhooks: '', metrics: '', socket: null },
        database: { file: '/latchkey.db', bytes: 1 },
        queue: { deliveries: 0, bytes: 0 },
        endpoints: [],
        sync: null,
        job: null,
      }),
      reload: async () => ({ changed: [], needsRestart: [], policyDiffers: false }),
      stop: () => {},
    },
    keys: async () => [],
    pulse: createPulse(() => NOW),
    gaps: async () => new Map(),
    version: '1.0.0',
    products: () => [],
    hasConsole: true,
    consoleSecret: async () => Buffer.alloc(32, 7),
    clock: () => NOW,
    metrics: createMetrics(bytesBeingRead),
    log: pino({ level: 'debug' }, { write: (line: string) => logged.push(JSON.parse(line)) }),
  }
}

/** Real listeners on free ports, which close with the test unless `atEnd` takes that over. */
export async function openFront(
  overrides: Partial<ListenersDeps> = {},
  atEnd: AtEnd = onTestFinished,
): Promise<Front> {
  const seen: Seen = { deliveries: [], questions: [], logged: [] }
  const listeners = await startListeners({ ...(await frontDeps(seen, atEnd)), ...overrides })
  atEnd(listeners.stop)
  const { url, webhooksUrl, metricsUrl, stop } = listeners
  return { url, webhooksUrl, metricsUrl, stop, ...seen }
}

const REPLAY: Replay = {
  id: 'rep_1',
  kind: 'replay',
  number: 1,
  plan: {
    mode: 'apply',
    scope: {
      environment: 'live',
      type: null,
      disposition: null,
      customerId: null,
      endpoint: null,
      from: NOW,
      to: null,
    },
    endpoints: { live: { environment: 'live', aheadAtMostMs: 86_400_000 } },
    policy: null,
  },
  startedAt: NOW,
  progress: { reached: 0, total: 1, perSecond: null, remainingSeconds: null },
  outcome: { state: 'running' },
}

const BACKFILL = newBackfill({
  ...{ id: 'bkf_1', number: 1, plan: wholePlan('live'), startedAt: NOW, newestSeq: 0, newestChange: 0 },
})

/** A front that has something to tell about everything, for a key that may do everything. */
export async function openWhole(atEnd?: AtEnd) {
  const { url } = await openFront(
    {
      apiKeys: () => [
        apiKey('root', { scopes: API_SCOPES, environments: ['live', 'sandbox'] }),
        apiKey('scraper', { scopes: ['metrics'] }),
      ],
      jobs: {
        ...NO_JOBS,
        startReplay: async () => REPLAY,
        replays: async () => [REPLAY],
        findReplay: async () => REPLAY,
        stopReplay: async () => REPLAY,
      },
      backfills: {
        start: async () => BACKFILL,
        list: async () => [BACKFILL],
        find: async () => BACKFILL,
        stop: async () => BACKFILL,
      },
      sync: {
        ...SYNC_OFF,
        targets: async () => ['discord:1:2'],
        test: async () => ({ id: 'msg_test_1', delivered: true, status: 204, error: null, ms: 3 }),
      },
      messenger: () => ({
        linkToken: async () => ({ token: 'made', url: 'https://t.me/bot?start=made', expiresAt: NOW }),
        invite: async () => [],
      }),
    },
    atEnd,
  )
  return async (method: string, path: string, headers: Record<string, string> = {}, body?: string) =>
    fetch(`${url}${path}`, {
      method,
      headers: { ...bearer('root'), ...headers },
      ...(body === undefined ? {} : { body: Buffer.from(body) }),
    })
}

/** One front for all tests of a file, or of a group, which keeps nothing of what it is asked. */
export function sharedFront<T>(open: (atEnd: AtEnd) => Promise<T>): () => T {
  const ends: (() => Promise<void>)[] = []
  let opened: { readonly front: T } | undefined
  beforeAll(async () => {
    opened = { front: await open((end) => ends.push(end)) }
  })
  afterAll(async () => {
    for (const end of ends) await end()
  })
  return () => {
    if (opened === undefined) throw new Error('asked for before the tests began')
    return opened.front
  }
}

/** Ids that it knows. */
const IDS: Readonly<Record<string, string>> = {
  ':endpoint': 'v3',
  ':customerId': 'cus_1',
  ':productId': 'pro_1',
  ':feature': 'export',
  ':eventId': 'evt_1',
  ':replayId': 'rep_1',
  ':backfillId': 'bkf_1',
  ':webhook': 'crm',
}
export const withIds = (path: string) => path.replaceAll(/:\w+/g, (name) => IDS[name] ?? '')

/** A body that each route takes, by operation. */
export const BODIES: Readonly<Record<string, string>> = {
  lookUpEntitlements: '{"email":"a@example.com"}',
  checkEntitlements: '{"checks":[{"customerId":"cus_1","productId":"pro_1"}]}',
  grantProduct: '{"productId":"pro_1","reason":"why"}',
  revokeGrant: '{"reason":null}',
  blockCustomer: '{"reason":"why"}',
  unblockCustomer: '{}',
  blockProduct: '{"reason":" why "}',
  unblockProduct: '{"reason":"why"}',
  linkAccounts: '{"messengerId":"7","communityId":null}',
  eraseCustomer: '{"reason":"why"}',
  createLinkToken: '{}',
  createInvites: '{"groupId":null}',
  importEvents: '{"one":"line"}',
  startPolicyDiff: '{"named":3}',
  startBackfill: '{"dryRun":true}',
  startVerification: '{}',
  startReplay: '{"filter":{"from":"2026-01-31T12:00:00+01:00"},"dryRun":true}',
  runSync: '{"sweep":true}',
  replayMessages: '{"from":"2026-01-31T12:00:00Z"}',
  testWebhook: '{"type":"entitlement.revoked"}',
  pauseSync: '{}',
  resumeSync: '{}',
}
