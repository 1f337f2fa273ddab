import { inspect } from 'node:util'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { createPaymentsApi, type PaymentsApi } from '../../src/payments-api/client.js'
import { isPaymentsApiError, type PaymentsApiError } from '../../src/payments-api/failure.js'
import { eventually } from '../setup/eventually.js'
import {
  type Asked,
  customers,
  cut,
  html,
  json,
  KEY,
  numbered,
  type Odd,
  oddService,
  ok,
  page,
  refusal,
} from './odd-service.js'

const CUSTOMER = ok({ id: 'cus_1' })
const get = (api: PaymentsApi, signal?: AbortSignal) => api.customers.get('cus_1', { signal })

/** The failure of a call, which must fail. */
async function failureOf(call: Promise<unknown>): Promise<PaymentsApiError> {
  const error: unknown = await call.then(
    () => new Error('nothing failed'),
    (failure: unknown) => failure,
  )
  if (!isPaymentsApiError(error)) throw error
  return error
}

/** Never answers. */
const silent: Odd = () => {}
const tooLarge: Odd = (_req, res) => {
  const chunk = Buffer.alloc(1024 * 1024, 0x20)
  const write = () => {
    while (!res.destroyed && res.write(chunk));
  }
  res.writeHead(200, { 'content-type': 'application/json' }).on('drain', write)
  write()
}

const compressed = gzipSync(Buffer.alloc(32 * 1024 * 1024, 0x20))
const unpacksToMore: Odd = (_req, res) => {
  res.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(compressed)
}

describe('a call is tried again', () => {
  it.each<[string, Odd]>([
    ['a limit on calls', refusal(429, 'RATE_LIMITED')],
    ['a failure of the service', refusal(500, 'INTERNAL_SERVER_ERROR')],
    ['the page of a proxy that finds no service', html(503)],
    ['a connection that was cut', cut],
  ])('after %s, and waits longer each time', async (_what, odd) => {
    const { api, asked, waits } = await oddService([odd, odd, odd, CUSTOMER])
    expect((await get(api)).record.id).toBe('cus_1')
    expect(asked).toHaveLength(4)
    expect(waits.filter((_, index) => index < 1)).toEqual([250])
    expect(waits.toSorted((a, b) => a - b)).toEqual(waits)
  })

  it('after no answer in time, and a slow body counts as none', async () => {
    const slow: Odd = (_req, res) => void res.writeHead(200).write('{')
    const { api, asked } = await oddService([silent, slow, CUSTOMER], { timeoutMs: 200 })
    expect((await get(api)).record.id).toBe('cus_1')
    expect(asked).toHaveLength(3)
    const other = await oddService([silent], { timeoutMs: 50, retries: 1 })
    const message = 'The payments API did not answer GET /v3/customers/cus_1 within 0.05 s. Try again later.'
    expect(await failureOf(get(other.api))).toMatchObject({ kind: 'timed_out', message })
  })

  it.each<[string, (now: number) => string, number]>([
    ['seconds', () => '7', 7_000],
    ['a date', (now) => new Date(now + 9_000).toUTCString(), 9_000],
    ['a date that has passed', (now) => new Date(now - 9_000).toUTCString(), 0],
    ['what nobody can read', () => 'soon', 0],
  ])('once the wait that the service asks for is over, given as %s', async (_form, header, asked) => {
    const now = Date.UTC(2026, 0, 1)
    for (const status of [429, 503]) {
      const limited = refusal(status, 'RATE_LIMITED', {}, { 'retry-after': header(now) })
      const { api, waits } = await oddService([limited, CUSTOMER])
      await get(api)
      expect(waits).toEqual([asked + 250])
    }
  })

  it('no sooner than any call was asked to wait', async () => {
    const limited = refusal(429, 'RATE_LIMITED', {}, { 'retry-after': '60' })
    const { api, waits } = await oddService([limited, CUSTOMER], { retries: 0 })
    expect(await failureOf(get(api))).toMatchObject({ kind: 'rate_limited', retryAfterSeconds: 60 })
    expect(waits).toEqual([])
    await get(api)
    await get(api)
    expect(waits).toEqual([60_000])
  })

  it('only so often, and not at all where the service asks for a long wait', async () => {
    const heard: number[] = []
    const onRetry = (_failure: PaymentsApiError, waitMs: number) => void heard.push(waitMs)
    const failing = await oddService([html(500)], { retries: 3, onRetry })
    expect(await failureOf(get(failing.api))).toMatchObject({
      kind: 'server_error',
      code: 'payments_api_unavailable',
      status: 500,
    })
    expect(failing.asked).toHaveLength(4)
    expect(heard).toEqual([250, 500, 1000])

    const limited = refusal(429, 'RATE_LIMITED', {}, { 'retry-after': '3600' })
    const { api, asked } = await oddService([limited])
    expect(await failureOf(get(api))).toMatchObject({
      kind: 'rate_limited',
      retryAfterSeconds: 3600,
      message: expect.stringContaining('Try again in 3600 seconds.'),
    })
    expect(asked).toHaveLength(1)
  })

  it('with the same idempotency key, and waits for the first request with it to end', async () => {
    const inFlight = refusal(409, 'IDEMPOTENCY_KEY_CONFLICT')
    const created = ok({ id: 'whep_1', secret: 'whsec_1' })
    const { api, asked } = await oddService([cut, inFlight, created])
    const endpoint = { url: 'https://shop.example/hook' }
    await api.webhookEndpoints.create(endpoint, { idempotencyKey: 'k-1' })
    expect(asked).toHaveLength(3)
    expect(new Set(asked.map(({ headers }) => headers['idempotency-key']))).toEqual(new Set(['k-1']))
    expect(new Set(asked.map(({ body }) => body))).toEqual(new Set([JSON.stringify(endpoint)]))
    for (const idempotencyKey of ['', 'a b', 'x'.repeat(256)])
      await expect(api.webhookEndpoints.create(endpoint, { idempotencyKey })).rejects.toThrow(TypeError)
    expect(asked).toHaveLength(3)
  })
})

