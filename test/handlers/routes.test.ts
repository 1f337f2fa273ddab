import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { patternOf } from '../../src/handlers/mount.js'
import { ROUTES } from '../../src/handlers/routes.js'
import type { Replay } from '../../src/recompute/jobs.js'
import { apiKey, bearer, GOLD, NOW, openFront, SYNC_OFF } from './daemon-front.js'

const REPLAY: Replay = {
  id: 'rep_1',
  kind: 'replay',
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
    endpoints: { live: 'live' },
    policy: null,
  },
  startedAt: NOW,
  progress: { reached: 0, total: 1, perSecond: null, remainingSeconds: null },
  outcome: { state: 'running' },
}

/** A front that has something to tell about everything, for a key that may do everything. */
async function openWhole() {
  const { url } = await openFront({
    apiKeys: () => [
      apiKey('root', {
        scopes: ['read', 'write', 'events', 'metrics', 'admin'],
        environments: ['live', 'sandbox'],
      }),
    ],
    customers: {
      readAccesses: async () => [],
      findByReference: async () => [],
      findByReferences: async () => new Map(),
      findByDetail: async () => [],
      readCustomer: async ({ environment, customerId }) => ({
        customerId,
        environment,
        facts: { email: { value: 'a@example.com', at: NOW, by: 'evt_1' } },
        metadata: { plan: { value: 'x', at: NOW, by: 'evt_1' } },
        references: [{ name: 'externalRef', value: 'u1' }],
        blocks: [{ productId: null, from: NOW, until: null }],
        deletedAt: null,
        erasedAt: null,
        sources: [],
      }),
      readProductCustomers: async () => [{ customerId: 'cus_1', entitlement: GOLD }],
      readChangePage: async () => [],
    },
    replays: {
      startReplay: () => REPLAY,
      replays: () => [REPLAY],
      findReplay: () => REPLAY,
      stopReplay: async () => REPLAY,
    },
    sync: { ...SYNC_OFF, targets: () => ['discord:1:2'] },
    messenger: () => ({
      linkToken: async () => ({ token: 'made', url: 'https://t.me/bot?start=made', expiresAt: NOW }),
      invite: async () => [],
    }),
    storedEvents: {
      readEventPage: async () => ({ items: [], next: null }),
      readEvent: async () => null,
      readEventBody: async ({ eventId }) => ({
        sha256: 'ab'.repeat(32),
        bytes: eventId === 'evt_gone' ? null : Buffer.from('{"a":1}'),
        removed: null,
      }),
      readExportPage: async () => ({
        lines: ['{}'],
        counts: { delivery: 1, reading: 0, removed: 0, altered: 0 },
        reached: 1,
        newest: 2,
      }),
    },
  })
  return (method: string, path: string, headers: Record<string, string> = {}, body?: string) =>
    fetch(`${url}${path}`, {
      method,
      headers: { ...bearer('root'), ...headers },
      ...(body === undefined ? {} : { body: Buffer.from(body) }),
    })
}

describe('the table', () => {
  it.each(ROUTES.map((one) => [`${one.method} ${one.path}`, one] as const))('describes %s', (_, one) => {
    const { query, body, answer, params } = one
    const schemas = [query, body, answer, ...Object.values(params)].filter(
      (part) => part instanceof z.ZodType,
    )
    for (const schema of schemas) expect(z.toJSONSchema(schema, { io: 'input' })).toMatchObject({})
    expect(one.summary).toMatch(/^[A-Z].*\.$/)
  })

  it('has no route twice, and none that another one hides', () => {
    const names = ROUTES.map(({ method, path }) => `${method} ${path}`)
    expect(new Set(names).size).toBe(names.length)
    for (const [index, { method, path }] of ROUTES.entries()) {
      const first = ROUTES.findIndex((one) => one.method === method && patternOf(one.path).test(path))
      expect([path, first]).toEqual([path, index])
    }
  })
})

