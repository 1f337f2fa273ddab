import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { patternOf } from '../../src/handlers/mount.js'
import { ROUTES } from '../../src/handlers/routes.js'
import { numberedEvents, storeOf } from '../store/events.js'
import {
  apiKey,
  BODIES,
  bearer,
  openFront,
  openWhole,
  SECRET,
  sharedFront,
  signed,
  withIds,
} from './daemon-front.js'

const whole = sharedFront(openWhole)

const TWICE = 'is given more than once'
const ENVIRONMENT = 'environment'
const BY_HAND = 'environment, dryRun'
const FILTER = 'environment, disposition, type, customerId, endpoint, from, to'
const KEPT = 'private, no-cache'
const NOT_KEPT = 'no-store'

type Row = readonly [
  method: string,
  path: string,
  /** All parameters that it takes; null: whatever is sent. */
  takes: string | null,
  /** What is answered where the front has something to tell, whether anybody may keep that, and where to look next. */
  status?: number,
  cache?: string,
  location?: string,
]

const EVERY_ROUTE: readonly Row[] = [
  ['POST', '/webhooks/:endpoint', null],
  ['GET', '/entitlements', 'environment, externalRef, at, limit, cursor', 200, KEPT],
  ['POST', '/entitlements/lookup', 'environment, at, limit, cursor'],
  ['POST', '/entitlements/check', ENVIRONMENT],
  ['GET', '/entitlements/:customerId', 'environment, at', 200, KEPT],
  ['GET', '/entitlements/:customerId/:productId', 'environment, at', 200, KEPT],
  ['GET', '/entitlements/:customerId/features/:feature', 'environment, at', 200, KEPT],
  ['GET', '/entitlements/:customerId/:productId/explanation', 'environment, at', 200, KEPT],
  ['GET', '/customers', 'environment, query, limit, cursor', 200, NOT_KEPT],
  ['GET', '/customers/:customerId', ENVIRONMENT, 200, NOT_KEPT],
  ['DELETE', '/customers/:customerId', ENVIRONMENT, 200, NOT_KEPT],
  ['POST', '/customers/:customerId/grants', BY_HAND],
  ['DELETE', '/customers/:customerId/grants/:productId', BY_HAND],
  ['PUT', '/customers/:customerId/blocks', BY_HAND],
  ['DELETE', '/customers/:customerId/blocks', BY_HAND],
  ['PUT', '/customers/:customerId/blocks/:productId', BY_HAND],
  ['DELETE', '/customers/:customerId/blocks/:productId', BY_HAND],
  ['PUT', '/customers/:customerId/identities', BY_HAND],
  ['POST', '/customers/:customerId/link-tokens', ENVIRONMENT],
  ['POST', '/customers/:customerId/invites', ENVIRONMENT],
  ['GET', '/products', ENVIRONMENT, 200, NOT_KEPT],
  ['GET', '/products/:productId/customers', 'environment, limit, cursor', 200, NOT_KEPT],
  ['GET', '/changes', 'environment, customerId, from, to, limit, cursor', 200, NOT_KEPT],
  ['GET', '/changes/summary', 'environment, from, to, by, productId', 200, NOT_KEPT],
  ['GET', '/changes/stream', 'environment, cursor'],
  ['GET', '/events', `${FILTER}, paymentId, subscriptionId, conflicts, limit, cursor`, 200, NOT_KEPT],
  ['GET', '/events/:eventId', ENVIRONMENT],
  ['GET', '/events/:eventId/body', 'environment, sha256', 200, KEPT],
  ['GET', '/exports', `${FILTER}, cursor`, 200, NOT_KEPT],
  ['POST', '/imports', 'environment, withManual, dryRun'],
  ['GET', '/policy', 'none', 200, NOT_KEPT],
  ['GET', '/policy/diff', 'none', 200, NOT_KEPT],
  ['POST', '/policy/diff', ENVIRONMENT, 202, NOT_KEPT, '/policy/diff'],
  ['POST', '/policy/apply', 'expect', 202, NOT_KEPT, '/rebuild'],
  ['GET', '/rebuild', ENVIRONMENT, 200, NOT_KEPT],
  ['POST', '/rebuild', 'none', 202, NOT_KEPT, '/rebuild'],
  ['GET', '/rebuild/verification', 'none', 200, NOT_KEPT],
  ['POST', '/rebuild/verification', ENVIRONMENT, 202, NOT_KEPT, '/rebuild/verification'],
  ['GET', '/replays', 'environment, limit, cursor', 200, NOT_KEPT],
  ['POST', '/replays', ENVIRONMENT, 202, NOT_KEPT, '/replays/rep_1'],
  ['GET', '/replays/:replayId', ENVIRONMENT, 200, NOT_KEPT],
  ['DELETE', '/replays/:replayId', ENVIRONMENT, 200, NOT_KEPT],
  ['GET', '/backfills', 'environment, limit, cursor', 200, NOT_KEPT],
  ['POST', '/backfills', ENVIRONMENT, 202, NOT_KEPT, '/backfills/bkf_1'],
  ['GET', '/backfills/:backfillId', ENVIRONMENT, 200, NOT_KEPT],
  ['DELETE', '/backfills/:backfillId', ENVIRONMENT, 200, NOT_KEPT],
  ['GET', '/sync', ENVIRONMENT, 200, NOT_KEPT],
  ['GET', '/sync/memberships', 'environment, state, target, customerId, limit, cursor', 200, NOT_KEPT],
  [
    'GET',
    '/sync/messages',
    'environment, id, webhook, type, status, customerId, from, to, limit, cursor',
    200,
    NOT_KEPT,
  ],
  ['POST', '/sync/messages/replay', ENVIRONMENT],
  ['POST', '/sync/webhooks/:webhook/test', 'none', 200, NOT_KEPT],
  ['GET', '/sync/plan', ENVIRONMENT, 200, NOT_KEPT],
  ['GET', '/sync/check', ENVIRONMENT, 200, NOT_KEPT],
  ['POST', '/sync/run', ENVIRONMENT, 200, NOT_KEPT],
  ['POST', '/sync/pause', 'none', 200, NOT_KEPT],
  ['POST', '/sync/resume', 'none', 200, NOT_KEPT],
  ['GET', '/doctor', 'thorough', 200, NOT_KEPT],
  ['GET', '/openapi.json', null, 200, NOT_KEPT],
  ['GET', '/docs', null, 200, NOT_KEPT],
  ['GET', '/status', 'none', 200, NOT_KEPT],
  ['GET', '/keys', 'none', 200, NOT_KEPT],
  ['POST', '/reload', 'none', 200, NOT_KEPT],
  ['POST', '/stop', 'none', 202, NOT_KEPT],
  ['GET', '/healthz', null, 200, NOT_KEPT],
  ['GET', '/readyz', null, 200, NOT_KEPT],
  ['GET', '/metrics', null, 200, NOT_KEPT],
  ['GET', '/deliveries', ENVIRONMENT, 200, NOT_KEPT],
  ['GET', '/console/session', ENVIRONMENT, 200, NOT_KEPT],
  ['POST', '/console/links', 'none', 201, NOT_KEPT],
]

