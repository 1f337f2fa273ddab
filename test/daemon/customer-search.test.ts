import { describe, expect, it } from 'vitest'
import { keyEntry } from '../world.js'
import { ask, call, LIVE_SECRET, type RunningDaemon, send, sharedDaemon } from './running-daemon.js'
import { wireEvent } from './wire-events.js'

const READER = 'lk_reader'
const WRITER = 'lk_writer'

const daemon = sharedDaemon({
  config: {
    endpoints: {
      live: { environment: 'live', secrets: [LIVE_SECRET] },
      sandbox: { environment: 'sandbox', secrets: ['whsec_sandbox_0123456789'] },
    },
    api: {
      keys: [
        keyEntry('reader', READER),
        { ...keyEntry('writer', WRITER), scopes: ['read', 'write'], environments: ['live', 'sandbox'] },
        { ...keyEntry('operator', 'lk_test_key'), scopes: ['write', 'admin'] },
      ],
    },
  },
})

/** A payment of a customer with these details. */
async function pay(id: string, customer: object = {}, externalRef?: string, environment = 'live') {
  const data = { customer: { id, ...customer }, ...(externalRef && { externalRef }) }
  const told = { customer: id, payment: `pay_${environment}_${id}_${externalRef}`, data }
  const body = wireEvent('payment.authorized', { ...told, environment: environment as 'live' })
  expect((await send(daemon(), body, { endpoint: environment })).status).toBe(200)
}

interface Found {
  readonly items: readonly {
    readonly customerId: string
    readonly matched: { readonly by: string; readonly value: string }
    readonly identities: Readonly<Record<string, string | null>> | null
  }[]
  readonly pagination: { readonly nextCursor: string | null; readonly hasMore: boolean }
}

async function search(query: string, { key = WRITER, more = '' } = {}): Promise<Found> {
  const path = `/customers?query=${encodeURIComponent(query)}${more}`
  const answer = await ask(daemon() as RunningDaemon, path, { Authorization: `Bearer ${key}` })
  expect(answer.status).toBe(200)
  return (await answer.json()) as Found
}

/** `cus_1 by email ada@…`, in order. */
async function found(query: string, options?: Parameters<typeof search>[1]) {
  const { items } = await search(query, options)
  return items.map(({ customerId, matched }) => `${customerId} by ${matched.by} ${matched.value}`)
}

