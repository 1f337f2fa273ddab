/*
 * Writes a store of this version to test/fixtures/releases/<version>, for test/releases.test.ts: a SQLite file or a dump of
 * PostgreSQL, an export, the config, and what the daemon answered. Run it once, at a release:
 *
 *   npm run build && node scripts/write-release.js
 *   node scripts/write-release.js postgres://…   (an empty database; it needs pg_dump on the PATH)
 */
import { execFileSync, spawn } from 'node:child_process'
import { createHash, createHmac } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

const ROOT = join(import.meta.dirname, '..')
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const [postgresUrl] = process.argv.slice(2)
const TARGET = join(
  ROOT,
  'test/fixtures/releases',
  version,
  postgresUrl === undefined ? 'sqlite' : 'postgres',
)
const KEY = 'lk_of_the_release'
const SECRETS = {
  live: 'whsec_live_of_the_release',
  legacy: 'whsec_legacy_of_the_release',
  sandbox: 'whsec_sandbox_of_the_release',
}
const OUTBOUND_SECRET = `whsec_${Buffer.from('outbound secret of the release!!').toString('base64')}`
const CUSTOMERS = [
  'cus_card',
  'cus_crypto',
  'cus_moved',
  'cus_refunded',
  'cus_legacy',
  'cus_grants',
  'cus_blocked',
  'cus_ended',
]