const TAKING = EVERY_ROUTE.flatMap(([method, path, takes]) =>
  takes === null ? [] : [[method, path, takes] as const],
)
const ANSWERING = EVERY_ROUTE.flatMap(([method, path, , status, cache, location = null]) =>
  status === undefined
    ? []
    : [
        [
          method,
          {
            '/entitlements': `${path}?externalRef=u1`,
            '/customers': `${path}?query=u`,
            '/changes/summary': `${path}?from=2026-01-01T00:00:00Z`,
          }[path] ?? withIds(path),
          status,
          cache,
          location,
        ] as const,
      ],
)
// What asks the platforms, reads much, or never ends is never asked by HEAD.
const NEVER_BY_HEAD = ['/sync/check', '/doctor', '/changes/stream']

describe('the table', () => {
  it.each(ROUTES.map((one) => [`${one.method} ${one.path}`, one] as const))('describes %s', (_, one) => {
    const { query, body, answer } = one
    const schemas = [query, body, answer].filter((part) => part instanceof z.ZodType)
    for (const schema of schemas) expect(z.toJSONSchema(schema, { io: 'input' })).toMatchObject({})
    expect(one.summary).toMatch(/^[A-Z].*\.$/)
  })

  it('has no route twice, none that another one hides, and none that is not asked here', () => {
    const names = ROUTES.map(({ method, path }) => `${method} ${path}`)
    expect(new Set(names).size).toBe(names.length)
    for (const [index, { method, path }] of ROUTES.entries()) {
      const first = ROUTES.findIndex((one) => one.method === method && patternOf(one.path).test(path))
      expect([path, first]).toEqual([path, index])
    }
    expect(names.sort()).toEqual(EVERY_ROUTE.map(([method, path]) => `${method} ${path}`).sort())
    const takingAny = ROUTES.filter(({ query }) => query === 'any').map(({ path }) => path)
    expect(takingAny.sort()).toEqual(
      EVERY_ROUTE.flatMap(([, path, takes]) => (takes === null ? [path] : [])).sort(),
    )
  })
})