/** Every path, and what it says when it is asked by a method that it does not take. */
const ALLOWED = {
  '/webhooks/v3': 'POST',
  '/entitlements': 'GET, HEAD',
  '/entitlements/cus_1': 'GET, HEAD',
  '/entitlements/lookup': 'GET, HEAD',
  '/entitlements/check': 'GET, HEAD',
  '/entitlements/cus_1/pro_1': 'GET, HEAD',
  '/entitlements/cus_1/pro_1/explanation': 'GET, HEAD',
  '/customers/cus_1': 'GET, HEAD, DELETE',
  '/customers/cus_1/grants': 'POST',
  '/customers/cus_1/grants/pro_1': 'DELETE',
  '/customers/cus_1/blocks': 'PUT, DELETE',
  '/customers/cus_1/blocks/pro_1': 'PUT, DELETE',
  '/customers/cus_1/identities': 'PUT',
  '/customers/cus_1/link-tokens': 'POST',
  '/customers/cus_1/invites': 'POST',
  '/products/pro_1/customers': 'GET, HEAD',
  '/changes': 'GET, HEAD',
  '/events': 'GET, HEAD',
  '/events/evt_1': 'GET, HEAD',
  '/events/evt_1/body': 'GET, HEAD',
  '/exports': 'GET, HEAD',
  '/imports': 'POST',
  '/policy': 'GET, HEAD',
  '/policy/diff': 'GET, HEAD, POST',
  '/policy/apply': 'POST',
  '/rebuild': 'GET, HEAD, POST',
  '/rebuild/verification': 'GET, HEAD, POST',
  '/replays': 'GET, HEAD, POST',
  '/replays/rep_1': 'GET, HEAD, DELETE',
  '/sync': 'GET, HEAD',
  '/sync/memberships': 'GET, HEAD',
  '/sync/plan': 'GET, HEAD',
  // What asks the platforms, or reads much, is never asked by HEAD.
  '/sync/check': 'GET',
  '/sync/run': 'POST',
  '/sync/pause': 'POST',
  '/sync/resume': 'POST',
  '/doctor': 'GET',
  '/status': 'GET, HEAD',
  '/reload': 'POST',
  '/stop': 'POST',
  '/healthz': 'GET, HEAD',
  '/readyz': 'GET, HEAD',
  '/metrics': 'GET, HEAD',
}

describe('a method that a route does not take', () => {
  it.each(Object.entries(ALLOWED))('is refused by %s, which takes %s', async (path, allowed) => {
    const call = await openWhole()
    const answer = await call('PATCH', path, { authorization: '' })
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, allowed])
    expect(await answer.json()).toEqual({
      type: 'urn:latchkey:problem:method_not_allowed',
      title: 'Method not allowed',
      status: 405,
      detail: `This route takes ${allowed.replaceAll(', ', ' and ')} only.`,
      code: 'method_not_allowed',
    })
  })
})

/** Every answer that is no problem: by which request, and whether anybody on the way may keep it. */
const ANSWERS: readonly (readonly [string, string, number, string, string | null])[] = [
  ['GET', '/entitlements?externalRef=u1', 200, 'private, no-cache', null],
  ['GET', '/entitlements/cus_1', 200, 'private, no-cache', null],
  ['GET', '/entitlements/cus_1/pro_1', 200, 'private, no-cache', null],
  ['GET', '/entitlements/cus_1/pro_1/explanation', 200, 'private, no-cache', null],
  ['GET', '/customers/cus_1', 200, 'no-store', null],
  ['DELETE', '/customers/cus_1', 200, 'no-store', null],
  ['GET', '/products/pro_1/customers', 200, 'no-store', null],
  ['GET', '/changes', 200, 'no-store', null],
  ['GET', '/events', 200, 'no-store', null],
  ['GET', '/events/evt_1/body', 200, 'private, no-cache', null],
  ['GET', '/exports', 200, 'no-store', null],
  ['GET', '/policy', 200, 'no-store', null],
  ['GET', '/policy/diff', 200, 'no-store', null],
  ['POST', '/policy/diff', 202, 'no-store', '/policy/diff'],
  ['POST', '/policy/apply', 202, 'no-store', '/rebuild'],
  ['GET', '/rebuild', 200, 'no-store', null],
  ['POST', '/rebuild', 202, 'no-store', '/rebuild'],
  ['GET', '/rebuild/verification', 200, 'no-store', null],
  ['POST', '/rebuild/verification', 202, 'no-store', '/rebuild/verification'],
  ['GET', '/replays', 200, 'no-store', null],
  ['POST', '/replays', 202, 'no-store', '/replays/rep_1'],
  ['GET', '/replays/rep_1', 200, 'no-store', null],
  ['DELETE', '/replays/rep_1', 200, 'no-store', null],
  ['GET', '/sync', 200, 'no-store', null],
  ['GET', '/sync/memberships', 200, 'no-store', null],
  ['GET', '/sync/plan', 200, 'no-store', null],
  ['GET', '/sync/check', 200, 'no-store', null],
  ['POST', '/sync/run', 200, 'no-store', null],
  ['POST', '/sync/pause', 200, 'no-store', null],
  ['POST', '/sync/resume', 200, 'no-store', null],
  ['GET', '/doctor', 200, 'no-store', null],
  ['GET', '/status', 200, 'no-store', null],
  ['POST', '/reload', 200, 'no-store', null],
  ['POST', '/stop', 202, 'no-store', null],
  ['GET', '/healthz', 200, 'no-store', null],
  ['GET', '/readyz', 200, 'no-store', null],
  ['GET', '/metrics', 200, 'no-store', null],
]

