/* The examples of docs/client.md and examples/next, as they are there but for the port. */

import { once } from 'node:events'
import { appendFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import express from 'express'
import { Hono } from 'hono'
import { expect, it, onTestFinished, vi } from 'vitest'
import { type Client, type ClientOptions, createClient } from '../../src/client/client.js'
import { requireFeature, requireProduct } from '../../src/client/express.js'
import * as hono from '../../src/client/hono.js'
import { createTestClient } from '../../src/client/testing.js'
import { blocks } from '../process/readme.js'
import {
  API_KEY,
  act,
  configuredFolder,
  MAY_ALL,
  ROOT,
  runProgram,
  serveHere,
  temporaryFolder,
} from '../world.js'

type Visit = (path: string, customerId?: string) => Promise<Response>

const PROBLEM = 'application/problem+json'

/** A daemon where cus_1 may export, and where its address is in the environment. */
async function openDaemon() {
  const daemon = await serveHere(
    configuredFolder({ ...MAY_ALL, products: { pro_1: { features: ['export'] } } }),
  )
  await act(daemon, 'POST', '/customers/cus_1/grants', { productId: 'pro_1', reason: 'a test' })
  const env = { LATCHKEY_URL: daemon.url, LATCHKEY_API_KEY: API_KEY }
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  onTestFinished(() => void vi.unstubAllEnvs())
  return { daemon, env }
}

/** A file with an example of the page, in a folder where the package is installed. */
function exampleFile(importing: string): string {
  const example = blocks('js', ['docs/client.md']).find(({ text }) => text.includes(`from '${importing}'`))
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'node_modules'))
  for (const name of ['express', 'hono'])
    symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name))
  symlinkSync(ROOT, join(folder, 'node_modules', 'latchkey'))
  const file = join(folder, 'example.mjs')
  writeFileSync(file, example?.text.replace('listen(3000)', 'listen(0)') ?? '')
  return file
}

/** Loads the app of an example, whose client is closed when the test ends: it would look for the daemon for ever. */
async function loadApp(file: string): Promise<never> {
  appendFileSync(file, '\nexport { client }\n')
  const { app, client } = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as {
    readonly app: never
    readonly client: Client
  }
  onTestFinished(client.close)
  return app
}

/** A client that is closed when the test ends. */
function clientOf(options: ClientOptions): Client {
  const client = createClient(options)
  onTestFinished(client.close)
  return client
}

async function visitExpress(app: express.Express): Promise<Visit> {
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  return (path, customerId) =>
    fetch(`http://127.0.0.1:${port}${path}`, {
      headers: { Connection: 'close', ...(customerId !== undefined && { 'x-customer': customerId }) },
    })
}

const visitHono =
  (app: Hono): Visit =>
  async (path, customerId) =>
    app.request(path, { headers: customerId === undefined ? {} : { 'x-customer': customerId } })

it('the quick start runs, and ends', async () => {
  const { daemon, env } = await openDaemon()
  const file = exampleFile('latchkey/client')
  const run = () => runProgram([process.execPath, file], { folder: join(file, '..'), env })
  expect(await run()).toEqual({ code: 0, stdout: 'cus_1 may export, with no known end\n', stderr: '' })
  await act(daemon, 'DELETE', '/customers/cus_1/grants/pro_1', {})
  expect(await run()).toEqual({ code: 0, stdout: 'cus_1 may not export\n', stderr: '' })
})

it('the example of a test answers what the test says', async () => {
  const file = exampleFile('latchkey/testing')
  const { code, stdout } = await runProgram([process.execPath, file], { folder: join(file, '..') })
  expect([code, stdout.split('\n')]).toEqual([
    0,
    [
      '{',
      '  active: true,',
      "  until: '2099-12-31T00:00:00.000Z',",
      '  stale: false,',
      '  reason: null,',
      '  unknown: false',
      '}',
      'false',
      'unavailable',
      '',
    ],
  ])
})

it.each(['express', 'hono'] as const)(
  'the example for %s lets customers with the feature pass, and no others',
  async (name) => {
    await openDaemon()
    const app = await loadApp(exampleFile(`latchkey/${name}`))
    const visit = name === 'express' ? await visitExpress(app) : visitHono(app)
    const passed = await visit('/export', 'cus_1')
    expect([passed.status, await passed.text()]).toEqual([200, 'a,b\n1,2\n'])
    for (const [customerId, status, code] of [
      ['cus_2', 402, 'access_required'],
      [undefined, 401, 'not_signed_in'],
    ] as const) {
      const refused = await visit('/export', customerId)
      expect(refused.headers.get('content-type')).toContain(PROBLEM)
      expect([refused.status, await refused.json()]).toMatchObject([
        status,
        { status, code, feature: 'export' },
      ])
    }
  },
)