describe('a parameter that a route does not take', () => {
  it.each(TAKING)('is refused by %s %s, which says that it takes %s', async (method, path, known) => {
    const call = whole()
    const message = `is not known here: this route takes ${known}`
    const answer = await call(method, `${withIds(path)}?zzzzzz=1`)
    expect([answer.status, await answer.json()]).toEqual([
      400,
      {
        type: 'urn:latchkey:problem:invalid_request',
        title: 'Invalid request',
        status: 400,
        code: 'invalid_request',
        detail: `The parameter "zzzzzz" ${message}.`,
        requestId: answer.headers.get('x-request-id'),
        errors: [{ path: 'zzzzzz', message }],
      },
    ])
  })

  it.each([
    ['/events?disposiion=held', 'disposition'],
    ['/events?limit=5&customerid=cus_1', 'customerId'],
    ['/events?customer=cus_1', 'customerId'],
    ['/events?form=2026-03-01T00:00:00Z', 'from'],
    ['/entitlements?externalref=u1', 'externalRef'],
    ['/entitlements/cus_1?enviroment=sandbox', 'environment'],
    ['/sync/memberships?sate=parked', 'state'],
  ])('is told beside the one that was meant: %s', async (path, meant) => {
    const answer = await whole()('GET', path)
    expect([answer.status, await answer.json()]).toMatchObject([
      400,
      { errors: [{ message: `is not known here; the closest one is "${meant}"` }] },
    ])
  })

  it.each(['', '%00', '__proto__', 'constructor', '%E0%A4%A', 'x'.repeat(5_000)])(
    'may be called anything: %j',
    async (name) => {
      const answer = await whole()('GET', `/events?${name}=1`)
      expect([answer.status, await answer.json()]).toMatchObject([400, { code: 'invalid_request' }])
    },
  )

  it('is no matter to whoever delivers events, or watches', async () => {
    const call = whole()
    for (const path of ['/healthz', '/readyz', '/metrics']) {
      const answer = await call('GET', `${path}?t=1`, bearer('scraper'))
      expect(answer.status).toBe(200)
      await answer.text()
    }
    expect((await call('POST', '/webhooks/v3?t=1', signed('{}', { secret: SECRET }), '{}')).status).toBe(200)
  })
})