describe('a call fails at once', () => {
  it.each<[string, Odd, Partial<PaymentsApiError>]>([
    ['a page of a website', html(), { kind: 'answer_invalid', code: 'payments_api_unreadable' }],
    ['a missing page of a website', html(404), { kind: 'answer_invalid', status: 404 }],
    ['JSON without an envelope', json({ id: 'cus_1' }), { kind: 'answer_invalid' }],
    ['an envelope without data', json({ success: true }), { kind: 'answer_invalid' }],
    [
      'a failure that calls itself OK',
      json({ success: false, error: 'NOT_FOUND' }),
      { kind: 'refused', serviceCode: 'NOT_FOUND' },
    ],
    [
      'a success that is refused',
      json({ success: true, data: { id: 'cus_1' } }, 400),
      { kind: 'answer_invalid' },
    ],
    ['a list', json([]), { kind: 'answer_invalid' }],
    ['nothing', (_req, res) => void res.end(), { kind: 'answer_invalid' }],
    ['JSON that goes too deep', (_req, res) => void res.end('['.repeat(5_000)), { kind: 'answer_invalid' }],
    [
      'a record without id',
      ok({ email: 'ada@example.com' }),
      { kind: 'answer_invalid', issues: [{ path: 'id', message: expect.any(String) }] },
    ],
    ['another record', ok({ id: 'cus_2' }), { kind: 'answer_invalid' }],
    ['more than anybody can use', tooLarge, { kind: 'answer_too_large', code: 'payments_api_unreadable' }],
    ['little that unpacks to more', unpacksToMore, { kind: 'answer_too_large' }],
    [
      'what is not there',
      refusal(404, 'CUSTOMER_NOT_FOUND'),
      { kind: 'not_found', serviceCode: 'CUSTOMER_NOT_FOUND' },
    ],
    [
      'an object in the place of the code',
      refusal(404, { code: 'NOT_FOUND', message: 'Gone.' }),
      { kind: 'not_found', serviceCode: 'NOT_FOUND' },
    ],
    [
      'a key that does not count',
      refusal(401, 'UNAUTHORIZED'),
      { kind: 'key_refused', code: 'payments_api_refused' },
    ],
    ['a key that may not', refusal(403, 'INSUFFICIENT_ROLE'), { kind: 'key_refused' }],
    ['a key that was used before', refusal(422, 'IDEMPOTENCY_KEY_CONFLICT'), { kind: 'refused' }],
  ])('for %s', async (_what, odd, expected) => {
    const { api, asked } = await oddService([odd])
    expect(await failureOf(get(api))).toMatchObject({ ...expected, isRetryable: false })
    expect(asked).toHaveLength(1)
  })

  it('for a redirect, and the key goes nowhere else', async () => {
    const other = await oddService([CUSTOMER])
    for (const status of [301, 302, 307, 308]) {
      const away: Odd = (req, res) => void res.writeHead(status, { location: `${other.url}${req.url}` }).end()
      const { api } = await oddService([away])
      expect(await failureOf(get(api))).toMatchObject({
        kind: 'redirected',
        code: 'payments_api_unreadable',
        message: expect.stringContaining('Check provider.sandbox.baseUrl'),
      })
    }
    expect(other.asked).toEqual([])
  })

  it('with the fields that the service refuses', async () => {
    const fieldErrors = [{ field: 'email', message: 'must be an email' }]
    const { api } = await oddService([refusal(422, 'VALIDATION_ERROR', { data: { fieldErrors } })])
    expect(await failureOf(api.customers.findByEmail('ada'))).toMatchObject({
      kind: 'refused',
      issues: [{ path: 'email', message: 'must be an email' }],
      message: 'The payments API refused GET /v3/customers (422 VALIDATION_ERROR). It says: No.',
    })
  })
})

