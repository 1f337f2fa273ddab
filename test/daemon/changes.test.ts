import { describe, expect, it } from 'vitest'
import { eventually } from '../setup/eventually.js'
import { ask, NOW, type RunningDaemon, runDaemon, send } from './running-daemon.js'
import { timeOf, wireEvent } from './wire-events.js'

interface ToldChange {
  readonly cursor: string
  readonly customerId: string
  readonly after: { readonly status: string }
}

interface ChangePage {
  readonly items: readonly ToldChange[]
  readonly pagination: { readonly nextCursor: string | null; readonly hasMore: boolean }
}

async function pageOf(daemon: RunningDaemon, query = ''): Promise<ChangePage> {
  const answer = await ask(daemon, `/changes${query}`)
  expect(answer.status).toBe(200)
  return (await answer.json()) as ChangePage
}

async function pay(daemon: RunningDaemon, ...customers: string[]): Promise<void> {
  for (const customer of customers) {
    const event = wireEvent('payment.authorized', { customer, payment: `pay_${customer}` })
    expect((await send(daemon, event)).status).toBe(200)
    await readable(daemon, customer)
  }
}

/** Other tests write to other databases of the server: while such a transaction goes on, it hides what came after it began. */
const readable = (daemon: RunningDaemon, customer: string, query = '') =>
  eventually(async () => expect(customersOf(await pageOf(daemon, query))).toContain(customer))

function customersOf({ items }: ChangePage): readonly string[] {
  return items.map(({ customerId }) => customerId)
}