it.each<[path: string, parameter: string, values: readonly string[]]>([
  ['/events', 'disposition', ['duplicate', '', '%00', '__proto__', 'applied&disposition=held']],
  ['/events', 'type', ['', 'a&type=b']],
  ['/events', 'customerId', ['%00']],
  ['/events', 'endpoint', ['']],
  [
    '/events',
    'from',
    [
      '',
      '%00',
      '%E0%A4%A',
      '0',
      '2026-03-01T25:00:00Z',
      'yesterday',
      '2026-01-31T12:00:00.001Z&to=2026-01-31T12:00:00Z',
    ],
  ],
  ['/events', 'to', ['2026-03-01']],
  [
    '/events',
    'cursor',
    ['', '%00', '%E0%A4%A', '__proto__', 'A'.repeat(5_000), '5', Buffer.from('cus_1').toString('base64url')],
  ],
  ['/entitlements', 'externalRef', ['', 'x'.repeat(256), 'a%00', 'a&externalRef=b']],
  ['/entitlements/cus_1', 'at', ['', 'yesterday', '1772366400', '2026-02-30T00:00:00Z']],
  ['/entitlements/cus_1', 'at', ['2026-02-01', '2026-02-01T00:00:00']],
  ['/entitlements/cus_1', 'at', ['2026-02-01T00:00:00Z&at=2026-02-02T00:00:00Z']],
  [
    '/entitlements/cus_1',
    'environment',
    ['', '%00', 'LIVE', '__proto__', 'test', 'live&environment=sandbox'],
  ],
  ['/products/pro_1/customers', 'limit', ['0', '101', '-1', '1.5', '1e1', '1e9', '', '%00', 'all', '1000']],
  ['/products/pro_1/customers', 'cursor', ['', 'cus_1!', 'Y3VzXzE=', '_w', 'AA', 'x'.repeat(2_000)]],
  ['/sync/memberships', 'state', ['odd', 'due&state=due']],
  ['/sync/memberships', 'limit', ['0', '101']],
  ['/sync/memberships', 'cursor', ['odd']],
  ['/sync/memberships', 'target', ['']],
  ['/sync/memberships', 'environment', ['test']],
  ['/sync/messages', 'type', ['entitlement.odd']],
  ['/sync/messages', 'status', ['parked']],
  ['/sync/messages', 'cursor', ['odd']],
  ['/sync/messages', 'from', ['yesterday']],
  ['/replays', 'limit', ['odd']],
  ['/replays', 'cursor', ['odd']],
  ['/backfills', 'cursor', ['odd']],
  ['/changes', 'customerId', ['%ff', 'cus_%E0%A4%A']],
  ['/events', 'paymentId', ['%ff']],
  ['/entitlements', 'externalRef', ['%ff']],
])('%s refuses the %s %j', async (path, parameter, values) => {
  const call = whole()
  for (const value of values) {
    const answer = await call('GET', `${path}?${parameter}=${value}`)
    const errors = [{ path: parameter, ...(value.includes(`&${parameter}`) && { message: TWICE }) }]
    expect([value, answer.status, await answer.json()]).toMatchObject([
      value,
      400,
      { code: 'invalid_request', errors },
    ])
  }
})

it('an endpoint that nobody knows is taken where not all that is stored could be looked at', async () => {
  // One page looks at 20,000 events and a few more.
  const db = await storeOf(numberedEvents(21_000))
  const { url } = await openFront({ apiKeys: () => [apiKey('support', { scopes: ['events'] })], db })
  const answer = await fetch(`${url}/events?endpoint=v4`, { headers: bearer('support') })
  expect([answer.status, await answer.json()]).toMatchObject([200, { items: [] }])
})

describe('a method that a route does not take', () => {
  // By GET, the customers of two paths are called `lookup` and `check`.
  const paths = new Set(EVERY_ROUTE.map(([, path]) => path))
  it.each([...paths])('is refused by %s', async (path) => {
    const methods = EVERY_ROUTE.flatMap(([method, one]) => (one === path ? [method] : []))
    const isNamed = ['/entitlements/lookup', '/entitlements/check'].includes(path)
    const allowed = (isNamed ? ['GET'] : methods)
      .flatMap((method) => (method === 'GET' && !NEVER_BY_HEAD.includes(path) ? ['GET', 'HEAD'] : [method]))
      .join(', ')
    const call = whole()
    const answer = await call('PATCH', withIds(path), { authorization: '' })
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, allowed])
    expect(await answer.json()).toEqual({
      type: 'urn:latchkey:problem:method_not_allowed',
      title: 'Method not allowed',
      status: 405,
      detail: `This route takes ${allowed.replaceAll(', ', ' and ')} only.`,
      code: 'method_not_allowed',
      requestId: answer.headers.get('x-request-id'),
    })
  })
})

