import { describe, expect, it } from 'vitest'
import { type Json, KEY } from '../sandbox/service.js'
import { accessBy, backfilled, done, get, listener, openMarket, tell, truthOf } from './market.js'
import type { Relay } from './relay.js'

/** The path of a request, without where its page begins. */
const pathOf = (asked: string): string => asked.replace(/[?&](cursor|page)=[^&]*/, '')

const refuse =
  (status: number, error: string, headers: Readonly<Record<string, string>> = {}): Relay['before'] =>
  (_, res) => {
    const body = JSON.stringify({ success: false, error, message: 'No.' })
    res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
    return true
  }

/** The same, only for the requests that match, and only so often. */
function sometimes(pattern: RegExp, times: number, answer: Relay['before']): Relay['before'] {
  let left = times
  return (path, res, req) => {
    if (!pattern.test(path) || left === 0) return false
    left -= 1
    return answer(path, res, req)
  }
}

const ALWAYS = Number.POSITIVE_INFINITY
const PAYMENTS_PAGE_3 = () => {
  const cursors = new Set<string>()
  return (path: string): boolean => {
    if (!path.startsWith('GET /v3/payments?cursor=')) return false
    cursors.add(path)
    return cursors.size >= 2
  }
}

describe('a service that fails', () => {
  it.each<[string, Relay['before']]>([
    ['429 without Retry-After', refuse(429, 'RATE_LIMITED')],
    ['a limit that calls itself OK', refuse(200, 'RATE_LIMITED')],
    ['500', refuse(500, 'INTERNAL')],
    [
      'a connection that is cut',
      (_, res) => {
        res.writeHead(200, { 'content-type': 'application/json' }).write('{"success":true,"da')
        setImmediate(() => res.destroy())
        return true
      },
    ],
  ])('for a while does not keep a backfill from its end: %s', async (_, answer) => {
    const market = await openMarket()
    const daemon = await listener(market)
    market.relay.before = sometimes(/cursor=/, 5, answer)
    expect(await done(daemon)).toMatchObject({ stored: { total: 10 }, differences: { total: 0 } })
    expect(await accessBy(daemon, market)).toEqual(await truthOf(market))
  })

  it.each<[string, Relay['before'], string]>([
    ['429 without Retry-After', refuse(429, 'RATE_LIMITED'), 'limits how often'],
    ['429 for an hour', refuse(429, 'RATE_LIMITED', { 'retry-after': '3600' }), 'in 3600 seconds'],
    ['500', refuse(500, 'INTERNAL'), 'The payments API fails'],
    ['a key that it no longer takes', refuse(401, 'UNAUTHORIZED'), 'Check provider.sandbox.apiKey'],
    [
      'a page without an envelope',
      (_, res) => {
        res.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Hello</h1>')
        return true
      },
      'is not the payments API’s'.replace('’', "'"),
    ],
  ])('for long has a backfill fail, and the next one goes on where it was: %s', async (_, answer, reason) => {
    const market = await openMarket()
    const daemon = await listener(market)
    const isThirdPage = PAYMENTS_PAGE_3()
    market.relay.before = (path, ...more) => isThirdPage(path) && answer(path, ...more)
    const failed = await backfilled(daemon)
    expect(failed).toMatchObject({ state: 'failed', summary: null, progress: { phase: 'payments', read: 8 } })
    expect(failed.reason).toContain(reason)
    expect(failed.reason).not.toContain(KEY)
    const before = [...market.relay.asked]

    market.relay.before = () => false
    market.relay.asked.splice(0)
    const next = await backfilled(daemon)
    expect(next).toMatchObject({ id: failed.id, state: 'done', summary: { stored: { total: 10 } } })
    const again = market.relay.asked.filter((path) => before.includes(path))
    expect(again).toEqual([before.at(-1)])
    expect(await accessBy(daemon, market)).toEqual(await truthOf(market))
    expect(JSON.stringify(daemon.logged())).not.toContain(KEY)
  })

  it('to know a cursor has the list begin again, but not for ever', async () => {
    const market = await openMarket()
    const daemon = await listener(market)
    const expired = refuse(400, 'INVALID_CURSOR')
    market.relay.before = sometimes(/payments\?cursor=/, 1, expired)
    expect(await done(daemon)).toMatchObject({ read: { payments: 11 }, stored: { total: 10 } })
    expect(market.relay.asked.filter((path) => path === 'GET /v3/payments')).toHaveLength(2)

    market.relay.before = sometimes(/payments\?cursor=/, ALWAYS, expired)
    const failed = await backfilled(daemon)
    expect(failed).toMatchObject({ state: 'failed' })
    expect(failed.reason).toContain('Read the list again from its beginning')
  })

  it('to end a list, whose pages repeat, has the backfill fail with that', async () => {
    const market = await openMarket()
    const daemon = await listener(market)
    let first: unknown
    market.relay.after = (path, json) => {
      if (pathOf(path) !== 'GET /v3/payments') return json
      first ??= json
      return first
    }
    expect(await backfilled(daemon)).toMatchObject({
      state: 'failed',
      reason: expect.stringMatching(/a page repeats|where the next one begins/),
    })
  })
})

