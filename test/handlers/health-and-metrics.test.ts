import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { FREE_PORT, openFront, signed } from './daemon-front.js'

describe('GET /healthz', () => {
  it('is fine without a key, and tells nothing else', async () => {
    const { url } = await openFront()
    const answer = await request(url).get('/healthz')
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({ status: 'ok' })
  })

  it('fails when the writer has died', async () => {
    const { url } = await openFront({ isWriterAlive: () => false })
    const answer = await request(url).get('/healthz')
    expect(answer.status).toBe(503)
    expect(answer.body.code).toBe('store_unavailable')
  })
})

describe('GET /readyz', () => {
  it('shows the notes of a daemon that is ready', async () => {
    const { url } = await openFront({ readiness: async () => ({ ready: true, notes: ['policy changed'] }) })
    const answer = await request(url).get('/readyz')
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({ status: 'ready', notes: ['policy changed'] })
  })

  it.each([
    [['disk full', 'no lock'], 'disk full; no lock'],
    [[], 'Not ready to store.'],
  ])('says why a daemon is not ready: %j', async (notes, detail) => {
    const { url } = await openFront({ readiness: async () => ({ ready: false, notes }) })
    const answer = await request(url).get('/readyz')
    expect(answer.status).toBe(503)
    expect(answer.body).toMatchObject({ code: 'store_unavailable', detail })
  })

  it('answers 500 without details when asking fails', async () => {
    const { url, logged } = await openFront({
      readiness: async () => {
        throw new Error('the inner workings')
      },
    })
    const answer = await request(url).get('/readyz')
    expect(answer.status).toBe(500)
    expect(answer.headers['content-type']).toBe('application/problem+json')
    expect(answer.text).not.toContain('inner workings')
    expect(JSON.stringify(logged)).toContain('the inner workings')
  })
})

describe('GET /metrics', () => {
  it('never takes a label from a request', async () => {
    const { url, metricsUrl } = await openFront({
      addresses: { ...FREE_PORT, trustProxy: 0, webhooks: null, metrics: FREE_PORT },
    })
    await request(url).post('/webhooks/made-up-name').set(signed('{}')).send('{}')
    await request(url).post('/webhooks/v3').set({ 'x-webhook-event': 'made-up-name' }).send('{}')
    const { text, headers } = await request(metricsUrl).get('/metrics')
    expect(headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/)
    expect(text).toContain('latchkey_signatures_rejected_total{endpoint="v3"')
    expect(text).not.toContain('made-up-name')
  })
})