describe('an answer', () => {
  it.each(ANSWERING)('to %s %s is %i, to be kept: %s', async (method, path, status, cache, location) => {
    const call = whole()
    const answer = await call(method, path, { 'content-type': 'application/json' })
    const { headers } = answer
    expect([answer.status, headers.get('cache-control'), headers.get('location')]).toEqual([
      status,
      cache,
      location,
    ])
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.has('etag')).toBe(cache === KEPT)
    await answer.arrayBuffer()
  })

  it.each(
    ANSWERING.flatMap(([method, path]) => (method === 'GET' && !NEVER_BY_HEAD.includes(path) ? [path] : [])),
  )('to HEAD %s has the headers of GET, and no body', async (path) => {
    const call = whole()
    const [head, got] = [await call('HEAD', path), await call('GET', path)]
    expect(head.status).toBe(got.status)
    const [headType, type] = [head, got].map((one) => one.headers.get('content-type'))
    expect(headType).toBe(type)
    expect(await head.text()).toBe('')
    await got.arrayBuffer()
  })
})

const ONE_DETAIL = 'needs exactly one of email, communityId, messengerId'
const checks = (second: object) => JSON.stringify({ checks: [{ customerId: 'c', productId: 'p' }, second] })

it.each([
  ['text/plain', 415],
  ['application/x-www-form-urlencoded', 415],
  ['application/jsonp', 415],
  ['application/json; charset=utf-8', 200],
  ['Application/JSON', 200],
  ['application/vnd.app+json', 200],
])('a body that must be JSON and is called %s is answered with %i', async (type, status) => {
  const call = whole()
  for (const name of ['lookup', 'check']) {
    const body = BODIES[name === 'lookup' ? 'lookUpEntitlements' : 'checkEntitlements']
    const answer = await call('POST', `/entitlements/${name}`, { 'content-type': type }, body)
    const { code } = (await answer.json()) as { code?: string }
    expect([answer.status, code]).toEqual([status, status === 415 ? 'media_type_not_supported' : undefined])
  }
})

