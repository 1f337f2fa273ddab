import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { API_SCOPES } from '../../src/handlers/api-key.js'
import { ROUTES } from '../../src/handlers/routes.js'
import { loadSyncSettings } from '../../src/store/sync-state.js'
import { BOT_TOKEN, startTelegram } from '../platforms/telegram-server.js'
import { routeTable } from '../process/readme.js'
import { eventually } from '../setup/eventually.js'
import { writeBeside } from './other-writer.js'
import { LIVE_SECRET, type RunningDaemon, runDaemon, SANDBOX_SECRET, send } from './running-daemon.js'
import { wireEvent } from './wire-events.js'

const HOOK = { liveGroup: -1001111111111, sandboxGroup: -1002222222222 }
const LIVE_USER = 4_200_001
const SANDBOX_USER = 4_200_002
/** In every id, address and name of live, so that nothing of it can be shown unseen. */
const LIVE_MARK = /onlylive|-1001111111111|4200001|"environment":"live"|environment="live"/

const keyOf = (name: string, environments: readonly string[]) => ({
  name,
  hash: `sha256:${createHash('sha256').update(name).digest('hex')}`,
  scopes: API_SCOPES,
  environments,
})

interface Request {
  readonly path: string
  readonly body?: unknown
  readonly type?: string
}

const ACT = { reason: 'a test' }
const EXPORTED = { environment: 'live', endpoint: 'hook-onlylive' }
let liveReplay = ''

type Case = readonly [route: string, status: number, body?: object | undefined, path?: string]

/**
 * Every route that takes a key, with what a key of the sandbox alone is answered where no environment is named, and
 * what is sent. The path is that of the route, about those that both environments have, unless another one is given.
 */
const CASES: readonly Case[] = [
  ['GET /entitlements', 200, undefined, '/entitlements?externalRef=ref_both'],
  ['GET /entitlements/:customerId', 200],
  ['GET /entitlements/:customerId/:productId', 200],
  ['GET /entitlements/:customerId/features/:feature', 200],
  ['GET /entitlements/:customerId/:productId/explanation', 200],
  ['POST /entitlements/lookup', 200, { email: 'both@example.com' }],
  ['POST /entitlements/check', 200, { checks: [{ externalRef: 'ref_both', productId: 'pro_gold' }] }],
  ['GET /customers', 200, undefined, '/customers?query=both'],
  ['GET /customers/:customerId', 200],
  ['GET /products', 200],
  ['GET /products/:productId/customers', 200],
  ['GET /changes', 200],
  ['GET /changes/summary', 200, undefined, '/changes/summary?from=2026-01-01T00:00:00Z'],
  ['GET /changes/stream', 200],
  ['GET /events', 200],
  ['GET /events/:eventId', 200],
  ['GET /events/:eventId/body', 200],
  ['GET /rebuild', 403],
  ['POST /rebuild', 403],
  ['GET /rebuild/verification', 403],
  ['POST /rebuild/verification', 403],
  ['GET /policy', 403],
  ['GET /policy/diff', 403],
  ['POST /policy/diff', 403],
  ['POST /policy/apply', 403],
  ['GET /doctor', 403],
  ['GET /status', 403],
  ['GET /keys', 403],
  ['POST /reload', 403],
  ['POST /stop', 403],
  ['GET /exports', 200],
  ['GET /replays', 200],
  ['GET /replays/:replayId', 404],
  ['DELETE /replays/:replayId', 404],
  ['POST /replays', 202, { filter: {} }],
  ['GET /backfills', 200],
  ['GET /backfills/:backfillId', 404],
  ['DELETE /backfills/:backfillId', 404],
  ['POST /backfills', 409, {}],
  ['POST /imports', 200, EXPORTED, '/imports?withManual=true'],
  ['GET /sync', 200],
  ['GET /sync/memberships', 200],
  ['GET /sync/messages', 200],
  ['POST /sync/messages/replay', 200, { from: '2026-01-01T00:00:00Z' }],
  ['POST /sync/webhooks/:webhook/test', 403, {}],
  ['GET /sync/plan', 200],
  ['GET /sync/check', 200],
  ['POST /sync/run', 200, { retry: {} }],
  ['POST /sync/pause', 403],
  ['POST /sync/resume', 403],
  ['GET /metrics', 200],
  ['GET /deliveries', 200],
  ['GET /console/session', 200],
  ['POST /console/links', 403],
  ['POST /customers/:customerId/link-tokens', 201, {}],
  ['POST /customers/:customerId/invites', 201, {}],
  ['POST /customers/:customerId/grants', 201, { productId: 'pro_extra', ...ACT }],
  ['DELETE /customers/:customerId/grants/:productId', 200, ACT, '/customers/cus_both/grants/pro_extra'],
  ['PUT /customers/:customerId/blocks', 200, ACT],
  ['DELETE /customers/:customerId/blocks', 200, ACT],
  ['PUT /customers/:customerId/blocks/:productId', 200, ACT],
  ['DELETE /customers/:customerId/blocks/:productId', 200, ACT],
  ['PUT /customers/:customerId/identities', 200, { messengerId: '4200003' }],
  ['DELETE /customers/:customerId', 200, {}],
]

