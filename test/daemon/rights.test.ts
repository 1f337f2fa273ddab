import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { entitlement } from './observed.js'
import { writeBeside } from './other-writer.js'
import {
  API_KEY,
  ask,
  LIVE_SECRET,
  type RunningDaemon,
  runDaemon,
  SANDBOX_SECRET,
  send,
  sharedDaemon,
} from './running-daemon.js'
import { storedEvents } from './stored.js'
import { CUSTOMER, PRODUCT, wireEvent } from './wire-events.js'

const GRANT = wireEvent('payment.authorized')
const SANDBOX_GRANT = wireEvent('payment.authorized', { environment: 'sandbox', customer: 'cus_sandbox' })
const PATHS = [`/entitlements/${CUSTOMER}`, `/entitlements/${CUSTOMER}/${PRODUCT}`]
const UNKNOWN_PATHS = PATHS.map((path) => path.replace(CUSTOMER, 'cus_nobody'))

function bearer(key: string): Record<string, string> {
  return { Authorization: `Bearer ${key}` }
}

/** A key whose name is its whole text. */
function key(name: string, scopes: readonly string[], environments: readonly string[]) {
  const hash = `sha256:${createHash('sha256').update(name).digest('hex')}`
  return { name, hash, scopes, environments }
}

const KEYS = [
  key('live-reader', ['read'], ['live']),
  key('sandbox-reader', ['read'], ['sandbox']),
  key('scraper', ['metrics'], ['live', 'sandbox']),
  key('writer', ['write', 'events', 'admin'], ['live', 'sandbox']),
]

const shared = sharedDaemon()

describe('a question without a right key', () => {
  it.each<[name: string, headers: Record<string, string>]>([
    ['no key', { Authorization: '' }],
    ['a wrong key', bearer('wrong')],
    ['a longer key', bearer(`${API_KEY}x`)],
    ['a shorter key', bearer(API_KEY.slice(0, -1))],
    ['the hash of the key', bearer(createHash('sha256').update(API_KEY).digest('hex'))],
    ['the key without its scheme', { Authorization: API_KEY }],
    ['the key under another scheme', { Authorization: `Basic ${API_KEY}` }],
    ['two keys', { Authorization: `Bearer ${API_KEY} ${API_KEY}` }],
  ])('is answered alike for a known and an unknown customer: %s', async (_name, headers) => {
    // One for all would limit the address after some thirty of them.
    const daemon = await runDaemon()
    await send(daemon, GRANT)
    const answers = await Promise.all(
      [...PATHS, ...UNKNOWN_PATHS, `${PATHS[0]}?environment=nowhere`].map(async (path) => {
        const answer = await ask(daemon, path, headers)
        const { date: _date, ...shown } = Object.fromEntries(answer.headers)
        return { status: answer.status, shown, text: await answer.text() }
      }),
    )
    const [first, second] = answers
    expect(first?.status).toBe(401)
    expect(first?.shown['www-authenticate']).toBe('Bearer')
    expect(JSON.parse(first?.text ?? '')).toMatchObject({ status: 401, code: 'unauthorized' })
    // What a page could do with an answer is said by all routes but the busiest.
    expect(answers).toEqual([first, second, first, second, first])
    for (const { status, text } of answers)
      expect({ status, text }).toEqual({ status: first?.status, text: first?.text })
    expect(JSON.stringify(daemon.logged())).not.toContain(API_KEY)
  })
})

describe('a question beyond the rights of its key', () => {
  const limited = sharedDaemon({ config: { api: { keys: KEYS } } })

  it.each([
    ['live-reader', `${PATHS[0]}?environment=sandbox`],
    ['sandbox-reader', `${PATHS[1]}?environment=live`],
    ['scraper', PATHS[0] ?? ''],
    ['writer', PATHS[1] ?? ''],
    ['writer', '/metrics'],
    ['live-reader', '/metrics'],
  ])('is forbidden: %s asks %s', async (name, path) => {
    await send(limited(), GRANT)
    const answer = await ask(limited(), path, bearer(name))
    expect(answer.status).toBe(403)
    expect(await answer.json()).toMatchObject({ status: 403, code: 'forbidden' })
  })
})