describe('a list', () => {
  /** The ids that a walk shows, and why it ended. */
  async function walk(pages: AsyncGenerator<{ items: readonly { record: { id: string } }[] }>) {
    const ids: string[] = []
    try {
      for await (const { items } of pages) ids.push(...items.map(({ record }) => record.id))
      return { ids }
    } catch (error) {
      if (isPaymentsApiError(error)) return { ids, kind: error.kind }
      throw error
    }
  }

  it('is asked for as much as possible, from where it was left', async () => {
    const { api, asked } = await oddService([page(customers('cus_1'), 'a/b'), page(customers('cus_2'))])
    expect(await walk(api.customers.pages({ from: 'start' }))).toEqual({ ids: ['cus_1', 'cus_2'] })
    expect(asked.map(({ url }) => url)).toEqual([
      '/v3/customers?limit=100&cursor=start',
      '/v3/customers?limit=100&cursor=a%2Fb',
    ])
    const v2 = await oddService([numbered(customers(), 1, 0)])
    const withStatus = v2.api.legacy?.payments.withStatus('CHARGEBACK')
    expect(await withStatus?.list()).toEqual({ items: [], unreadable: [], next: null })
    expect(v2.asked[0]?.url).toBe('/api/payment?status=CHARGEBACK&page=1&limit=25')
  })

  it.each<[string, readonly Odd[], { ids: string[]; kind: string }]>([
    [
      'a cursor expires',
      [page(customers('cus_1'), 'c1'), refusal(422, 'VALIDATION_ERROR')],
      { ids: ['cus_1'], kind: 'cursor_refused' },
    ],
    [
      'a cursor is gone',
      [page(customers('cus_1'), 'c1'), refusal(410, 'BAD_REQUEST')],
      { ids: ['cus_1'], kind: 'cursor_refused' },
    ],
    [
      'a page repeats under its own cursor',
      [page(customers('cus_1'), 'c1'), page(customers('cus_2'), 'c1')],
      { ids: ['cus_1'], kind: 'answer_invalid' },
    ],
    [
      'a page repeats under another cursor',
      [page(customers('cus_1'), 'c1'), page(customers('cus_1'), 'c2')],
      { ids: ['cus_1'], kind: 'answer_invalid' },
    ],
    [
      'the cursors turn in a circle',
      [page(customers('cus_1'), 'c1'), page(customers('cus_2'), 'c2'), page(customers('cus_3'), 'c1')],
      { ids: ['cus_1', 'cus_2'], kind: 'answer_invalid' },
    ],
    [
      'there is more, and no cursor',
      [ok({ items: customers('cus_1'), pagination: { nextCursor: null, hasMore: true } })],
      { ids: [], kind: 'answer_invalid' },
    ],
    ['a page has no items', [ok({ pagination: {} })], { ids: [], kind: 'answer_invalid' }],
  ])('ends with a failure where %s', async (_what, answers, expected) => {
    const { api } = await oddService(answers)
    expect(await walk(api.customers.pages())).toEqual(expected)
  })

  it('is asked for in smaller pages where one is too large, up to one record', async () => {
    const long = (length: number): Odd =>
      page([{ id: 'cus_long', name: 'x'.repeat(length) }, ...customers('cus_2')], 'c2')
    const limits = (asked: readonly Asked[]) => asked.map(({ url }) => /limit=(\d+)/.exec(url)?.[1])
    const too = long(5 * 1024 * 1024)
    const { api, asked } = await oddService([too, too, long(10), page(customers('cus_3'))])
    expect(await walk(api.customers.pages())).toEqual({ ids: ['cus_long', 'cus_2', 'cus_3'] })
    expect(limits(asked)).toEqual(['100', '50', '25', '25'])
    const hopeless = await oddService([too])
    expect(await walk(hopeless.api.customers.pages())).toEqual({ ids: [], kind: 'answer_too_large' })
    expect(limits(hopeless.asked)).toEqual(['100', '50', '25', '12', '6', '3', '1'])
  })

  it('by numbers ends with a failure where a page is not the one that was asked for', async () => {
    const payments = (...ids: readonly string[]) => ids.map((id) => ({ id, status: 'CHARGEBACK' }))
    const same = await oddService([numbered(payments('pay_1'), 1, 3)])
    const chargebacks = same.api.legacy?.payments.withStatus('CHARGEBACK')
    if (chargebacks === undefined) throw new Error('v2 is configured')
    expect(await walk(chargebacks.pages())).toEqual({ ids: ['pay_1'], kind: 'answer_invalid' })

    const whole = await oddService([numbered(payments('pay_1'), 1, 2), numbered(payments('pay_2'), 2, 2)])
    const both = whole.api.legacy?.payments.withStatus('CHARGEBACK')
    expect(both && (await walk(both.pages()))).toEqual({ ids: ['pay_1', 'pay_2'] })
  })

  it('shows records that can’t be read beside the others, and keeps unknown fields and statuses', async () => {
    const payment = {
      ...{ id: 'pay_1', customerId: null, productId: null, subscriptionId: null, status: 'NEW_STATUS' },
      ...{ statusTimeline: [], createdAt: '2026-01-01T00:00:00Z', updatedAt: '2026-01-01T00:00:00Z' },
      unheardOf: { deep: [1] },
    }
    const { createdAt: _, ...undated } = payment
    const odd = [{ ...payment, id: 5 }, undated, null, 'pay_4', { ...payment, updatedAt: 'yesterday' }]
    const { api } = await oddService([page([payment, ...odd])])
    const { items, unreadable, next } = await api.payments.list()
    expect(next).toBeNull()
    expect(items).toEqual([{ record: payment, raw: payment }])
    expect(unreadable.map(({ raw }) => raw)).toEqual(odd)
    expect(unreadable.map(({ issues }) => issues.map(({ path }) => path))).toEqual([
      ['id'],
      ['createdAt'],
      [''],
      [''],
      ['updatedAt'],
    ])
  })
})

