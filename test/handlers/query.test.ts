import { describe, expect, it } from 'vitest'
import { ROUTES as TABLE } from '../../src/handlers/routes.js'
import { apiKey, bearer, openFront, SECRET, signed } from './daemon-front.js'

const ENVIRONMENT = 'environment'
const FILTER = 'environment, disposition, type, customerId, endpoint, from, to'

/** Every route that takes a key and JSON, with all parameters that it takes. */
const ROUTES = [
  ['GET', '/entitlements', 'environment, externalRef, at, limit, cursor'],
  ['POST', '/entitlements/lookup', 'environment, at, limit, cursor'],
  ['POST', '/entitlements/check', ENVIRONMENT],
  ['GET', '/entitlements/:customerId', 'environment, at'],
  ['GET', '/entitlements/:customerId/:productId', 'environment, at'],
  ['GET', '/entitlements/:customerId/:productId/explanation', 'environment, at'],
  ['GET', '/customers/:customerId', ENVIRONMENT],
  ['DELETE', '/customers/:customerId', ENVIRONMENT],
  ['POST', '/customers/:customerId/grants', ENVIRONMENT],
  ['DELETE', '/customers/:customerId/grants/:productId', ENVIRONMENT],
  ['PUT', '/customers/:customerId/blocks', ENVIRONMENT],
  ['DELETE', '/customers/:customerId/blocks', ENVIRONMENT],
  ['PUT', '/customers/:customerId/blocks/:productId', ENVIRONMENT],
  ['DELETE', '/customers/:customerId/blocks/:productId', ENVIRONMENT],
  ['PUT', '/customers/:customerId/identities', ENVIRONMENT],
  ['POST', '/customers/:customerId/link-tokens', ENVIRONMENT],
  ['POST', '/customers/:customerId/invites', ENVIRONMENT],
  ['GET', '/products/:productId/customers', 'environment, limit, cursor'],
  ['GET', '/changes', 'environment, limit, cursor'],
  ['GET', '/events', `${FILTER}, limit, cursor`],
  ['GET', '/events/:eventId', ENVIRONMENT],
  ['GET', '/events/:eventId/body', 'environment, sha256'],
  ['GET', '/doctor', 'thorough'],
  ['GET', '/status', 'none'],
  ['POST', '/reload', 'none'],
  ['POST', '/stop', 'none'],
  ['GET', '/exports', `${FILTER}, cursor`],
  ['GET', '/policy', 'none'],
  ['GET', '/policy/diff', 'none'],
  ['POST', '/policy/diff', ENVIRONMENT],
  ['POST', '/policy/apply', 'expect'],
  ['GET', '/rebuild/verification', 'none'],
  ['POST', '/rebuild/verification', ENVIRONMENT],
  ['GET', '/rebuild', ENVIRONMENT],
  ['POST', '/rebuild', 'none'],
  ['GET', '/replays', 'environment, limit, cursor'],
  ['POST', '/replays', ENVIRONMENT],
  ['GET', '/replays/:replayId', ENVIRONMENT],
  ['DELETE', '/replays/:replayId', ENVIRONMENT],
  ['POST', '/imports', 'environment, withManual, dryRun'],
  ['GET', '/sync', ENVIRONMENT],
  ['GET', '/sync/memberships', 'environment, state, target, customerId, limit, cursor'],
  ['GET', '/sync/plan', ENVIRONMENT],
  ['GET', '/sync/check', ENVIRONMENT],
  ['POST', '/sync/run', ENVIRONMENT],
  ['POST', '/sync/pause', 'none'],
  ['POST', '/sync/resume', 'none'],
] as const

async function openWithKeys() {
  const { url } = await openFront({
    apiKeys: () => [
      apiKey('root', {
        scopes: ['read', 'write', 'events', 'metrics', 'admin'],
        environments: ['live', 'sandbox'],
      }),
      apiKey('nothing', { scopes: ['metrics'] }),
    ],
  })
  return async (method: string, path: string, key = 'root') => {
    const answer = await fetch(`${url}${path.replaceAll(':', '')}`, { method, headers: bearer(key) })
    return { status: answer.status, told: (await answer.json()) as Record<string, unknown> }
  }
}

describe('a parameter that a route does not take', () => {
  it.each(ROUTES)('is refused by %s %s, which says that it takes %s', async (method, path, known) => {
    const call = await openWithKeys()
    const message = `is not known here: this route takes ${known}`
    expect(await call(method, `${path}?zzzzzz=1`)).toEqual({
      status: 400,
      told: {
        type: 'urn:latchkey:problem:invalid_request',
        title: 'Invalid request',
        status: 400,
        code: 'invalid_request',
        detail: `The parameter "zzzzzz" ${message}.`,
        errors: [{ path: 'zzzzzz', message }],
      },
    })
  })

  it('is looked for by every route of the table', () => {
    const namesOf = (routes: readonly { readonly method: string; readonly path: string }[]) =>
      routes.map(({ method, path }) => `${method} ${path}`).sort()
    expect(namesOf(TABLE.filter(({ query }) => query !== 'any'))).toEqual(
      namesOf(ROUTES.map(([method, path]) => ({ method, path }))),
    )
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
    const call = await openWithKeys()
    const { status, told } = await call('GET', path)
    expect(status).toBe(400)
    expect(told.errors).toMatchObject([{ message: `is not known here; the closest one is "${meant}"` }])
  })

  it.each(['', '%00', '__proto__', 'constructor', '%E0%A4%A', 'x'.repeat(5_000)])(
    'may be called anything: %j',
    async (name) => {
      const call = await openWithKeys()
      expect(await call('GET', `/events?${name}=1`)).toMatchObject({
        status: 400,
        told: { code: 'invalid_request' },
      })
    },
  )

  it.each(ROUTES)('is told to nobody without the right to ask: %s %s', async (method, path) => {
    const call = await openWithKeys()
    expect(await call(method, `${path}?zzzzzz=1`, 'unknown')).toMatchObject({ status: 401 })
    expect(await call(method, `${path}?zzzzzz=1`, 'nothing')).toMatchObject({ status: 403 })
  })

  it('is no matter to whoever delivers events, or watches', async () => {
    const { url, deliveries } = await openFront({
      apiKeys: () => [apiKey('scraper', { scopes: ['metrics'] })],
    })
    for (const path of ['/healthz', '/readyz', '/metrics']) {
      const answer = await fetch(`${url}${path}?t=1`, { headers: bearer('scraper') })
      expect(answer.status).toBe(200)
      await answer.text()
    }
    const headers = signed('{}', { secret: SECRET })
    const delivered = await fetch(`${url}/webhooks/v3?t=1`, { method: 'POST', headers, body: '{}' })
    expect(delivered.status).toBe(200)
    expect(deliveries).toHaveLength(1)
  })
})

it('the environment that is named is one of the key, also where all are worked on', async () => {
  const { url } = await openFront({ apiKeys: () => [apiKey('live', { scopes: ['admin'] })] })
  const paths = ['/sync/check', '/replays', '/replays/1', '/sync/run']
  for (const path of paths) {
    const method = /check|replays/.test(path) ? 'GET' : 'POST'
    const statusOf = async (environment: string) =>
      (await fetch(`${url}${path}?environment=${environment}`, { method, headers: bearer('live') })).status
    expect([path, await statusOf('sandbox')]).toEqual([path, 403])
    expect([path, await statusOf('test')]).toEqual([path, 400])
  }
})