describe('GET /customers', () => {
  it('finds customers by the beginning of each thing that they are known by', async () => {
    const identities = {
      ...{ email: 'Ada@Ways.example', name: 'Ada', communityId: '7700101', communityUsername: 'Ways_Ada' },
      ...{ messengerId: '88001', messengerUsername: 'TelAda' },
    }
    await pay('cus_ways', identities, 'user-ways-1')
    for (const [query, by, value] of [
      ['cus_way', 'customerId', 'cus_ways'],
      ['user-way', 'reference', 'user-ways-1'],
      ['ADA@ways', 'email', 'ada@ways.example'],
      ['77001', 'communityId', '7700101'],
      ['@ways_', 'communityUsername', 'ways_ada'],
      ['88001', 'messengerId', '88001'],
      ['telad', 'messengerUsername', 'telada'],
    ] as const) {
      expect({ query, ...(await search(query)) }).toEqual({
        query,
        items: [{ customerId: 'cus_ways', matched: { by, value }, identities }],
        pagination: { nextCursor: null, hasMore: false },
      })
    }
    for (const query of ['us_ways', 'USER-ways', 'CUS_ways']) expect(await found(query)).toEqual([])
  })

  it('finds by id and reference alone for a key without `write`, and shows it no personal data', async () => {
    await pay('cus_shy', { email: 'shy@example.com', communityUsername: 'shy' }, 'shy-1')
    expect(await search('shy', { key: READER })).toEqual({
      items: [{ customerId: 'cus_shy', matched: { by: 'reference', value: 'shy-1' }, identities: null }],
      pagination: { nextCursor: null, hasMore: false },
    })
    expect(await found('shy@', { key: READER })).toEqual([])
    expect(await found('shy@')).toEqual(['cus_shy by email shy@example.com'])
    const foreign = await ask(daemon(), '/customers?query=shy&environment=sandbox', {
      Authorization: `Bearer ${READER}`,
    })
    expect(foreign.status).toBe(403)
    expect((await ask(daemon(), '/customers?query=shy')).status).toBe(403)
  })

  it('takes every character for itself, and the end of an alphabet for no end', async () => {
    for (const id of [
      'a%b_1',
      'a%b_2',
      'axb_1',
      'a%bx',
      'z_\u{10ffff}',
      'z_\u{10ffff}b',
      'ü\ud7ff1',
      'ü\ue0001',
    ])
      await pay(`odd:${id}`)
    expect(await found('odd:a%b_')).toEqual([
      'odd:a%b_1 by customerId odd:a%b_1',
      'odd:a%b_2 by customerId odd:a%b_2',
    ])
    expect(await found('odd:z_\u{10ffff}')).toHaveLength(2)
    expect(await found('odd:ü\ud7ff')).toEqual(['odd:ü\ud7ff1 by customerId odd:ü\ud7ff1'])
  })

  it('lists each customer once, by the first way, and goes on at its cursor', async () => {
    await pay('many_a', { email: 'many_z@example.com' }, 'many_1')
    await pay('many_a', {}, 'many_2')
    await pay('cus_many', { email: 'many_y@example.com', communityUsername: 'many_x' }, 'many_3')
    await pay('cus_many', {}, 'many_0')
    for (const n of [1, 2, 3]) await pay(`cus_mail_${n}`, { email: `many_${n}@example.com` })
    const all = [
      'many_a by customerId many_a',
      'cus_many by reference many_0',
      ...[1, 2, 3].map((n) => `cus_mail_${n} by email many_${n}@example.com`),
    ]
    expect(await found('many_')).toEqual(all)
    for (const limit of [1, 2, 4]) {
      const pages: string[] = []
      let more = `&limit=${limit}`
      for (let hasMore = true; hasMore; ) {
        const { items, pagination } = await search('many_', { more })
        pages.push(
          ...items.map(({ customerId, matched }) => `${customerId} by ${matched.by} ${matched.value}`),
        )
        hasMore = pagination.hasMore
        more = `&limit=${limit}&cursor=${pagination.nextCursor}`
      }
      expect(pages).toEqual(all)
    }
    const { pagination } = await search('many_', { more: '&limit=3' })
    expect(await found('many_', { key: READER, more: `&cursor=${pagination.nextCursor}` })).toEqual([])
  })

  it('forgets what is known no more, tells environments apart, and finds an erased customer by the id', async () => {
    await pay('cus_moved', { email: 'moved_1@example.com' })
    const later = { customer: 'cus_moved', payment: 'pay_moved', minutes: 5 }
    await send(
      daemon(),
      wireEvent('payment.authorized', {
        ...later,
        data: { customer: { id: 'cus_moved', email: 'moved_2@example.com' } },
      }),
    )
    await pay('cus_moved', { email: 'moved_3@example.com' }, undefined, 'sandbox')
    expect(await found('moved_')).toEqual(['cus_moved by email moved_2@example.com'])
    expect(await found('moved_', { more: '&environment=sandbox' })).toEqual([
      'cus_moved by email moved_3@example.com',
    ])
    expect((await call(daemon(), 'DELETE', '/customers/cus_moved', { reason: 'asked' })).status).toBe(200)
    expect(await found('moved_')).toEqual([])
    expect(await found('cus_moved')).toEqual(['cus_moved by customerId cus_moved'])
  })

  it.each(['', '?query=', '?query=a&query=b', '?query=a&cursor=W10', '?query=a%00'])(
    'refuses %s',
    async (query) => {
      const answer = await ask(daemon(), `/customers${query}`, { Authorization: `Bearer ${WRITER}` })
      expect(await answer.json()).toMatchObject({ code: 'invalid_request' })
    },
  )

  it.each([
    ['of three bytes each', (at: number) => String.fromCodePoint(0x4e00 + ((at * 7_919) % 20_000))],
    ['of four bytes each', (at: number) => String.fromCodePoint(0x20000 + ((at * 7_919) % 40_000))],
    ['that are longer in lower case', () => '\u023a'],
  ])(
    'takes names of 1,000 characters %s, and finds and forgets them as others',
    async (what, characterAt) => {
      const long = (first: number): string => {
        const text = Array.from({ length: 1_000 }, (_, i) => characterAt(first + i)).join('')
        // In UTF-16 units, as all limits of text count.
        return text.slice(0, 1_000)
      }
      const id = `cus_long_${what.replaceAll(' ', '_')}`
      const details = { email: long(1), communityUsername: long(2), messengerId: long(3), name: long(4) }
      await pay(id, details)
      const beginning = [...details.email].slice(0, 100).join('')
      const [match] = (await search(beginning)).items
      expect(match).toMatchObject({ customerId: id, identities: { email: details.email } })
      // Another one, of which only the end differs.
      await pay(`${id}_2`, { ...details, email: `${details.email.slice(0, -2)}xy` })
      expect(await found(beginning)).toHaveLength(2)
      expect(await call(daemon(), 'DELETE', `/customers/${id}`)).toMatchObject({ status: 200 })
      expect(await found(beginning)).toHaveLength(1)
    },
  )

  it('leaves no personal data in the log', () => {
    expect(JSON.stringify(daemon().logged()).toLowerCase()).not.toMatch(/example\.com|telada|ways_ada/)
  })
})