const folder = mkdtempSync(join(tmpdir(), 'latchkey-release-'))
const platform = await serveLocally((req, res) => {
  const { method = '', url = '' } = req
  if (/\/members\/\d+\/roles\//.test(url)) return res.writeHead(204).end()
  if (method === 'GET' && /\/members\/\d+$/.test(url))
    return json(res, 200, { user: { id: '1100000000001000001' }, roles: [] })
  return json(res, 200, [])
})
const receiver = await serveLocally((_, res) => res.writeHead(204).end())
const failing = await serveLocally((_, res) => res.writeHead(500).end())
const config = {
  server: { host: '127.0.0.1', port: await freePort() },
  database: { url: postgresUrl ?? 'sqlite:./data/latchkey.db' },
  backup: { folder: './backups', every: '24h', keep: 7 },
  endpoints: {
    live: { environment: 'live', secrets: [SECRETS.live], toleranceSeconds: 300 },
    legacy: { environment: 'live', secrets: [{ secret: SECRETS.legacy, notAfter: '2099-01-31T00:00:00Z' }] },
    sandbox: { environment: 'sandbox', secrets: [SECRETS.sandbox] },
  },
  api: {
    keys: [
      {
        name: 'operator',
        hash: `sha256:${createHash('sha256').update(KEY).digest('hex')}`,
        scopes: ['read', 'write', 'events', 'metrics', 'admin'],
        environments: ['live', 'sandbox'],
      },
    ],
  },
  policy: JSON.parse(readFileSync(join(ROOT, 'config.example.json'), 'utf8')).policy,
  identity: { ref: 'externalRef' },
  products: {
    pro_gold: {
      name: 'Gold',
      features: ['export'],
      targets: [{ adapter: 'discord', guildId: '1100000000000000010', roleId: '1100000000000000012' }],
    },
    pro_silver: { communityGuildId: '1100000000000000010', communityRoleId: '1100000000000000013' },
  },
  sync: {
    discord: { botToken: 'local.token.of-the-release', apiUrl: platform.url },
    webhook: { url: receiver.url, secret: OUTBOUND_SECRET },
    webhooks: { crm: { url: failing.url, secret: OUTBOUND_SECRET, types: ['entitlement.revoked'] } },
  },
}
const configFile = join(folder, 'config.json')
writeFileSync(configFile, JSON.stringify(config, null, 2), { mode: 0o600 })
const api = `http://127.0.0.1:${config.server.port}`

const daemon = spawn(process.execPath, [join(ROOT, 'bin/latchkey.js'), 'serve'], {
  cwd: folder,
  stdio: 'inherit',
})
process.on('exit', () => daemon.kill())
await until(async () => (await fetch(`${api}/readyz`)).ok)

// What a year brings, out of order, doubled and odd.
trigger('payment.authorized', 'card', 1, '--payment pay_card_1 --subscription sub_card', '2025-10-01')
trigger('subscription.renewed', 'card', 1, '--payment pay_card_2 --subscription sub_card', '2025-11-01')
trigger('payment.authorized', 'card', 1, '--payment pay_card_2 --subscription sub_card', '2025-11-01')
trigger('subscription.created', 'card', 1, '--payment pay_card_1 --subscription sub_card', '2025-10-01')
trigger('payment.refunded', 'card', 1, '--payment pay_card_1 --subscription sub_card', '2025-11-02')
trigger('payment.succeeded', 'crypto', 1, '--payment pay_crypto_1 --rail crypto', '2025-10-05')
trigger('payment.authorized', 'moved', 1, '--payment pay_moved_1 --subscription sub_moved', '2025-10-01')
trigger('subscription.created', 'moved', 1, '--payment pay_moved_1 --subscription sub_moved', '2025-10-01')
trigger('payment.authorized', 'moved', 2, '--payment pay_moved_2 --subscription sub_moved', '2025-10-10')
trigger('subscription.updated', 'moved', 2, '--payment pay_moved_2 --subscription sub_moved', '2025-10-10')
trigger('payment.authorized', 'refunded', 1, '--payment pay_refunded_1', '2025-10-01')
trigger('payment.refunded', 'refunded', 1, '--payment pay_refunded_1', '2025-12-01')
trigger('payment.authorized', 'erased', 1, '--payment pay_erased_1', '2025-10-01')
trigger('payment.authorized', 'blocked', 1, '--payment pay_blocked_1', '2025-10-01')
trigger('payment.authorized', 'ended', 2, '--payment pay_ended_1 --subscription sub_ended', '2025-10-01')
trigger('subscription.canceled', 'ended', 2, '--subscription sub_ended', '2025-10-20')
trigger(
  'CHECKOUT_SUCCESS',
  'legacy',
  1,
  '--generation v2 --endpoint legacy --payment pay_legacy_1 --subscription sub_legacy',
  '2025-10-01',
)
trigger(
  'SUBSCRIPTION_CREATED',
  'legacy',
  1,
  '--generation v2 --endpoint legacy --subscription sub_legacy',
  '2025-10-01',
)
latchkey(
  'trigger payment.authorized --customer cus_card --product pro_gold --payment pay_sandbox_1 --endpoint sandbox',
)

const event = (id, type, data, more = {}) =>
  JSON.stringify({ id, type, created_at: '2025-10-03T00:00:00.000Z', livemode: true, ...more, data })
const held = event('evt_held_1', 'payment.authorized', {
  object: 'payment',
  id: 'pay_held_1',
  method: 'CARD',
})
await send('live', held)
await send('live', held)
await send('live', held.replace('CARD', 'WALLET_A'))
await send('live', event('evt_unknown_1', 'invoice.sent', { id: 'inv_1' }))
await send('live', 'not JSON')
await send('live', event('evt_sandbox_1', 'payment.authorized', { id: 'pay_x' }, { livemode: false }))

const person = (path, method, body) => request(method, `/customers/${path}`, body)
await person('cus_card/identities', 'PUT', { communityId: '1100000000001000001' })
await person('cus_refunded/identities', 'PUT', { communityId: '1100000000001000002' })
await request(
  'POST',
  '/customers/cus_grants/grants',
  { productId: 'pro_gold', reason: 'a friend' },
  { 'idempotency-key': 'first order' },
)
await request('POST', '/customers/cus_grants/grants', {
  productId: 'pro_silver',
  until: '2099-12-31T00:00:00.000Z',
  reason: 'a trial',
})
await person('cus_grants/grants/pro_silver', 'DELETE')
await person('cus_blocked/blocks', 'PUT', { reason: 'abuse' })
await person('cus_erased', 'DELETE')

await finished('/replays', { filter: { type: 'payment.refunded' }, dryRun: true })
await finished('/replays', { filter: { type: 'payment.refunded' }, dryRun: false })
await finished('/rebuild', {})
await until(async () => (await request('GET', '/sync')).targets[0].memberships.settled === 1)

const answers = {}
for (const id of CUSTOMERS) {
  answers[id] = await request('GET', `/entitlements/${id}?environment=live`)
  answers[`${id} sandbox`] = await request('GET', `/entitlements/${id}?environment=sandbox`)
}
const changes = await request('GET', '/changes?environment=live&limit=100')
const memberships = await request('GET', '/sync/memberships?limit=100')
const events = await request('GET', '/events?environment=live&limit=100')
const exported = latchkey('events export')
latchkey('stop')
await once(daemon, 'exit')

mkdirSync(TARGET, { recursive: true })
if (postgresUrl === undefined) {
  cpSync(join(folder, 'data/latchkey.db'), join(TARGET, 'latchkey.db'))
  cpSync(join(folder, 'data/latchkey.db.erasures'), join(TARGET, 'latchkey.db.erasures'))
} else {
  const dump = execFileSync('pg_dump', ['--inserts', '--no-owner', '--no-privileges', postgresUrl], {
    encoding: 'utf8',
  })
  // Without what psql alone understands.
  writeFileSync(join(TARGET, 'latchkey.sql'), dump.replaceAll(/^\\.*\n/gm, ''))
}
writeFileSync(join(TARGET, 'export.jsonl'), exported)
writeFileSync(join(TARGET, 'config.json'), `${JSON.stringify(config, null, 2)}\n`)
writeFileSync(
  join(TARGET, 'answers.json'),
  `${JSON.stringify({ key: KEY, answers, changes, memberships, events }, null, 2)}\n`,
)
rmSync(folder, { recursive: true })
process.exit()

function latchkey(words) {
  const options = { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }
  return execFileSync(process.execPath, [join(ROOT, 'bin/latchkey.js'), ...words.split(' ')], options)
}

function trigger(type, who, product, more, day) {
  const endpoint = more.includes('--endpoint') ? '' : ' --endpoint live'
  const productId = product === 1 ? 'pro_gold' : 'pro_silver'
  const words = `trigger ${type} --live --customer cus_${who} --product ${productId} ${more} --at ${day}T00:00:00Z${endpoint}`
  process.stdout.write(latchkey(words))
}

async function send(endpoint, body) {
  const timestamp = String(Math.floor(Date.now() / 1000))
  const signature = createHmac('sha256', SECRETS[endpoint]).update(`${timestamp}.${body}`).digest('hex')
  const headers = {
    'x-webhook-event': 'any',
    'x-webhook-timestamp': timestamp,
    'x-webhook-signature': `v1=${signature}`,
  }
  const answer = await fetch(`${api}/webhooks/${endpoint}`, { method: 'POST', headers, body })
  console.log(answer.status, await answer.text())
}

async function request(method, path, body, more = {}) {
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...more }
  const answer = await fetch(`${api}${path}`, {
    method,
    headers,
    ...(body && { body: JSON.stringify(body) }),
  })
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
  return answer.status === 204 ? null : answer.json()
}

async function finished(path, body) {
  const job = await request('POST', path, body)
  const where = path === '/replays' ? `${path}/${job.id}` : path
  await until(async () => JSON.stringify(await request('GET', where)).includes('"running"') === false)
}

async function until(isSo) {
  for (;;) {
    if (await isSo().catch(() => false)) return
    await wait(100)
  }
}

async function serveLocally(answer) {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${server.address().port}` }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  return port
}

function json(res, status, value) {
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}
