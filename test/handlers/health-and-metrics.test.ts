import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { FREE_PORT, openFront, signed } from './daemon-front.js'

const ready = (isReady: boolean, ...notes: readonly string[]) => ({
  readiness: async () => ({ ready: isReady, notes }),
})

const NOT_STORING = { code: 'store_unavailable' }

it.each<[string, string, Parameters<typeof openFront>[0], number, object]>([
  ['/healthz', 'is fine without a key', {}, 200, { status: 'ok' }],
  ['/healthz', 'fails when the writer has died', { isWriterAlive: () => false }, 503, NOT_STORING],
  ['/readyz', 'shows the notes', ready(true, 'old'), 200, { status: 'ready', notes: ['old'] }],
  ['/readyz', 'says why not', ready(false, 'a', 'b'), 503, { ...NOT_STORING, detail: 'a; b' }],
  ['/readyz', 'says at least that', ready(false), 503, { ...NOT_STORING, detail: 'Not ready to store.' }],
])('GET %s %s', async (path, _what, deps, status, told) => {
  const { url } = await openFront(deps)
  const answer = await request(url).get(path)
  expect(answer.status).toBe(status)
  // What is fine tells nothing else.
  if (status === 200) expect(answer.body).toEqual(told)
  expect(answer.body).toMatchObject(told)
})

describe('GET /readyz', () => {
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
