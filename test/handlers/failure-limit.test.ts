import { createServer } from 'node:http'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createFailureLimit } from '../../src/failure-limit.js'
import { createClientAddress } from '../../src/handlers/authenticate.js'
import { portOf } from '../setup/port-of.js'
import { FREE_PORT, openFront, signed } from './daemon-front.js'

const FORGED = signed('{}', { secret: 'whsec_wrong' })

async function post(url: string, headers: Record<string, string>): Promise<Response> {
  return fetch(`${url}/webhooks/v3`, { method: 'POST', headers, body: '{}' })
}

async function failOften(
  url: string,
  headers: (attempt: number) => Record<string, string>,
): Promise<number[]> {
  const statuses = []
  for (let attempt = 0; attempt < 40; attempt += 1) {
    statuses.push((await post(url, { ...FORGED, ...headers(attempt) })).status)
  }
  return statuses
}

describe('an address with many failed signatures', () => {
  it('is told to wait, while its authentic deliveries are taken as ever', async () => {
    const { url, deliveries } = await openFront()
    const statuses = await failOften(url, () => ({}))
    expect(statuses).toEqual([...Array(30).fill(401), ...Array(10).fill(429)])

    const refused = await post(url, FORGED)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await refused.json()).toMatchObject({ status: 429, code: 'rate_limited' })

    expect((await post(url, signed('{}'))).status).toBe(200)
    expect(deliveries).toHaveLength(1)
  })

  it('is logged up to the limit and once more', async () => {
    const { url, logged } = await openFront()
    await failOften(url, () => ({}))
    expect(logged).toHaveLength(31)
    expect(logged.at(-1)).toMatchObject({
      msg: 'delivery refused: too many from this address, no longer logging them',
      address: '127.0.0.1',
    })
  })

  it('cannot hide behind forged headers of a proxy', async () => {
    const { url } = await openFront()
    const statuses = await failOften(url, (attempt) => ({
      'x-forwarded-for': `203.0.113.${attempt}`,
      forwarded: `for=203.0.113.${attempt}`,
      'x-real-ip': `203.0.113.${attempt}`,
    }))
    expect(statuses.filter((status) => status === 429)).toHaveLength(10)
  })

  it('cannot hide behind what it claims to a trusted proxy', async () => {
    const { url, logged } = await openFront({
      addresses: { ...FREE_PORT, trustProxy: 1, webhooks: null, metrics: null },
    })
    const statuses = await failOften(url, (attempt) => ({
      'x-forwarded-for': `203.0.113.${attempt}, 198.51.100.7`,
    }))
    expect(statuses.filter((status) => status === 429)).toHaveLength(10)
    expect(logged[0]).toMatchObject({ address: '198.51.100.7' })
  })

  it('does not limit another address', async () => {
    const { url } = await openFront({
      addresses: { ...FREE_PORT, trustProxy: 1, webhooks: null, metrics: null },
    })
    await failOften(url, () => ({ 'x-forwarded-for': '198.51.100.7' }))
    const other = await post(url, { ...FORGED, 'x-forwarded-for': '198.51.100.8' })
    expect(other.status).toBe(401)
  })
})

describe('the window of the limit', () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  it('lets an address begin anew once it is over', async () => {
    vi.useFakeTimers({ now: Date.parse('2026-03-01T12:00:00Z') })
    const failures = createFailureLimit({ failures: 1, windowSeconds: 10 })
    expect(await failures('192.0.2.1')).toMatchObject({ limited: false, justLimited: false })
    expect(await failures('192.0.2.1')).toEqual({ limited: true, justLimited: true, retryAfterSeconds: 10 })
    expect(await failures('192.0.2.1')).toMatchObject({ limited: true, justLimited: false })
    vi.advanceTimersByTime(10_001)
    expect(await failures('192.0.2.1')).toMatchObject({ limited: false })
  })

  it('is kept in a bounded number of timers, however many addresses fail', async () => {
    vi.useFakeTimers({ now: Date.parse('2026-03-01T12:00:00Z') })
    const failures = createFailureLimit()
    for (let host = 0; host < 40_000; host += 1) await failures(`2001:db8::${host.toString(16)}`)
    expect(vi.getTimerCount()).toBeLessThanOrEqual(16_384)
  })
})

describe('the address of a client', () => {
  async function addressSeen(trustProxy: number, forwardedFor: string | null): Promise<string> {
    const clientAddress = createClientAddress(trustProxy)
    const server = createServer((req, res) => res.end(clientAddress(req)))
    const headers = forwardedFor === null ? {} : { 'x-forwarded-for': forwardedFor }
    return await (await fetch(`http://127.0.0.1:${await portOf(server)}`, { headers })).text()
  }

  it.each([
    ['the connection itself, with no proxy trusted', 0, '198.51.100.7', '127.0.0.1'],
    ['what one trusted proxy saw', 1, '203.0.113.1, 198.51.100.7', '198.51.100.7'],
    ['what the outer of two trusted proxies saw', 2, '203.0.113.1, 198.51.100.7', '203.0.113.1'],
    ['the furthest there is, where fewer proxies spoke', 3, '198.51.100.7', '198.51.100.7'],
    ['the connection itself, where a proxy says nothing', 1, null, '127.0.0.1'],
    ['the connection itself, where a proxy says no address', 1, 'unknown', '127.0.0.1'],
    ['an IPv6 address too', 1, '2001:db8::7', '2001:db8::7'],
  ])('is %s', async (_name, trustProxy, forwardedFor, expected) => {
    expect(await addressSeen(trustProxy, forwardedFor)).toBe(expected)
  })
})