describe('an answer', () => {
  it.each(ANSWERS)('to %s %s is %i, to be kept: %s', async (method, path, status, cache, location) => {
    const call = await openWhole()
    const answer = await call(method, path, { 'content-type': 'application/json' })
    const { headers } = answer
    expect([answer.status, headers.get('cache-control'), headers.get('location')]).toEqual([
      status,
      cache,
      location,
    ])
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.has('etag')).toBe(cache === 'private, no-cache')
    await answer.arrayBuffer()
  })

  it.each(
    ANSWERS.filter(([method, path]) => method === 'GET' && !/doctor|check/.test(path)).map(
      ([, path]) => path,
    ),
  )('to HEAD %s has the headers of GET, and no body', async (path) => {
    const call = await openWhole()
    const [head, got] = [await call('HEAD', path), await call('GET', path)]
    expect(head.status).toBe(got.status)
    const [headType, type] = [head, got].map((one) => one.headers.get('content-type'))
    expect(headType).toBe(type)
    expect(await head.text()).toBe('')
    await got.arrayBuffer()
  })

  it('with the bytes of an event is a file that no browser shows', async () => {
    const call = await openWhole()
    const answer = await call('GET', '/events/evt_%C3%A4%22/body')
    expect(answer.headers.get('content-type')).toBe('application/octet-stream')
    expect(answer.headers.get('content-disposition')).toBe('attachment; filename="evt___.body"')
    expect(answer.headers.get('etag')).toBe(`"${'ab'.repeat(32)}"`)
    expect(await answer.text()).toBe('{"a":1}')
    const again = await call('GET', '/events/evt_1/body', { 'if-none-match': `"${'ab'.repeat(32)}"` })
    expect(again.status).toBe(304)
    const gone = await call('GET', '/events/evt_gone/body')
    expect([gone.status, await gone.json()]).toMatchObject([410, { code: 'body_removed' }])
    for (const sha256 of ['AB'.repeat(32), 'ab', '']) {
      const odd = await call('GET', `/events/evt_1/body?sha256=${sha256}`)
      expect([odd.status, await odd.json()]).toMatchObject([400, { errors: [{ path: 'sha256' }] }])
    }
  })
})

