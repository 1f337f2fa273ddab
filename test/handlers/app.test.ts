import type { Express } from 'express'
import express from 'express'
import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { createKeyring } from '../../src/handlers/authenticate.js'
import { createLinks } from '../../src/handlers/console/sessions.js'
import { createApp, mountRoutes } from '../../src/handlers/mount.js'
import { ROUTES } from '../../src/handlers/routes.js'
import { apiKey, bearer, frontDeps, openFront, signed } from './daemon-front.js'
import { exchange, head } from './raw-connection.js'

async function embeddedApp(): Promise<Express> {
  const deps = await frontDeps({ deliveries: [], questions: [], logged: [] })
  const judging = { ...deps, links: createLinks(deps.clock), clientAddress: () => '127.0.0.1' }
  const { authenticate } = createKeyring({ ...judging, apiKeys: () => [apiKey('app')] })
  return createApp(mountRoutes(ROUTES, { ...judging, authenticate }), deps.log)
}

describe('the Express app', () => {
  it.each([
    ['by itself', '', embeddedApp],
    ['below a path of another app', '/access', async () => express().use('/access', await embeddedApp())],
  ])('serves the hot routes too, %s', async (_name, prefix, open) => {
    const app = await open()
    const delivered = await request(app)
      .post(`${prefix}/webhooks/v3`)
      .set(signed('{"a":1}'))
      .set('content-type', 'application/json')
      .send('{"a":1}')
    expect(delivered.body).toEqual({ received: true, id: 'evt_1', disposition: 'applied' })

    const asked = await request(app).get(`${prefix}/entitlements/cus_gold/pro_gold`).set(bearer('app'))
    expect(asked.body).toMatchObject({ productId: 'pro_gold', active: true })
    const refused = await request(app).get(`${prefix}/entitlements/cus_gold`)
    expect(refused.status).toBe(401)
  })

  it('sends protective headers, and none that names what serves it', async () => {
    const { headers } = await request(await embeddedApp()).get('/healthz')
    expect(headers['x-content-type-options']).toBe('nosniff')
    expect(headers['content-security-policy']).toContain("default-src 'none'")
    // Upgrading to HTTPS would break the page where it is served over plain HTTP, which is the default.
    expect(headers['content-security-policy']).not.toContain('upgrade-insecure-requests')
    expect(headers['x-powered-by']).toBeUndefined()
  })

  it('sends them with what the routes about customers answer, too', async () => {
    const { url } = await openFront()
    const { headers } = await request(url).get('/changes').set(bearer('app'))
    expect(headers['content-security-policy']).toContain("default-src 'none'")
    expect(headers['cache-control']).toBe('no-store')
  })
})

describe('a whole URL as the request target', () => {
  it.each([
    ['POST http://front/webhooks/v3', 200],
    ['GET http://front/entitlements/cus_gold?environment=live', 200],
    ['GET http://front/healthz', 200],
    ['GET http://front/nowhere', 404],
    ['GET http://[', 404],
    ['GET http://[/healthz', 404],
  ])('is answered like its path: %s', async (line, status) => {
    const { url } = await openFront()
    const headers = { ...bearer('app'), ...signed('{}'), 'content-length': '2', connection: 'close' }
    const answer = await exchange(url, `${head(line, headers)}{}`)
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    if (status === 404) expect(answer).toContain('"code":"route_not_found"')
  })
})
