/* Every route of the table, and every refusal: no route can be forgotten. */

import { describe, expect, it } from 'vitest'
import { errorsOf } from '../../scripts/openapi/document.js'
import { ERRORS, LatchkeyError } from '../../src/errors.js'
import { API_SCOPES } from '../../src/handlers/api-key.js'
import { NO_ID } from '../../src/handlers/body.js'
import type { Route } from '../../src/handlers/route.js'
import { ROUTES, type RouteDeps } from '../../src/handlers/routes.js'
import { API_KEY, ask, runDaemon } from '../daemon/running-daemon.js'
import {
  apiKey,
  BODIES,
  bearer,
  openFront,
  openWhole,
  sharedFront,
  unreadableStore,
  withIds,
} from './daemon-front.js'

const whole = sharedFront(openWhole)

const named = (routes: readonly Route<never>[]) =>
  routes.map((route) => [`${route.method} ${route.path}`, route] as const)

const KEYED = ROUTES.filter(({ scope }) => scope !== null)
const BOTH = ['live', 'sandbox'] as const

interface Sent {
  readonly path?: string
  readonly query?: string
  readonly key?: string | null
}

/** Sends a right request, unless told otherwise. */
function sender(url: string, { method, path: pattern, operationId, bodyType }: Route<never>) {
  const type = bodyType === 'lines' ? 'application/x-ndjson' : 'application/json'
  return async (sent: Sent = {}) => {
    const { path = withIds(pattern), query = '', key = 'right' } = sent
    const body = BODIES[operationId]
    const answer = await fetch(`${url}${path}?${query}`, {
      method,
      headers: { ...(key !== null && bearer(key)), 'content-type': type },
      ...(body !== undefined && { body: Buffer.from(body) }),
    })
    const text = await answer.text()
    const json = /json/.test(answer.headers.get('content-type') ?? '') ? JSON.parse(text) : null
    return { status: answer.status, headers: answer.headers, json }
  }
}

const refused = (status: number, code: string) => ({ status, json: { status, code } })

describe.each(named(KEYED))('%s', (_, route) => {
  const { scope, environments: rule } = route
  const open = async () => {
    const rights = { scopes: API_SCOPES, environments: BOTH }
    const { url } = await openFront({
      apiKeys: () => [
        apiKey('right', rights),
        apiKey('unscoped', { ...rights, scopes: API_SCOPES.filter((one) => one !== scope) }),
        apiKey('sandboxed', { ...rights, environments: ['sandbox'] }),
      ],
    })
    return sender(url, route)
  }

  it('answers nobody without a right key, of its scope and environment, and says nothing of the rest of the request', async () => {
    const send = await open()
    for (const key of [null, 'wrong']) {
      for (const odd of [{}, { query: 'zzzzzz=1' }, { query: 'environment=nowhere' }]) {
        const answer = await send({ key, ...odd })
        expect(answer).toMatchObject(refused(401, 'unauthorized'))
        expect(answer.headers.get('www-authenticate')).toBe('Bearer')
      }
    }
    for (const odd of scope === 'any' ? [] : [{}, { query: 'zzzzzz=1' }]) {
      const answer = await send({ key: 'unscoped', ...odd })
      expect(answer).toMatchObject(refused(403, 'forbidden'))
      expect(answer.json.detail).toContain(`"${scope}"`)
    }
    const query = rule === 'both' ? '' : 'environment=live'
    expect(await send({ key: 'sandboxed', query })).toMatchObject(refused(403, 'forbidden'))
  })
})

describe.each(named(KEYED.filter(({ body }) => body !== undefined)))('the body of %s', (_, route) => {
  const { method, path, status = 200, bodyType } = route
  const type = bodyType === 'lines' ? 'application/x-ndjson' : 'application/json'
  const right = BODIES[route.operationId] ?? ''
  const open = async () => {
    const call = whole()
    return async (body: string, headers: Record<string, string> = { 'content-type': type }) => {
      const answer = await call(method, withIds(path), headers, body)
      return { status: answer.status, json: await answer.json() }
    }
  }

  it(`is taken ${bodyType === undefined ? 'whatever its type is called' : 'only by its type'}`, async () => {
    const send = await open()
    expect(await send(right)).toMatchObject({ status })
    const untyped = bodyType === undefined ? { status } : refused(415, 'media_type_not_supported')
    expect(await send(right, {})).toMatchObject(untyped)
  })

  it('is refused where it is not JSON, is too large, or names what nobody knows', async () => {
    const send = await open()
    const large = JSON.stringify('x'.repeat(2 * 1024 * 1024))
    expect(await send(large)).toMatchObject(refused(413, 'body_too_large'))
    if (bodyType === 'lines') return
    const invalid = (path: string, message: string) => ({
      status: 400,
      json: { code: 'invalid_request', detail: 'The body is not valid.', errors: [{ path, message }] },
    })
    expect(await send('{')).toMatchObject(invalid('', 'is not JSON'))
    const unknown = JSON.stringify({ zzzzzz: 1, ...JSON.parse(right) })
    expect(await send(unknown)).toMatchObject(invalid('zzzzzz', 'is not a known key'))
  })
})