describe('the environment of a question', () => {
  it('is the only one of its key, whatever is configured, and stays that', async () => {
    const endpoints = { sandbox: { environment: 'sandbox', secrets: [SANDBOX_SECRET] } }
    const daemon = await runDaemon({ config: { endpoints, api: { keys: KEYS } } })
    await send(daemon, SANDBOX_GRANT, { endpoint: 'sandbox' })
    const asked = async (name: string) => {
      const answer = await ask(daemon, `/entitlements/cus_sandbox/${PRODUCT}`, bearer(name))
      return [answer.status, ((await answer.json()) as { active?: boolean }).active]
    }
    expect(await asked('sandbox-reader')).toEqual([200, true])
    expect(await asked('live-reader')).toEqual([200, false])
    const live = { environment: 'live', secrets: [LIVE_SECRET] }
    await daemon.readAgain({ endpoints: { ...endpoints, live }, api: { keys: KEYS } })
    expect(await asked('sandbox-reader')).toEqual([200, true])
    expect(await asked('live-reader')).toEqual([200, false])
  })

  async function customersSeen(daemon: RunningDaemon, query: string): Promise<unknown[]> {
    const both = [CUSTOMER, 'cus_sandbox']
    const shown = await Promise.all(both.map((customer) => entitlement(daemon, { customer, query })))
    return both.filter((_customer, index) => shown[index]?.active)
  }

  it('is live for a key of both unless another is named, and shows nothing of the other', async () => {
    const daemon = await runDaemon()
    await send(daemon, GRANT)
    await send(daemon, SANDBOX_GRANT, { endpoint: 'sandbox' })
    expect(await customersSeen(daemon, '')).toEqual([CUSTOMER])
    expect(await customersSeen(daemon, '?environment=live')).toEqual([CUSTOMER])
    expect(await customersSeen(daemon, '?environment=sandbox')).toEqual(['cus_sandbox'])
  })

  it('is the sandbox where nothing else is configured', async () => {
    const endpoints = { sandbox: { environment: 'sandbox', secrets: [SANDBOX_SECRET] } }
    const daemon = await runDaemon({ config: { endpoints } })
    await send(daemon, SANDBOX_GRANT, { endpoint: 'sandbox' })
    expect(await customersSeen(daemon, '')).toEqual(['cus_sandbox'])
  })

  it.each(['environment=LIVE', 'environment=', 'environment=live&environment=live'])(
    'can not be ?%s',
    async (query) => {
      const answer = await ask(shared(), `${PATHS[0]}?${query}`)
      expect(answer.status).toBe(400)
      expect(await answer.json()).toMatchObject({
        code: 'invalid_request',
        errors: [{ path: 'environment' }],
      })
    },
  )
})

describe('a store that can not be read', () => {
  /** Takes away, or gives back, the table that every answer is read from. */
  function rename(daemon: RunningDaemon, from: string, to: string): Promise<void> {
    return writeBeside(daemon, (db) => db.schema.alterTable(from).renameTo(to).execute())
  }

  it('is never answered as "not entitled", acknowledges nothing, and may come back', async () => {
    const endpoints = { live: { environment: 'live', secrets: [LIVE_SECRET] } }
    const daemon = await runDaemon({ config: { endpoints } })
    await send(daemon, GRANT)
    await rename(daemon, 'sources', 'sources_away')
    for (const path of [...PATHS, ...UNKNOWN_PATHS]) {
      const answer = await ask(daemon, path)
      expect(answer.status).toBe(503)
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
      const text = await answer.text()
      expect(JSON.parse(text)).toMatchObject({ status: 503, code: 'store_unavailable' })
      expect(text).not.toMatch(/active|none|sources/)
    }
    const refund = wireEvent('payment.refunded', { minutes: 10 })
    const refused = await send(daemon, refund)
    expect(refused.status).toBe(503)
    expect(await refused.json()).toMatchObject({ status: 503, code: 'not_stored' })
    expect(await storedEvents(daemon)).toHaveLength(1)

    await rename(daemon, 'sources_away', 'sources')
    expect(await entitlement(daemon)).toMatchObject({ active: true })
    expect(await (await send(daemon, refund)).json()).toMatchObject({ disposition: 'applied' })
    expect(await entitlement(daemon)).toMatchObject({ active: false, status: 'refunded' })
  })
})
