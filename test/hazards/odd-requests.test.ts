import { expect, it } from 'vitest'
import { warnings } from '../daemon/observed.js'
import { API_KEY, runDaemon } from '../daemon/running-daemon.js'
import { expectNothingStored } from '../daemon/stored.js'
import { exchange, head } from '../handlers/raw-connection.js'

/** Every route that takes an id out of its path; `*` stands for it. */
const ROUTES = [
  ...['GET /entitlements/*', 'GET /entitlements/*/pro_1', 'GET /entitlements/cus_1/*'],
  ...['GET /entitlements/*/pro_1/explanation', 'GET /entitlements/cus_1/*/explanation'],
  ...['GET /customers/*', 'GET /products/*/customers', 'GET /events/*', 'GET /events/*/body'],
  ...['GET /replays/*', 'DELETE /replays/*', 'POST /customers/*/grants'],
  ...['DELETE /customers/*/grants/pro_1', 'DELETE /customers/cus_1/grants/*'],
  ...['PUT /customers/*/blocks', 'DELETE /customers/*/blocks', 'PUT /customers/*/blocks/pro_1'],
  ...['PUT /customers/cus_1/blocks/*', 'PUT /customers/*/identities'],
]

const NO_IDS = ['%00', 'cus_%00', '%E0%A4%A', '%', '%zz', '%0d%0aX:%20y', '%7f', 'a'.repeat(256)]
/** Ids like any other: nothing decodes them into another path. */
const ODD_IDS = [
  '..%2f',
  '%2e%2e',
  '..%2f..%2fetc%2fpasswd',
  '__proto__',
  'constructor',
  '%25',
  '%F0%9F%94%91',
]

const INSTANTS = [
  '',
  '%00',
  '%E0%A4%A',
  'now',
  '0',
  '2026-02-30T00:00:00Z',
  '2026-03-01T25:00:00Z',
  '2026-03-01',
]
const NO_PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  '/entitlements/cus_1?at=': INSTANTS,
  '/entitlements/cus_1/pro_1/explanation?at=': INSTANTS,
  '/events?from=': INSTANTS,
  '/entitlements/cus_1?environment=': ['', '%00', 'LIVE', '__proto__'],
  '/events?limit=': ['', '0', '-1', '101', '1e9', '%00', '1.5'],
  '/events?cursor=': ['', '%00', '%E0%A4%A', '__proto__', 'A'.repeat(5_000)],
  '/events?disposition=': ['', '%00', '__proto__', 'applied&disposition=held'],
}

/** The status and the code of a problem, of a request whose path goes over the wire as it is written. */
async function ask(url: string, request: string): Promise<{ status: number; code: string | undefined }> {
  const headers = {
    authorization: `Bearer ${API_KEY}`,
    'content-type': 'application/json',
    'content-length': '2',
    connection: 'close',
  }
  const answer = await exchange(url, `${head(request, headers)}{}`)
  const [, status] = /^HTTP\/1\.1 (\d{3}) /.exec(answer) ?? []
  return { status: Number(status), code: /"code":"(\w+)"/.exec(answer)?.[1] }
}

it('an id or a parameter that can be none is refused on every route, and an odd id is one like any other', async () => {
  const daemon = await runDaemon()
  const idsIn = (ids: readonly string[]) => ROUTES.flatMap((route) => ids.map((id) => route.replace('*', id)))
  const parameters = Object.entries(NO_PARAMETERS).flatMap(([path, values]) =>
    values.map((value) => `GET ${path}${value}`),
  )
  for (const request of [...idsIn(NO_IDS), ...parameters]) {
    const answer = { request, ...(await ask(daemon.url, request)) }
    expect(answer).toEqual({ request, status: 400, code: 'invalid_request' })
  }
  await expectNothingStored(daemon)
  for (const request of idsIn(ODD_IDS)) {
    expect([200, 400, 404], request).toContain((await ask(daemon.url, request)).status)
  }
  expect(warnings(daemon)).toEqual([])
})

it('a listener of its own fails inside for no path either', async () => {
  const server = { port: 0, webhooks: { port: 0 }, metrics: { port: 0 } }
  const daemon = await runDaemon({ config: { server } })
  const paths = ['%00', '%E0%A4%A', '..%2flive', '../webhooks/live', '%2e%2e/metrics', '', '__proto__']
  for (const url of [daemon.webhooksUrl, daemon.metricsUrl]) {
    for (const path of paths) {
      expect([400, 404], path).toContain((await ask(url, `POST /webhooks/${path}`)).status)
    }
  }
  await expectNothingStored(daemon)
  expect(warnings(daemon).filter(({ code }) => code !== 'endpoint_not_found')).toEqual([])
})