describe('GET /changes', () => {
  it('tells what an entitlement said before and after, when, and which event made the change', async () => {
    const daemon = await runDaemon()
    const paid = wireEvent('payment.authorized', { customer: 'cus_1', payment: 'pay_1', product: 'pro_1' })
    await send(daemon, paid)
    await readable(daemon, 'cus_1')
    const { items, pagination } = await pageOf(daemon)
    const access = (await (await ask(daemon, '/entitlements/cus_1')).json()) as { cursor: string }
    expect(items).toEqual([
      {
        cursor: access.cursor,
        at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        environment: 'live',
        customerId: 'cus_1',
        productId: 'pro_1',
        before: { active: false, status: 'none', since: null, until: null },
        after: { active: true, status: 'active', since: new Date(timeOf(0)).toISOString(), until: null },
        features: [],
        cause: { kind: 'event', eventId: (JSON.parse(paid) as { id: string }).id },
      },
    ])
    expect(pagination).toEqual({ nextCursor: null, hasMore: false })
  })

  it('goes on at its cursor, and where there was no more at the cursor of the last change', async () => {
    const daemon = await runDaemon()
    await pay(daemon, 'cus_1', 'cus_2', 'cus_3')
    const first = await pageOf(daemon, '?limit=2')
    expect(customersOf(first)).toEqual(['cus_1', 'cus_2'])
    expect(first.pagination).toEqual({ nextCursor: first.items[1]?.cursor, hasMore: true })
    const rest = await pageOf(daemon, `?limit=2&cursor=${first.pagination.nextCursor}`)
    expect(customersOf(rest)).toEqual(['cus_3'])

    const end = `?cursor=${rest.items[0]?.cursor}`
    expect(customersOf(await pageOf(daemon, end))).toEqual([])
    await pay(daemon, 'cus_4')
    expect(customersOf(await pageOf(daemon, end))).toEqual(['cus_4'])
  })

  it('goes on after an answer about access', async () => {
    const daemon = await runDaemon()
    await pay(daemon, 'cus_1')
    const { cursor } = (await (await ask(daemon, '/entitlements/cus_1')).json()) as { cursor: string }
    await pay(daemon, 'cus_2')
    expect(customersOf(await pageOf(daemon, `?cursor=${cursor}`))).toEqual(['cus_2'])
  })

  it('tells of one environment', async () => {
    const daemon = await runDaemon()
    const event = wireEvent('payment.authorized', { customer: 'cus_test', environment: 'sandbox' })
    expect((await send(daemon, event, { endpoint: 'sandbox' })).status).toBe(200)
    await readable(daemon, 'cus_test', '?environment=sandbox')
    expect(customersOf(await pageOf(daemon))).toEqual([])
    expect(customersOf(await pageOf(daemon, '?environment=sandbox'))).toEqual(['cus_test'])
  })

  it('knows no cursor that it never gave, nor one that is still to come', async () => {
    const daemon = await runDaemon()
    await pay(daemon, 'cus_1')
    const [last] = (await pageOf(daemon)).items
    const next = last?.cursor.replace(/\d+$/, (number) => String(Number(number) + 1))
    for (const cursor of ['', 'x', '7', 'another.1', '%00.1', next]) {
      const answer = await ask(daemon, `/changes?cursor=${cursor}`)
      expect([cursor, answer.status, await answer.json()]).toMatchObject([
        cursor,
        410,
        { code: 'cursor_reset' },
      ])
    }
  })

  it('tells of one customer, page by page', async () => {
    const daemon = await runDaemon()
    await pay(daemon, 'cus_1', 'cus_2')
    await send(daemon, wireEvent('payment.refunded', { customer: 'cus_1', payment: 'pay_cus_1', minutes: 1 }))
    await eventually(async () =>
      expect(await everyCustomer(daemon, '?customerId=cus_1')).toEqual([['cus_1', 'cus_1']]),
    )
    const first = await pageOf(daemon, '?customerId=cus_1&limit=1')
    expect(first.items.map(({ after }) => after.status)).toEqual(['active'])
    const rest = await pageOf(daemon, `?customerId=cus_1&limit=1&cursor=${first.pagination.nextCursor}`)
    expect(rest).toMatchObject({ items: [{ customerId: 'cus_1', after: { status: 'refunded' } }] })
    expect(rest.pagination.hasMore).toBe(false)
    expect(customersOf(await pageOf(daemon, '?customerId=nobody'))).toEqual([])
  })

  it('tells of a stretch of time, from its first instant to before its last, page by page', async () => {
    const daemon = await runDaemon()
    for (const [minutes, customers] of [
      [0, ['cus_1']],
      [1, ['cus_2', 'cus_3', 'cus_4']],
      [2, ['cus_5']],
      [3, ['cus_6']],
    ] as const) {
      daemon.setNow(NOW + minutes * MINUTE_MS)
      await pay(daemon, ...customers)
    }
    const [from, to] = [isoAt(1), isoAt(3)]
    expect(customersOf(await pageOf(daemon, `?to=${from}`))).toEqual(['cus_1'])
    expect(customersOf(await pageOf(daemon, `?from=${to}`))).toEqual(['cus_6'])
    expect(customersOf(await pageOf(daemon, `?from=${from}&to=${to}&customerId=cus_5`))).toEqual(['cus_5'])
    expect(customersOf(await pageOf(daemon, `?from=${from}&to=${to}&customerId=cus_6`))).toEqual([])
    expect(await everyCustomer(daemon, `?from=${from}&to=${to}&limit=1`)).toEqual([
      ['cus_2'],
      ['cus_3'],
      ['cus_4'],
      ['cus_5'],
    ])
  })

  it('orders a stretch of time by time, and tells each change once, where the clock was set back', async () => {
    const daemon = await runDaemon()
    for (const [minutes, customer] of [
      [2, 'cus_1'],
      [1, 'cus_2'],
      [3, 'cus_3'],
    ] as const) {
      daemon.setNow(NOW + minutes * MINUTE_MS)
      await pay(daemon, customer)
    }
    const stretch = `?from=${isoAt(1)}&to=${isoAt(4)}&limit=1`
    expect(await everyCustomer(daemon, stretch)).toEqual([['cus_2'], ['cus_1'], ['cus_3']])
    expect(await everyCustomer(daemon, '?limit=1')).toEqual([['cus_1'], ['cus_2'], ['cus_3']])
  })

  it('refuses a stretch of time that ends before it begins', async () => {
    const answer = await ask(await runDaemon(), `/changes?from=${isoAt(1)}&to=${isoAt(0)}`)
    expect([answer.status, await answer.json()]).toMatchObject([
      400,
      { errors: [{ path: 'from', message: 'is later than "to"' }] },
    ])
  })
})

const MINUTE_MS = 60_000

const isoAt = (minutes: number): string => new Date(NOW + minutes * MINUTE_MS).toISOString()

/** The customers of every page. */
async function everyCustomer(daemon: RunningDaemon, query: string): Promise<readonly (readonly string[])[]> {
  const pages: (readonly string[])[] = []
  let cursor = ''
  do {
    const page = await pageOf(daemon, `${query}${cursor}`)
    pages.push(customersOf(page))
    cursor = page.pagination.nextCursor === null ? '' : `&cursor=${page.pagination.nextCursor}`
  } while (cursor !== '')
  return pages
}
