import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { accountId, BOT_TOKEN, GOLD_ROLE_ID } from '../platforms/discord-ids.js'
import { startDiscord } from '../platforms/discord-server.js'
import { eventually } from '../setup/eventually.js'
import { portOf } from '../setup/port-of.js'
import { deliver, send, sentEvent } from '../stories.js'
import { API_KEY, ask, CONFIG, configuredFolder, serve } from '../world.js'
import { followedFolder, PRODUCT, serveFollowed } from './followed.js'

interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly attributes: readonly { readonly key: string; readonly value: Record<string, unknown> }[]
  readonly links: readonly { readonly traceId: string }[]
}

/** A collector that speaks OTLP over HTTP in JSON. */
async function startCollector() {
  const posts: { path: string; authorization: unknown; body: unknown }[] = []
  const server = createServer(async (req, res) => {
    posts.push({ path: req.url ?? '', authorization: req.headers.authorization, body: await json(req) })
    res.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  const url = `http://127.0.0.1:${await portOf(server)}`
  const resources = () =>
    posts.flatMap(
      ({ body }) =>
        (body as { resourceSpans: { resource: unknown; scopeSpans: { spans: Span[] }[] }[] }).resourceSpans,
    )
  return {
    url,
    posts,
    resources,
    spans: () => resources().flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)),
  }
}

const attributesOf = ({ attributes }: Span) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

const TRACE = 'a'.repeat(32)
const CALLER = 'b'.repeat(16)

it('are sent to the collector: a request with its caller, its commit, the read, and the calls that follow', async () => {
  const collector = await startCollector()
  const hooked: (string | undefined)[] = []
  const receiver = createServer((req, res) => {
    hooked.push(req.headers.traceparent?.toString())
    res.writeHead(204).end()
  })
  const discord = await startDiscord()
  const account = accountId(7)
  discord.guild.join(account)
  const url = `http://127.0.0.1:${await portOf(receiver)}/hook?secret=in-the-url`
  const daemon = await serveFollowed(followedFolder(discord, { url }), {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20of-the-collector',
    OTEL_SERVICE_NAME: 'shop-access',
  })
  const customer = { id: 'cus_ada', email: 'ada@example.com', communityId: account }
  const paid = sentEvent('evt_1', 'payment.authorized', Date.UTC(2026, 0, 31), {
    id: 'pay_1',
    method: 'CARD',
    customer,
    product: PRODUCT,
  })
  const traceparent = `00-${TRACE}-${CALLER}-01`
  const headers = { traceparent, 'x-request-id': 'request-1' }
  expect(await send(daemon.url, paid, { headers })).toMatchObject({ status: 200 })
  await ask(daemon, '/entitlements/cus_ada?environment=live')
  await eventually(() => {
    expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([account])
    expect(hooked).toHaveLength(1)
  })
  // The last spans are sent at the end.
  await daemon.stop()

  const spans = collector.spans()
  const named = (name: string) => spans.find((one) => one.name === name) as Span
  const delivery = named('POST /webhooks/:endpoint')
  expect(delivery).toMatchObject({ traceId: TRACE, parentSpanId: CALLER, kind: 2 })
  expect(attributesOf(delivery)).toEqual({
    'http.request.method': 'POST',
    'http.route': '/webhooks/:endpoint',
    'http.response.status_code': 200,
    'url.scheme': 'http',
    'latchkey.request_id': 'request-1',
    'latchkey.endpoint': 'live',
  })
  expect(named('commit')).toMatchObject({ traceId: TRACE, parentSpanId: delivery.spanId, links: [] })
  const question = named('GET /entitlements/:customerId')
  expect(named('read access')).toMatchObject({ traceId: question.traceId, parentSpanId: question.spanId })
  expect(attributesOf(named('discord give'))).toEqual({ 'peer.service': 'discord' })
  const post = named('POST')
  expect(attributesOf(post)).toMatchObject({
    'server.address': '127.0.0.1',
    'http.response.status_code': 204,
  })
  expect(hooked).toEqual([`00-${post.traceId}-${post.spanId}-01`])
  for (const { traceId } of [named('discord give'), post]) expect(traceId).not.toBe(TRACE)

  expect(collector.posts[0]).toMatchObject({ path: '/v1/traces', authorization: 'Bearer of-the-collector' })
  const sent = JSON.stringify(collector.posts)
  expect(sent).toContain('shop-access')
  for (const text of ['cus_ada', 'ada@', account, API_KEY, 'in-the-url', 'environment=live', BOT_TOKEN]) {
    expect(sent).not.toContain(text)
  }
})

it('are lost without harm where no collector answers, and one line of the log says so, beside those of all requests', async () => {
  const unreachable = createServer()
  const port = await portOf(unreachable)
  unreachable.close()
  const daemon = await serve(configuredFolder({ ...CONFIG, server: { accessLog: true } }), {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
    OTEL_EXPORTER_OTLP_TIMEOUT: '200',
  })
  const events = (name: string) =>
    Array.from({ length: 600 }, (_, n) =>
      sentEvent(`evt_${name}_${n}`, 'customer.created', Date.UTC(2026, 0, 31), { id: `cus_${n}` }),
    )
  const lost = () => daemon.logged().filter(({ msg }) => String(msg).startsWith('traces do not arrive'))
  expect((await deliver(daemon.url, events('first'))).refused).toEqual([])
  await eventually(() => expect(lost()).toHaveLength(1))
  expect((await deliver(daemon.url, events('second'))).refused).toEqual([])
  await daemon.stop()
  const lines = daemon.logged().filter(({ msg }) => msg === 'request')
  expect(new Set(lines.map(({ traceId }) => traceId)).size).toBe(1_200)
  expect(lost()).toMatchObject([{ level: 'warn', why: expect.stringContaining('ECONNREFUSED') }])
})