it.each<[method: string, path: string, body: string, fields: string[], message?: string]>([
  ['POST', '/customers/cus_1/grants', '{"productId":"","reason":""}', ['productId', 'reason']],
  [
    'POST',
    '/customers/cus_1/grants',
    '{"productId":"p","reason":"a\\nb","until":"soon"}',
    ['until', 'reason'],
  ],
  ['PUT', '/customers/cus_1/blocks', '{}', ['reason']],
  ['POST', '/replays', '{"filter":{"type":"","from":"soon"}}', ['filter.type', 'filter.from']],
  [
    'POST',
    '/replays',
    '{"filter":{"from":"2026-02-01T00:00:00Z","to":"2026-01-01T00:00:00Z"}}',
    ['filter.from'],
  ],
  ['POST', '/replays', '{"filter":{"endpoint":"odd"}}', ['filter.endpoint']],
  ['POST', '/replays', '{"filter":{"disposition":"duplicate"}}', ['filter.disposition']],
  ['POST', '/replays', '{"filter":{"customer":"cus_1"}}', ['filter.customer']],
  ['POST', '/replays', '{"filter":{"type":"payment.refundd"}}', ['filter.type']],
  ['POST', '/replays', '[]', ['']],
  ['POST', '/entitlements/check', '{"checks":3}', ['checks']],
  ['POST', '/entitlements/check', '{"checks":[{"productId":true},7]}', ['checks.0.productId', 'checks.1']],
  ['POST', '/entitlements/check', 'null', ['']],
  ['POST', '/entitlements/check', '""', ['']],
  ['POST', '/entitlements/check', '', ['checks']],
  ['POST', '/entitlements/check', checks({ productId: 'p' }), ['checks.1']],
  [
    'POST',
    '/entitlements/check',
    checks({ customerId: 'c', externalRef: 'r', productId: 'p' }),
    ['checks.1'],
  ],
  ['POST', '/entitlements/check', checks({ customerId: 'c' }), ['checks.1']],
  ['POST', '/entitlements/check', checks({ customerId: 'c', productId: 'p', feature: 'f' }), ['checks.1']],
  ['POST', '/entitlements/check', checks({ customerId: '', productId: 'p' }), ['checks.1.customerId']],
  ['POST', '/entitlements/check', checks({ customerId: 'c', productId: 'p', extra: 1 }), ['checks.1.extra']],
  ['POST', '/entitlements/lookup', '{"email":5}', ['email']],
  ['POST', '/entitlements/lookup', '{"email":""}', ['email']],
  ['POST', '/entitlements/lookup', '{"email":"a\\u0000"}', ['email']],
  ['POST', '/entitlements/lookup', JSON.stringify({ communityId: 'x'.repeat(256) }), ['communityId']],
  ['POST', '/entitlements/lookup', '{"messengerId":7}', ['messengerId']],
  ['POST', '/entitlements/lookup', '{}', [''], ONE_DETAIL],
  ['POST', '/entitlements/lookup', '{"email":"a@example.com","communityId":"1"}', [''], ONE_DETAIL],
  ['POST', '/entitlements/lookup', '{"email":"a@example.com","messengerId":"1"}', [''], ONE_DETAIL],
  ['POST', '/entitlements/lookup', '{"communityId":"1","messengerId":"1"}', [''], ONE_DETAIL],
  ['POST', '/customers/cus_1/grants', '{"productId":"a\\u0007","reason":"  "}', ['productId', 'reason']],
  ['PUT', '/customers/cus_1/identities', '{}', ['']],
  // The platform's ids are beyond what a JSON number holds exactly.
  ['PUT', '/customers/cus_1/identities', '{"communityId":5,"messengerId":7}', ['communityId', 'messengerId']],
  ['POST', '/customers/cus_1/invites', '{"productId":"pro_1","groupId":"-1001"}', ['']],
  ['POST', '/customers/cus_1/invites', '{"productId":"","groupId":7}', ['productId', 'groupId']],
  ['POST', '/sync/run', '{"sweep":"yes","retry":3}', ['retry', 'sweep']],
  ['POST', '/sync/run', '{"confirm":"","retry":{"state":"due"}}', ['confirm', 'retry.state']],
  ['POST', '/sync/messages/replay', '{"webhook":"crm"}', ['']],
  ['POST', '/sync/messages/replay', '{"from":"2026-03-02T00:00:00Z","to":"2026-03-01T00:00:00Z"}', ['from']],
  ['POST', '/sync/messages/replay', '{"from":"2026-03-02T00:00:00Z","webhook":"odd"}', ['webhook']],
  ['POST', '/sync/messages/replay', '{"ids":["msg_odd_1"]}', ['ids.0']],
  ['POST', '/replays', '{"dryRun":"yes"}', ['dryRun']],
  ['POST', '/backfills', '{"dryRun":"yes","customerId":7}', ['dryRun', 'customerId']],
  ['POST', '/backfills', '{"payments":false,"subscriptions":false}', ['payments']],
  ['POST', '/policy/diff', '{"named":0}', ['named']],
])('%s %s says of %s which fields are wrong', async (method, path, body, fields, told) => {
  const call = whole()
  const answer = await call(method, path, { 'content-type': 'application/json' }, body)
  const { errors } = (await answer.json()) as { errors: readonly { path: string; message: string }[] }
  if (told !== undefined) expect(errors).toMatchObject([{ message: told }])
  for (const { message } of errors) expect(message).toMatch(/^(is|are|must|needs|names|holds) /)
  expect([answer.status, errors.map((one) => one.path)]).toEqual([400, fields])
})

it.each([
  ['POST', '/customers/a%C2%80b/grants'],
  ['DELETE', '/customers/a%C2%80b'],
  ['POST', '/customers/a%C2%80b/invites'],
])('%s %s acts on no customer who cannot be stored', async (method, path) => {
  const call = whole()
  const body = path.endsWith('grants') ? '{"productId":"p","reason":"why"}' : '{}'
  const answer = await call(method, path, {}, body)
  expect([answer.status, await answer.json()]).toMatchObject([
    400,
    {
      detail: 'The path is not valid.',
      errors: [{ path: 'customerId', message: expect.stringMatching(/^is not an id/) }],
    },
  ])
})

it.each(['', 'x'.repeat(256)])('an Idempotency-Key cannot be %j', async (key) => {
  const call = whole()
  const headers = { 'idempotency-key': key }
  const answer = await call('POST', '/customers/cus_1/grants', headers, '{"productId":"p","reason":"why"}')
  expect([answer.status, await answer.json()]).toMatchObject([
    400,
    {
      detail: 'The header is not valid.',
      errors: [{ path: 'Idempotency-Key', message: 'must be given once, with 1 to 255 characters' }],
    },
  ])
})
