import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { API_SCOPES } from '../../src/handlers/api-key.js'
import { ROUTES } from '../../src/handlers/routes.js'
import { loadSyncSettings } from '../../src/store/sync-state.js'
import { BOT_TOKEN, startTelegram } from '../platforms/telegram-server.js'
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

interface RouteCase extends Request {
  /** What a key of the sandbox alone is answered where no environment is named. */
  readonly status: number
  /** The route is about all environments at once, and takes none. */
  readonly covers?: 'all'
}

const ACT = { reason: 'a test' }
const EXPORTED = { environment: 'live', endpoint: 'hook-onlylive' }
let liveReplay = ''

/** Every route that takes a key, with what a key of the sandbox alone is answered. `:x` of the path are of both. */
const CASES: Readonly<Record<string, () => RouteCase>> = {
  'GET /entitlements': () => ({ path: '/entitlements?externalRef=ref_both', status: 200 }),
  'GET /entitlements/:customerId': () => ({ path: '/entitlements/cus_both', status: 200 }),
  'GET /entitlements/:customerId/:productId': () => ({
    path: '/entitlements/cus_both/pro_gold',
    status: 200,
  }),
  'GET /entitlements/:customerId/:productId/explanation': () => ({
    path: '/entitlements/cus_both/pro_gold/explanation',
    status: 200,
  }),
  'POST /entitlements/lookup': () => ({
    path: '/entitlements/lookup',
    body: { email: 'both@example.com' },
    status: 200,
  }),
  'POST /entitlements/check': () => ({
    path: '/entitlements/check',
    body: { checks: [{ externalRef: 'ref_both', productId: 'pro_gold' }] },
    status: 200,
  }),
  'GET /customers/:customerId': () => ({ path: '/customers/cus_both', status: 200 }),
  'GET /products/:productId/customers': () => ({ path: '/products/pro_gold/customers', status: 200 }),
  'GET /changes': () => ({ path: '/changes', status: 200 }),
  'GET /events': () => ({ path: '/events', status: 200 }),
  'GET /events/:eventId': () => ({ path: '/events/evt_both', status: 200 }),
  'GET /events/:eventId/body': () => ({ path: '/events/evt_both/body', status: 200 }),
  'GET /rebuild': () => ({ path: '/rebuild', status: 403 }),
  'POST /rebuild': () => ({ path: '/rebuild', status: 403, covers: 'all' }),
  'GET /rebuild/verification': () => ({ path: '/rebuild/verification', status: 403, covers: 'all' }),
  'POST /rebuild/verification': () => ({ path: '/rebuild/verification', status: 403 }),
  'GET /policy': () => ({ path: '/policy', status: 403, covers: 'all' }),
  'GET /policy/diff': () => ({ path: '/policy/diff', status: 403, covers: 'all' }),
  'POST /policy/diff': () => ({ path: '/policy/diff', status: 403 }),
  'POST /policy/apply': () => ({ path: '/policy/apply', status: 403, covers: 'all' }),
  'GET /doctor': () => ({ path: '/doctor', status: 403, covers: 'all' }),
  'GET /status': () => ({ path: '/status', status: 403, covers: 'all' }),
  'POST /reload': () => ({ path: '/reload', status: 403, covers: 'all' }),
  'POST /stop': () => ({ path: '/stop', status: 403, covers: 'all' }),
  'GET /exports': () => ({ path: '/exports', status: 200 }),
  'GET /replays': () => ({ path: '/replays', status: 200 }),
  'GET /replays/:replayId': () => ({ path: `/replays/${liveReplay}`, status: 404 }),
  'DELETE /replays/:replayId': () => ({ path: `/replays/${liveReplay}`, status: 404 }),
  'POST /replays': () => ({ path: '/replays', body: { filter: {} }, status: 202 }),
  'POST /imports': () => ({
    path: '/imports?withManual=true',
    body: EXPORTED,
    type: 'application/x-ndjson',
    status: 200,
  }),
  'GET /sync': () => ({ path: '/sync', status: 200 }),
  'GET /sync/memberships': () => ({ path: '/sync/memberships', status: 200 }),
  'GET /sync/plan': () => ({ path: '/sync/plan', status: 200 }),
  'GET /sync/check': () => ({ path: '/sync/check', status: 200 }),
  'POST /sync/run': () => ({ path: '/sync/run', body: { retry: {} }, status: 200 }),
  'POST /sync/pause': () => ({ path: '/sync/pause', status: 403, covers: 'all' }),
  'POST /sync/resume': () => ({ path: '/sync/resume', status: 403, covers: 'all' }),
  'GET /metrics': () => ({ path: '/metrics', status: 200 }),
  'POST /customers/:customerId/link-tokens': () => ({
    path: '/customers/cus_both/link-tokens',
    body: {},
    status: 201,
  }),
  'POST /customers/:customerId/invites': () => ({
    path: '/customers/cus_both/invites',
    body: {},
    status: 201,
  }),
  'POST /customers/:customerId/grants': () => ({
    path: '/customers/cus_both/grants',
    body: { productId: 'pro_extra', ...ACT },
    status: 201,
  }),
  'DELETE /customers/:customerId/grants/:productId': () => ({
    path: '/customers/cus_both/grants/pro_extra',
    body: ACT,
    status: 200,
  }),
  'PUT /customers/:customerId/blocks': () => ({ path: '/customers/cus_both/blocks', body: ACT, status: 200 }),
  'DELETE /customers/:customerId/blocks': () => ({
    path: '/customers/cus_both/blocks',
    body: ACT,
    status: 200,
  }),
  'PUT /customers/:customerId/blocks/:productId': () => ({
    path: '/customers/cus_both/blocks/pro_gold',
    body: ACT,
    status: 200,
  }),
  'DELETE /customers/:customerId/blocks/:productId': () => ({
    path: '/customers/cus_both/blocks/pro_gold',
    body: ACT,
    status: 200,
  }),
  'PUT /customers/:customerId/identities': () => ({
    path: '/customers/cus_both/identities',
    body: { messengerId: '4200003' },
    status: 200,
  }),
  'DELETE /customers/:customerId': () => ({ path: '/customers/cus_both', body: {}, status: 200 }),
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
    return { status: answer.status, text: await answer.text() }
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

const CASE_OF = Object.entries(CASES)

describe('a key of one environment', () => {
  it('has a case here for every route that asks for a key', () => {
    const asking = ROUTES.filter(({ scope }) => scope !== null)
    expect(asking.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(Object.keys(CASES).sort())
  })

  it('sees and changes nothing of the other, at any route', async () => {
    const { daemon, ask } = await busyWorld()
    for (const [route, request] of CASE_OF) {
      const before = await liveState(daemon)
      const { status, ...asked } = request()
      const answer = await ask('tester', route.split(' ')[0] ?? '', asked)
      expect.soft(answer.status, `${route}: ${answer.text}`).toBe(status)
      expect.soft(answer.text, route).not.toMatch(LIVE_MARK)
      expect.soft(await liveState(daemon), route).toBe(before)
    }
  })

  it('is refused where the other is named, at any route', async () => {
    const { daemon, ask } = await busyWorld()
    for (const [route, request] of CASE_OF) {
      const before = await liveState(daemon)
      const { path, covers, ...asked } = request()
      const method = route.split(' ')[0] ?? ''
      const named = `${path}${path.includes('?') ? '&' : '?'}environment=`
      const answer = await ask('tester', method, { ...asked, path: `${named}live` })
      expect.soft(answer.status, `${route}: ${answer.text}`).toBe(403)
      expect.soft(answer.text, route).not.toMatch(LIVE_MARK)
      expect.soft(await liveState(daemon), route).toBe(before)
      const wrong = await ask('both', method, { ...asked, path: `${named}nowhere` })
      expect.soft(wrong.status, `${route}: ${wrong.text}`).toBe(400)
      if (covers !== 'all') expect.soft(wrong.text, route).toMatch(/is neither .*live.* nor .*sandbox/)
    }
  })
})

it('the environment of a question is the sandbox where nothing else is configured', async () => {
  const sandbox = { environment: 'sandbox', secrets: [SANDBOX_SECRET] }
  const config = { endpoints: { sandbox }, api: { keys: [keyOf('both', ['live', 'sandbox'])] } }
  const daemon = await runDaemon({ config })
  const grant = wireEvent('payment.authorized', { environment: 'sandbox' })
  expect((await send(daemon, grant, { endpoint: 'sandbox' })).status).toBe(200)
  const headers = { Authorization: 'Bearer both' }
  const answer = await fetch(`${daemon.url}/entitlements/cus_1`, { headers })
  expect(await answer.json()).toMatchObject({ environment: 'sandbox', entitlements: [{ active: true }] })
})

describe('what is about both environments at once', () => {
  it('is shown to a key of one for that one alone: metrics, sync and its checks', async () => {
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
      const { webhook } = JSON.parse((await ask(key, 'GET', { path: '/sync' })).text) as {
        webhook: { messages: readonly { count: number }[] }
      }
      return webhook.messages.reduce((sum, { count }) => sum + count, 0)
    }
    const path = '/changes?limit=100&environment=sandbox'
    const { items } = JSON.parse((await ask('both', 'GET', { path })).text) as { items: readonly unknown[] }
    expect(await messages('tester')).toBe(items.length)
    expect(await messages('both')).toBeGreaterThan(items.length)
  })

  it('is done for no key of one, and says which key it takes', async () => {
    const { ask } = await worldOfBoth()
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
  })

  it.each(['/rebuild', '/policy/apply'])('POST %s is refused for one environment', async (path) => {
    const { ask } = await worldOfBoth()
    const answer = await ask('both', 'POST', { path: `${path}?environment=sandbox` })
    expect(answer).toMatchObject({ status: 400 })
    expect(answer.text).toContain('is not known here')
  })

  it('is reported for one: what a rebuild has changed', async () => {
    const { ask } = await busyWorld()
    const changed = async (query: string) =>
      JSON.parse((await ask('both', 'GET', { path: `/rebuild${query}` })).text)
    expect(await changed('')).toMatchObject({ state: 'done', gains: 2 })
    expect(await changed('?environment=live')).toMatchObject({ gains: 2, sample: [{}, {}] })
    expect(await changed('?environment=sandbox')).toMatchObject({ state: 'done', gains: 0, sample: [] })
  })

  it('names no endpoint of the other environment', async () => {
    const { ask } = await worldOfBoth()
    const answer = await ask('tester', 'GET', { path: '/events?endpoint=nowhere' })
    expect(answer).toMatchObject({ status: 400 })
    expect(answer.text).toContain('must be one of sandbox, manual')
    const other = await ask('tester', 'GET', { path: '/events?endpoint=hook-onlylive' })
    expect(other.text).toBe(answer.text.replaceAll('nowhere', 'hook-onlylive'))
  })
})