/** What may be sent to every route that reads a body; `strict`: only as JSON. */
const BODIES = [
  ['POST', '/entitlements/lookup', '{"email":"a@example.com"}', 200, 'strict'],
  ['POST', '/entitlements/check', '{"checks":[{"customerId":"cus_1","productId":"pro_1"}]}', 200, 'strict'],
  ['POST', '/customers/cus_1/grants', '{"productId":"pro_1","reason":"why"}', 201, 'any type'],
  ['DELETE', '/customers/cus_1/grants/pro_1', '{"reason":null}', 200, 'any type'],
  ['PUT', '/customers/cus_1/blocks', '{"reason":"why"}', 200, 'any type'],
  ['DELETE', '/customers/cus_1/blocks', '{}', 200, 'any type'],
  ['PUT', '/customers/cus_1/blocks/pro_1', '{"reason":" why "}', 200, 'any type'],
  ['DELETE', '/customers/cus_1/blocks/pro_1', '{"reason":"why"}', 200, 'any type'],
  ['PUT', '/customers/cus_1/identities', '{"messengerId":"7","communityId":null}', 200, 'any type'],
  ['DELETE', '/customers/cus_1', '{"reason":"why"}', 200, 'any type'],
  ['POST', '/customers/cus_1/link-tokens', '{}', 201, 'any type'],
  ['POST', '/customers/cus_1/invites', '{"groupId":null}', 201, 'any type'],
  ['POST', '/policy/diff', '{"named":3}', 202, 'any type'],
  ['POST', '/rebuild/verification', '{}', 202, 'any type'],
  ['POST', '/replays', '{"filter":{"from":"2026-01-31T12:00:00+01:00"},"dryRun":true}', 202, 'strict'],
  ['POST', '/sync/run', '{"sweep":true}', 200, 'strict'],
  ['POST', '/sync/pause', '{}', 200, 'any type'],
  ['POST', '/sync/resume', '{}', 200, 'any type'],
] as const

describe.each(BODIES)('the body of %s %s', (method, path, body, status, type) => {
  const isStrict = type === 'strict'

  it(`is taken as JSON, or ${isStrict ? 'refused' : 'taken'} without a type`, async () => {
    const call = await openWhole()
    const json = { 'content-type': 'application/json' }
    expect((await call(method, path, json, body)).status).toBe(status)
    expect((await call(method, path, {}, body)).status).toBe(isStrict ? 415 : status)
  })

  it('is refused where it is not JSON, is too large, or names what nobody knows', async () => {
    const call = await openWhole()
    const json = { 'content-type': 'application/json' }
    const told = async (sent: string) => {
      const answer = await call(method, path, json, sent)
      return [answer.status, await answer.json()]
    }
    expect(await told('{')).toMatchObject([
      400,
      {
        code: 'invalid_request',
        detail: 'The body is not valid.',
        errors: [{ path: '', message: 'is not JSON' }],
      },
    ])
    expect(await told(JSON.stringify('x'.repeat(1024 * 1024)))).toMatchObject([
      413,
      { code: 'body_too_large' },
    ])
    expect(await told(body.replace('{', `{"zzzzzz":1${body === '{}' ? '' : ','}`))).toMatchObject([
      400,
      { code: 'invalid_request', errors: [{ path: '' }] },
    ])
  })

  it('is read only for those who may ask', async () => {
    const call = await openWhole()
    expect((await call(method, path, bearer('nobody'), '{')).status).toBe(401)
    expect((await call(method, `${path}?environment=test`, {}, '{')).status).toBe(400)
  })
})

it.each([
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
  ['POST', '/replays', '{"filter":{"customer":"cus_1"}}', ['filter']],
  ['POST', '/replays', '{"dryRun":"yes"}', ['dryRun']],
  ['POST', '/policy/diff', '{"named":0}', ['named']],
])('%s %s says of %s which fields are wrong', async (method, path, body, fields) => {
  const call = await openWhole()
  const answer = await call(method, path, { 'content-type': 'application/json' }, body)
  const { errors } = (await answer.json()) as { errors: readonly { readonly path: string }[] }
  expect([answer.status, errors.map((one) => one.path)]).toEqual([400, fields])
})

it.each([
  ['POST', '/customers/a%C2%80b/grants'],
  ['DELETE', '/customers/a%C2%80b'],
  ['POST', '/customers/a%C2%80b/invites'],
])('%s %s acts on no customer who cannot be stored', async (method, path) => {
  const call = await openWhole()
  const body = path.endsWith('grants') ? '{"productId":"p","reason":"why"}' : '{}'
  const answer = await call(method, path, {}, body)
  expect([answer.status, await answer.json()]).toMatchObject([
    400,
    { detail: 'The path is not valid.', errors: [{ path: 'customerId', message: 'is not an id' }] },
  ])
})

it.each(['', 'x'.repeat(256)])('an Idempotency-Key cannot be %j', async (key) => {
  const call = await openWhole()
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