it('a backfill that was broken off half a day ago begins again', async () => {
  const market = await openMarket()
  const daemon = await listener(market)
  market.relay.before = refuse(500, 'INTERNAL_SERVER_ERROR')
  const first = await backfilled(daemon)
  expect(first).toMatchObject({ state: 'failed' })
  const { id } = await backfilled(daemon)
  expect(id).toBe(first.id)
  daemon.setNow(market.now + 13 * 60 * 60 * 1000)
  market.relay.before = () => false
  const next = await backfilled(daemon)
  expect(next.id).not.toBe(first.id)
  expect(next).toMatchObject({ state: 'done', summary: { read: { payments: 11, subscriptions: 4 } } })
  expect(await get(daemon, `/backfills/${first.id}`)).toMatchObject({ state: 'stopped' })
})

describe('a record', () => {
  it('that changes while it is read is read again', async () => {
    const market = await openMarket()
    const daemon = await listener(market)
    const { canceled } = market.ids
    // Its cancellation comes after it was listed, and before it is reported.
    const late = market.lost.filter((event) => JSON.stringify(event).includes(canceled?.id ?? ''))
    let isTold = false
    market.relay.before = async (path) => {
      if (!isTold && path === 'GET /v3/payments') {
        isTold = true
        await tell(daemon, late, market.now)
      }
      return false
    }
    expect(await done(daemon)).toMatchObject({ differences: { total: 0 }, stored: { total: 9 } })
    expect(market.relay.asked).toContain(`GET /v3/subscriptions/${canceled?.id}`)
    expect(await accessBy(daemon, market)).toEqual(await truthOf(market))
  })

  it('that keeps changing is listed as different', async () => {
    const market = await openMarket()
    const daemon = await listener(market)
    const { quiet } = market.ids
    const [event] = market.told.filter((one) => JSON.stringify(one).includes(quiet?.id ?? '')).slice(-1)
    let serial = 0
    market.relay.before = async (path) => {
      if (path === 'GET /v3/payments' || path.endsWith(quiet?.id ?? '-')) {
        serial += 1
        await tell(daemon, [{ ...event, id: `evt_again_${serial}` }], market.now)
      }
      return false
    }
    const { differences } = await done(daemon)
    expect(differences).toEqual({
      total: 1,
      byCode: { read_again: 1 },
      sample: [
        {
          ...{ code: 'read_again', recordId: quiet?.id, about: null },
          text: 'may have changed while it was read: read it again',
        },
      ],
    })
    expect(market.relay.asked.filter((path) => path.endsWith(quiet?.id ?? '-'))).toHaveLength(3)
  })

  it('that the lists leave out is asked for, where it gives access, and counts as unknown if it is not there', async () => {
    const market = await openMarket()
    const daemon = await listener(market)
    const hidden = [market.ids.canceled?.id, market.ids.settled?.id, market.ids.refunded?.id]
    market.relay.after = (_, json) => {
      const { items } = json.data ?? {}
      if (items === undefined) return json
      const left = items.filter(({ id }: Json) => !hidden.includes(id))
      return { ...json, data: { ...json.data, items: left } }
    }
    market.relay.before = sometimes(
      new RegExp(`payments/${market.ids.settled?.id}`),
      1,
      refuse(404, 'PAYMENT_NOT_FOUND'),
    )
    const summary = await done(daemon)
    expect(summary).toMatchObject({
      unknown: { total: 1, sample: [{ kind: 'payment', id: market.ids.settled?.id }] },
      stored: { total: 10 },
    })
    expect(await accessBy(daemon, market)).toEqual(await truthOf(market))
  })

  it('that is answered in the place of another is listed as unusable', async () => {
    const market = await openMarket()
    const daemon = await listener(market)
    const { id } = market.ids.settled ?? {}
    market.relay.after = (path, json) => {
      if (path.endsWith(`/payments/${id}`)) return { ...json, data: { ...json.data, id: 'pay_other' } }
      const { items } = json.data ?? {}
      if (items === undefined) return json
      return { ...json, data: { ...json.data, items: items.filter((one: Json) => one.id !== id) } }
    }
    expect(await done(daemon)).toMatchObject({
      differences: { sample: [{ code: 'record_unusable', recordId: id }] },
    })
  })

  it('that cannot be used is listed, and does not keep the others from being read', async () => {
    const market = await openMarket()
    const daemon = await listener(market)
    const { id } = market.ids.settled ?? {}
    market.relay.after = (_, json) => {
      const items = json.data?.items?.map((one: Json) =>
        one.id === id ? { ...one, statusTimeline: 7 } : one,
      )
      return items === undefined ? json : { ...json, data: { ...json.data, items } }
    }
    expect(await done(daemon)).toMatchObject({
      unusable: 1,
      differences: { total: 1, sample: [{ code: 'record_unusable', recordId: id }] },
      stored: { total: 10 },
      read: { payments: 11 },
    })
  })
})