describe('a signal', () => {
  const reason = new Error('stopped')

  it('ends a call that waits for an answer, for its body, for its turn and for another try', async () => {
    const halfway: Odd = (_req, res) => void res.writeHead(200).write('{')
    for (const odd of [silent, halfway]) {
      const { api, asked } = await oddService([odd], { atOnce: 1 })
      const stopping = new AbortController()
      const both = Promise.allSettled([get(api, stopping.signal), get(api, stopping.signal)])
      await eventually(() => expect(asked).toHaveLength(1))
      stopping.abort(reason)
      const rejected = { status: 'rejected', reason }
      expect(await both).toEqual([rejected, rejected])
      await expect(get(api, stopping.signal)).rejects.toBe(reason)
    }
    const stopping = new AbortController()
    const failing = await oddService([html(500)], {
      sleep: () => {
        stopping.abort(reason)
        return new Promise(() => {})
      },
    })
    await expect(get(failing.api, stopping.signal)).rejects.toBe(reason)
    expect(failing.asked).toHaveLength(1)
  })

  it('of one call leaves the others alone', async () => {
    const { api, asked } = await oddService([silent, CUSTOMER], { atOnce: 1 })
    const stopping = new AbortController()
    const first = get(api, stopping.signal)
    const second = get(api)
    await eventually(() => expect(asked).toHaveLength(1))
    stopping.abort(reason)
    await expect(first).rejects.toBe(reason)
    expect((await second).record.id).toBe('cus_1')
  })
})

it('no more calls than allowed are under way at once', async () => {
  let most = 0
  const held: (() => void)[] = []
  const inPairs: Odd = (req, res) => {
    held.push(() => ok({ id: req.url?.split('/').at(-1) })(req, res))
    most = Math.max(most, held.length)
    if (held.length < 2) return
    setImmediate(() => {
      for (const answer of held.splice(0)) answer()
    })
  }
  const { api, asked } = await oddService([inPairs], { atOnce: 2 })
  const ids = ['cus_1', 'cus_2', 'cus_3', 'cus_4', 'cus_5', 'cus_6']
  const found = await Promise.all(ids.map((id) => api.customers.get(id)))
  expect(found.map(({ record }) => record.id)).toEqual(ids)
  expect([most, asked.length]).toEqual([2, 6])
})