/** These are about all environments at once, and take none. */
const COVERING_ALL = [
  'POST /console/links',
  ...['POST /rebuild', 'GET /rebuild/verification', 'GET /policy', 'GET /policy/diff', 'POST /policy/apply'],
  ...[
    'GET /doctor',
    'GET /status',
    'GET /keys',
    'POST /reload',
    'POST /stop',
    'POST /sync/pause',
    'POST /sync/resume',
    'POST /sync/webhooks/:webhook/test',
  ],
]

function requestOf([route, , body, given]: Case): Request & { readonly method: string } {
  const [method = '', pattern = ''] = route.split(' ')
  const path = (given ?? pattern)
    .replace(':customerId', 'cus_both')
    .replace(':productId', 'pro_gold')
    .replace(':webhook', 'default')
    .replace(':eventId', 'evt_both')
    .replace(':replayId', liveReplay)
    .replace(':backfillId', 'bkf_live')
  return { method, path, body, ...(route === 'POST /imports' && { type: 'application/x-ndjson' }) }
}

interface World {
  readonly daemon: RunningDaemon
  readonly ask: (key: string, method: string, request: Request) => Promise<{ status: number; text: string }>
}

/** A daemon with customers, roles, messages, replays and a rebuild of both environments. */
async function worldOfBoth(): Promise<World> {
  const telegram = await startTelegram()
  telegram.addGroup(HOOK.liveGroup)
  telegram.addGroup(HOOK.sandboxGroup)
  const config = {
    endpoints: {
      'hook-onlylive': { environment: 'live', secrets: [LIVE_SECRET] },
      sandbox: { environment: 'sandbox', secrets: [SANDBOX_SECRET] },
    },
    api: { keys: [keyOf('both', ['live', 'sandbox']), keyOf('tester', ['sandbox'])] },
    products: {
      pro_gold: {
        targets: [
          { adapter: 'telegram', groupId: String(HOOK.liveGroup), environment: 'live' },
          { adapter: 'telegram', groupId: String(HOOK.sandboxGroup), environment: 'sandbox' },
        ],
      },
    },
    sync: {
      telegram: { botToken: BOT_TOKEN, apiUrl: telegram.url },
      webhook: {
        url: 'http://127.0.0.1:9/told',
        secret: 'whsec_0123456789abcdef0123456789abcdef',
        environments: ['live', 'sandbox'],
      },
    },
  }
  const daemon = await runDaemon({ config })
  const ask: World['ask'] = async (key, method, { path, body, type = 'application/json' }) => {
    const answer = await fetch(`${daemon.url}${path}`, {
      method,
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': type },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: answer.status, text: await beginningOf(answer) }
  }

  const about = (messengerId: number, mark: string) => (id: string) => ({
    id,
    externalRef: id === 'cus_both' ? 'ref_both' : `ref_${mark}`,
    messengerId: String(messengerId),
    email: id === 'cus_both' ? 'both@example.com' : `${mark}@example.com`,
    name: `name ${mark}`,
  })
  const pay = async (endpoint: string, told: Parameters<typeof wireEvent>[1]) => {
    const secret = endpoint === 'sandbox' ? SANDBOX_SECRET : LIVE_SECRET
    expect((await send(daemon, wireEvent('payment.authorized', told), { endpoint, secret })).status).toBe(200)
  }
  const ofLive = about(LIVE_USER, 'onlylive')
  const ofSandbox = about(SANDBOX_USER, 'tested')
  for (const [endpoint, environment, of, payment] of [
    ['hook-onlylive', 'live', ofLive, 'pay_onlylive'],
    ['sandbox', 'sandbox', ofSandbox, 'pay_tested'],
  ] as const) {
    const product = environment === 'live' ? 'pro_onlylive' : 'pro_tested'
    for (const customer of ['cus_both', `cus_${payment}`]) {
      const data = { customer: of(customer) }
      await pay(endpoint, { environment, customer, payment: `${payment}_1${customer}`, product, data })
    }
    const data = { customer: of('cus_both') }
    await pay(endpoint, {
      id: 'evt_both',
      environment,
      customer: 'cus_both',
      payment: `${payment}_2`,
      product: 'pro_gold',
      data,
    })
  }
  return { daemon, ask }
}

/** The whole text; of a stream, which does not end, what comes first. */
async function beginningOf(answer: Response): Promise<string> {
  if (answer.headers.get('content-type') !== 'text/event-stream') return answer.text()
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader()
  const { value } = await reader.read()
  await reader.cancel()
  return Buffer.from(value ?? []).toString()
}

/** Changes what is written down of live access, so that a rebuild would change it back. */
function tamperWithLive(daemon: RunningDaemon): Promise<unknown> {
  return writeBeside(daemon, (db) =>
    db
      .updateTable('entitlements')
      .set({ active: 0 })
      .where('environment', '=', 'live')
      .where('product_id', '=', 'pro_onlylive')
      .execute(),
  )
}

/**
 * Everything that is stored of live, and the settings that are of both. Without the messages, which the daemon queues
 * from the change log and sends by itself.
 */
function liveState(daemon: RunningDaemon): Promise<string> {
  return daemon.stored(async (db) => {
    const tables = (await db.introspection.getTables()).filter(
      ({ name, columns }) => name !== 'messages' && columns.some((column) => column.name === 'environment'),
    )
    const state: unknown[] = []
    for (const { name } of tables) {
      const { rows } = await sql`select * from ${sql.table(name)} where environment = 'live'`.execute(db)
      state.push([name, rows])
    }
    const { rows } = await sql`
      select key, value from settings where key in ('policy', 'rebuild') order by key`.execute(db)
    const { cursor: _, ...sync } = await loadSyncSettings(db)
    return JSON.stringify([...state, rows, sync], null, 1)
  })
}

/** The same, with a rebuild, a replay and memberships that have something of live to show. */
async function busyWorld(): Promise<World> {
  const world = await worldOfBoth()
  const { daemon, ask } = world
  await tamperWithLive(daemon)
  await ask('both', 'POST', { path: '/rebuild' })
  await eventually(async () => {
    expect((await ask('both', 'GET', { path: '/rebuild' })).text).toContain('pro_onlylive')
  })
  const started = await ask('both', 'POST', { path: '/replays?environment=live', body: { filter: {} } })
  liveReplay = (JSON.parse(started.text) as { id: string }).id
  await eventually(async () => {
    expect((await ask('both', 'GET', { path: `/replays/${liveReplay}` })).text).toContain('"done"')
  })
  await eventually(async () => {
    const { text } = await ask('both', 'GET', { path: '/sync/memberships' })
    expect(text).toContain(String(LIVE_USER))
    expect(text).not.toContain('"due"')
  })
  await tamperWithLive(daemon)
  return world
}

describe('a key of one environment', () => {
  it('has a case here for every route that asks for a key', () => {
    const asking = ROUTES.filter(({ scope }) => scope !== null)
    expect(asking.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(
      CASES.map(([route]) => route).sort(),
    )
    // As docs/api.md says.
    const forBoth = routeTable().filter(({ needsBoth }) => needsBoth)
    expect(forBoth.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(
      CASES.flatMap(([route, status]) => (status === 403 ? [route] : [])).sort(),
    )
  })

  it('is refused at any route where the other is named, and elsewhere sees and changes nothing of it', async () => {
    const { daemon, ask } = await busyWorld()
    for (const one of CASES) {
      const [route] = one
      const before = await liveState(daemon)
      const { method, path, ...asked } = requestOf(one)
      const named = `${path}${path.includes('?') ? '&' : '?'}environment=`
      const answer = await ask('tester', method, { ...asked, path: `${named}live` })
      expect.soft(answer.status, `${route}: ${answer.text}`).toBe(403)
      expect.soft(answer.text, route).not.toMatch(LIVE_MARK)
      expect.soft(await liveState(daemon), route).toBe(before)
      const wrong = await ask('both', method, { ...asked, path: `${named}nowhere` })
      expect.soft(wrong.status, `${route}: ${wrong.text}`).toBe(400)
      const isNeither = /is neither .*live.* nor .*sandbox/
      if (!COVERING_ALL.includes(route)) expect.soft(wrong.text, route).toMatch(isNeither)
    }
    for (const one of CASES) {
      const [route, status] = one
      const before = await liveState(daemon)
      const { method, ...asked } = requestOf(one)
      const answer = await ask('tester', method, asked)
      expect.soft(answer.status, `${route}: ${answer.text}`).toBe(status)
      expect.soft(answer.text, route).not.toMatch(LIVE_MARK)
      expect.soft(await liveState(daemon), route).toBe(before)
    }
  })
})

it('what is about both environments at once is shown to a key of one for that one alone, and done for none', async () => {
  const { ask } = await busyWorld()
  const [all, own, named] = await Promise.all([
    ask('both', 'GET', { path: '/metrics' }),
    ask('tester', 'GET', { path: '/metrics' }),
    ask('both', 'GET', { path: '/metrics?environment=sandbox' }),
  ])
  expect(all.text).toMatch(LIVE_MARK)
  expect(all.text).toContain('latchkey_request_duration_seconds_count')
  for (const { text } of [own, named]) {
    expect(text).toContain('latchkey_deliveries_total{endpoint="sandbox",disposition="applied"} 3')
    expect(text).toContain('latchkey_sync_memberships{environment="sandbox"')
    expect(text).toContain('process_cpu_seconds_total')
    expect(text).not.toMatch(/^latchkey_(request_duration_seconds|outbound_messages)/m)
    expect(text).not.toMatch(LIVE_MARK)
  }

  const messages = async (key: string) => {
    const { webhooks } = JSON.parse((await ask(key, 'GET', { path: '/sync' })).text) as {
      webhooks: readonly { waiting: number }[]
    }
    return webhooks.reduce((sum, { waiting }) => sum + waiting, 0)
  }
  const path = '/changes?limit=100&environment=sandbox'
  const { items } = JSON.parse((await ask('both', 'GET', { path })).text) as { items: readonly unknown[] }
  expect(await messages('tester')).toBe(items.length)
  expect(await messages('both')).toBeGreaterThan(items.length)

  for (const request of [
    { path: '/rebuild' },
    { path: '/policy/apply' },
    { path: '/sync/pause' },
    { path: '/sync/run', body: { sweep: true } },
  ]) {
    const answer = await ask('tester', 'POST', request)
    expect(answer).toMatchObject({ status: 403 })
    expect(answer.text).toContain('use a key for both environments')
  }

  const changed = async (query: string) =>
    JSON.parse((await ask('both', 'GET', { path: `/rebuild${query}` })).text)
  expect(await changed('')).toMatchObject({ state: 'done', gains: 2 })
  expect(await changed('?environment=live')).toMatchObject({ gains: 2, sample: [{}, {}] })
  expect(await changed('?environment=sandbox')).toMatchObject({ state: 'done', gains: 0, sample: [] })

  const answer = await ask('tester', 'GET', { path: '/events?endpoint=nowhere' })
  expect(answer).toMatchObject({ status: 400 })
  expect(answer.text).toContain('must be one of sandbox, manual')
  const other = await ask('tester', 'GET', { path: '/events?endpoint=hook-onlylive' })
  const said = ({ text }: { text: string }) => ({ ...JSON.parse(text), requestId: '' })
  expect(said(other)).toEqual(said(answer))
  expect(answer.text).not.toContain('nowhere')
})