const RIGHT = () => [apiKey('right', { scopes: API_SCOPES, environments: BOTH })]
const plain = sharedFront((atEnd) => openFront({ apiKeys: RIGHT }, atEnd))
const NO_IDS = ['%00', 'cus_%00', '%E0%A4%A', '%', '%zz', '%0d%0aX:%20y', '%7f', 'a'.repeat(256)]

it.each(named(ROUTES))('%s names the part of the path or query that is wrong', async (_, route) => {
  const send = sender(plain().url, route)
  const invalid = (path: string, message: string) => ({
    status: 400,
    json: { code: 'invalid_request', errors: [{ path, message }] },
  })
  for (const [, name = ''] of route.path.matchAll(/:(\w+)/g)) {
    for (const id of NO_IDS) {
      const answer = await send({ path: withIds(route.path.replace(`:${name}`, id)) })
      expect([id, answer]).toMatchObject([id, refused(400, 'invalid_request')])
      if (id === '%00') expect(answer).toMatchObject(invalid(name, NO_ID))
    }
  }
  if (route.query === 'any') return
  const takesEnvironment = route.environments !== 'none' && route.environments !== 'both'
  const names = Object.keys(route.query.shape)
  for (const name of takesEnvironment ? ['environment', ...names] : names) {
    const twice = await send({ query: `${name}=1&${name}=2` })
    expect(twice).toMatchObject(invalid(name, 'is given more than once'))
  }
  if (takesEnvironment) {
    const nowhere = await send({ query: 'environment=nowhere' })
    expect(nowhere).toMatchObject(invalid('environment', 'is neither "live" nor "sandbox"'))
  }
})

/** The others answer from memory. */
const READING = KEYED.filter(({ operationId }) => !['getMetrics', 'createConsoleLink'].includes(operationId))

describe('while the store is away', () => {
  const front = sharedFront((atEnd) => {
    const away = new Proxy(() => {}, {
      get: (_target, name) => (name === 'then' ? undefined : away),
      apply() {
        throw new LatchkeyError('store_unavailable', 'The store cannot be read.')
      },
    }) as never
    const parts = ['changeStream', 'jobs', 'backfills', 'sync', 'control', 'messenger'] as const
    const calls = ['gaps', 'performAct', 'erase', 'readAccess', 'examine', 'importLines', 'keys'] as const
    const deps = Object.fromEntries([...parts, ...calls].map((name) => [name, away])) as Partial<RouteDeps>
    return openFront({ ...deps, db: unreadableStore(atEnd), apiKeys: RIGHT }, atEnd)
  })

  it.each(named(READING))('%s is answered 503, and never as if there were nothing', async (_, route) => {
    const { [route.operationId]: query = '' }: Readonly<Record<string, string>> = {
      findEntitlements: 'externalRef=u1',
      searchCustomers: 'query=u',
      summarizeChanges: 'from=2026-01-01T00:00:00Z',
    }
    const answer = await sender(front().url, route)({ query })
    expect(answer).toMatchObject(refused(503, 'store_unavailable'))
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  })
})

describe('an unknown id', () => {
  const codeOf = (route: Route<never>) => errorsOf(route).find((code) => ERRORS[code]?.[0] === 404)
  // Without Telegram in the config, no invite comes so far.
  const finding = KEYED.filter(
    (route) => codeOf(route) !== undefined && route.operationId !== 'createInvites',
  )

  it('is refused by every route that looks for it', async () => {
    const daemon = await runDaemon()
    for (const route of finding) {
      const { method, operationId } = route
      const answer = await fetch(`${daemon.url}${withIds(route.path)}`, {
        method,
        headers: { Authorization: `Bearer ${API_KEY}` },
        ...(method !== 'GET' && { body: BODIES[operationId] ?? '{}' }),
      })
      const { code } = (await answer.json()) as { code: string }
      expect([operationId, answer.status, code]).toEqual([operationId, 404, codeOf(route)])
    }
    expect((await ask(daemon, '/nowhere')).status).toBe(404)
  })
})