it('long and short answers are read whole, one after the other and at once', async () => {
  const nameOf = (id: string) => id.slice(-1).repeat(Number(/\d+/.exec(id)?.[0]))
  const inParts: Odd = (req, res) => {
    const id = req.url?.split('/').at(-1) ?? ''
    const text = JSON.stringify({ success: true, data: { id, name: nameOf(id) } })
    res.writeHead(200, { 'content-type': 'application/json' }).write(text.slice(0, 40))
    setImmediate(() => res.end(text.slice(40)))
  }
  const { api } = await oddService([inParts])
  const read = async (id: string) => (await api.customers.get(id)).record.name
  const ids = ['cus_90000a', 'cus_10b', 'cus_200000c', 'cus_70000d', 'cus_5e']
  const inTurn: unknown[] = []
  for (const id of ids) inTurn.push(await read(id))
  expect(inTurn).toEqual(ids.map(nameOf))
  expect(await Promise.all(ids.map(read))).toEqual(ids.map(nameOf))
})

describe('the API key', () => {
  it('goes into a header, and into no address', async () => {
    const { api, asked } = await oddService([CUSTOMER])
    await get(api)
    expect(asked[0]?.headers['x-service-api-key']).toBe(KEY)
    expect(asked[0]?.url).not.toContain(KEY)
  })

  it.each([
    ['sandbox', 'sk_live_0123456789abcdef'],
    ['live', 'sk_sandbox_0123456789abcdef'],
    ['live', 'pk_live_0123456789abcdef'],
    ['live', 'sk_live_'],
    ['live', 'sk_live_0123\n4567'],
    ['live', 'sk_live_ä0123456789'],
  ] as const)(
    'of another kind than %s is refused before any call, and not shown',
    async (environment, apiKey) => {
      const options = { baseUrl: 'http://127.0.0.1:9', clock: () => 0, random: () => 0 }
      const error = await failureOf(
        (async () => createPaymentsApi({ ...options, environment, apiKey }).customers.get('cus_1'))(),
      )
      expect(error.kind).toBe('key_mismatch')
      expect(error.message).toContain(`begins with sk_${environment}_`)
      expect(`${inspect(error, { depth: 9, showHidden: true })}${JSON.stringify(error)}`).not.toContain(
        '0123',
      )
    },
  )

  it('is in no error, whatever the service repeats of it', async () => {
    const echo = `The key ${KEY} and sk_live_0f1e2d3c, whsec_of_somebody`
    const fieldErrors = [{ field: KEY, message: echo }]
    const { api: unreachable } = await oddService([CUSTOMER], { baseUrl: 'http://127.0.0.1:1', retries: 0 })
    const failures = [await failureOf(get(unreachable))]
    const odd: readonly Odd[] = [
      cut,
      silent,
      html(500),
      html(),
      tooLarge,
      ...[400, 401, 403, 404, 409, 422, 429, 500].map((status) =>
        refusal(status, echo, { message: echo, data: { fieldErrors } }, { 'x-echo': KEY }),
      ),
      refusal(409, 'IDEMPOTENCY_KEY_CONFLICT', { message: echo }),
      refusal(404, { code: KEY, message: echo }),
      json({ success: true, data: { id: KEY, [KEY]: KEY } }),
      (_req, res) => void res.writeHead(302, { location: `https://elsewhere.example/?key=${KEY}` }).end(),
    ]
    for (const one of odd) {
      const { api } = await oddService([one], { retries: 0, timeoutMs: 1_000 })
      failures.push(await failureOf(get(api)))
    }
    const { api } = await oddService([refusal(422, 'VALIDATION_ERROR', { message: echo })])
    failures.push(await failureOf(api.customers.list({ from: KEY })))
    const kinds = new Set(failures.map(({ kind }) => kind))
    expect([...kinds].sort()).toEqual([
      'answer_invalid',
      'answer_too_large',
      'cursor_refused',
      'in_flight',
      'key_refused',
      'not_found',
      'rate_limited',
      'redirected',
      'refused',
      'server_error',
      'timed_out',
      'unreachable',
    ])
    for (const failure of failures) {
      const shown = `${inspect(failure, { depth: 9, showHidden: true })}${JSON.stringify(failure)}${failure.stack}`
      expect(shown).not.toContain(KEY.slice(12, 20))
      expect(shown).not.toContain('0f1e2d3c')
      expect(shown).not.toContain('of_somebody')
      expect(failure.cause).toBeUndefined()
    }
  })
})