it('gates answer 503, or hand on the error, while the daemon is away, and use other words where told', async () => {
  const { daemon } = await openDaemon()
  const options = { url: daemon.url, apiKey: API_KEY, retries: 0, timeout: 200, maxCustomers: 0 }
  const [denying, throwing] = [clientOf({ ...options, onUnavailable: 'deny' }), clientOf(options)]
  const ofExpress = { customerId: (req: express.Request) => req.get('x-customer') }
  const app = express()
    .get(
      '/denied',
      requireProduct('pro_1', { client: denying, ...ofExpress }),
      (_, res) => void res.send('in'),
    )
    .get(
      '/thrown',
      requireFeature('export', { client: throwing, ...ofExpress }),
      (_, res) => void res.send('in'),
    )
    .get(
      '/words',
      requireFeature('other', {
        client: denying,
        ...ofExpress,
        onDenied: ({ status }, _, res) => res.status(status).send('buy'),
      }),
    )
    .use((error: Error, _: express.Request, res: express.Response, next: express.NextFunction) =>
      'code' in error ? void res.status(500).send(String(error.code)) : next(error),
    )
  const ofHono = {
    customerId: async (c: { req: { header(name: string): string | undefined } }) =>
      c.req.header('x-customer'),
  }
  const other = new Hono()
    .get('/denied', hono.requireProduct('pro_1', { client: denying, ...ofHono }), (c) => c.text('in'))
    .get('/thrown', hono.requireFeature('export', { client: throwing, ...ofHono }), (c) => c.text('in'))
    .get(
      '/words',
      hono.requireFeature('other', {
        client: denying,
        ...ofHono,
        onDenied: ({ status }, c) => c.text('buy', status),
      }),
      (c) => c.text('in'),
    )
  const visits = [await visitExpress(app), visitHono(other)]
  for (const visit of visits) {
    expect(await (await visit('/denied', 'cus_1')).text()).toBe('in')
    const words = await visit('/words', 'cus_1')
    expect([words.status, await words.text()]).toEqual([402, 'buy'])
  }
  await daemon.stop()
  for (const visit of visits) {
    const denied = await visit('/denied', 'cus_1')
    expect(denied.headers.get('retry-after')).toBe('5')
    expect([denied.status, await denied.json()]).toMatchObject([
      503,
      { code: 'access_unavailable', productId: 'pro_1' },
    ])
  }
  const [thrown, answered] = [await visits[0]?.('/thrown', 'cus_1'), await visits[1]?.('/thrown', 'cus_1')]
  expect([thrown?.status, await thrown?.text()]).toEqual([500, 'unavailable'])
  expect([answered?.status, await answered?.json()]).toMatchObject([503, { code: 'access_unavailable' }])
})

it.each([{ requireFeature, requireProduct }, hono])(
  'gates without a client, a customer or something that is needed do not start',
  (gates) => {
    const options = { client: { check: vi.fn() }, customerId: () => 'cus_1' }
    const wrong = expect.objectContaining({ code: 'invalid_options' })
    expect(() => gates.requireFeature('export', undefined as never)).toThrow(wrong)
    expect(() => gates.requireFeature('export', { ...options, client: undefined } as never)).toThrow(wrong)
    expect(() => gates.requireFeature('export', { ...options, customerId: 'cus_1' } as never)).toThrow(wrong)
    expect(() => gates.requireFeature(undefined as never, options)).toThrow(wrong)
    expect(() => gates.requireProduct('', options)).toThrow(wrong)
  },
)

it('no request passes a gate that fails, whatever it fails with', async () => {
  const { daemon } = await openDaemon()
  const client = clientOf({ url: daemon.url, apiKey: API_KEY, maxCustomers: 0 })
  const thrown = [undefined, null, 'route', 'router', false, 0]
  const app = express()
    .get(
      '/id/:index',
      requireFeature('export', {
        client,
        customerId: ({ params }) => Promise.reject(thrown[Number(params.index)]),
      }),
      (_, res) => void res.send('in'),
    )
    .get(
      '/denied/:index',
      requireFeature('other', {
        client,
        customerId: () => 'cus_1',
        onDenied: (_, { params }) => Promise.reject(thrown[Number(params.index)]),
      }),
      (_, res) => void res.send('in'),
    )
    .use((_: Error, _req: express.Request, res: express.Response, _next: express.NextFunction) =>
      res.status(500).send('refused'),
    )
  const visit = await visitExpress(app)
  for (const index of thrown.keys()) {
    for (const path of ['id', 'denied']) {
      const answer = await visit(`/${path}/${index}`)
      expect([answer.status, await answer.text()]).toEqual([500, 'refused'])
    }
  }
})

it('the route handler of the Next.js example answers as a gate', async () => {
  const { daemon } = await openDaemon()
  const { GET } = await import(join(ROOT, 'examples/next/app/api/export/route.ts'))
  const visit = async (cookie: string): Promise<Response> =>
    GET(new Request('http://localhost/api/export', { headers: { cookie } }))
  const { access } = await import(join(ROOT, 'examples/next/lib/access.ts'))
  onTestFinished(access.close)
  expect(await (await visit('theme=dark; customer=cus_1')).text()).toBe('a,b\n1,2\n')
  expect([(await visit('')).status, (await visit('customer=cus_2')).status]).toEqual([401, 402])
  await daemon.stop()
  expect((await visit('customer=cus_3')).status).toBe(503)
})

it('gates find the customer by a reference of the app', async () => {
  const client = createTestClient({ products: { pro_1: {} }, references: { 'user-1': 'cus_1' } })
  client.grant('cus_1', 'pro_1')
  const ofExpress = express()
  const ofHono = new Hono()
  ofExpress.get(
    '/in',
    requireProduct('pro_1', { client, externalRef: (req) => req.get('x-customer') }),
    (_, res) => {
      res.send('in')
    },
  )
  ofHono.get(
    '/in',
    hono.requireProduct('pro_1', { client, externalRef: (c) => c.req.header('x-customer') }),
    (c) => c.text('in'),
  )
  for (const visit of [await visitExpress(ofExpress), visitHono(ofHono)]) {
    expect(await (await visit('/in', 'user-1')).text()).toBe('in')
    const statuses = await Promise.all(['cus_1', 'user-2', undefined].map((who) => visit('/in', who)))
    expect(statuses.map(({ status }) => status)).toEqual([402, 402, 401])
  }
  const both = { client, customerId: () => 'cus_1', externalRef: () => 'user-1' } as never
  expect(() => requireProduct('pro_1', both)).toThrow(expect.objectContaining({ code: 'invalid_options' }))
})
