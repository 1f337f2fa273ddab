import { expect, it } from 'vitest'
import { ask, call, type RunningDaemon, runDaemon, send } from './running-daemon.js'
import { timeOf, wireEvent } from './wire-events.js'

const products = (pro_1: readonly string[]) => ({
  products: { pro_1: { features: pro_1 }, pro_2: { features: ['export'] } },
})

const pay = (daemon: RunningDaemon, product: string, payment: string, type = 'payment.authorized') =>
  send(daemon, wireEvent(type, { product, payment, minutes: type === 'payment.refunded' ? 5 : 0 }))

async function answerTo(daemon: RunningDaemon, path: string) {
  const answer = await ask(daemon, path)
  expect(answer.status).toBe(200)
  return (await answer.json()) as Record<string, unknown>
}

it('features follow the products that give them, and the config from a reload on', async () => {
  const daemon = await runDaemon({ config: products(['export', 'api']) })
  await pay(daemon, 'pro_1', 'pay_1')
  const active = { active: true, until: null }
  const listed = [
    { id: 'api', ...active, productIds: ['pro_1'] },
    { id: 'export', ...active, productIds: ['pro_1'] },
  ]
  expect((await answerTo(daemon, '/entitlements/cus_1')).features).toEqual(listed)
  const { entitlements: _, features: __, ...about } = await answerTo(daemon, '/entitlements/cus_1')
  expect(await answerTo(daemon, '/entitlements/cus_1/features/export')).toEqual({ ...about, ...listed[1] })
  const { items } = (await call(daemon, 'POST', '/entitlements/lookup', { email: 'nobody@example.com' })).json
  expect(items).toEqual([])

  await pay(daemon, 'pro_2', 'pay_2')
  await pay(daemon, 'pro_1', 'pay_1', 'payment.refunded')
  const refunded = new Date(timeOf(5)).toISOString()
  expect((await answerTo(daemon, '/entitlements/cus_1')).features).toEqual([
    { id: 'api', active: false, until: refunded, productIds: ['pro_1'] },
    { id: 'export', ...active, productIds: ['pro_2'] },
  ])
  const before = `?at=${new Date(timeOf(5) - 1).toISOString()}`
  expect(await answerTo(daemon, `/entitlements/cus_1/features/export${before}`)).toMatchObject({
    ...active,
    productIds: ['pro_1', 'pro_2'],
  })

  const path = '/entitlements/cus_1/features/api'
  const tag = (await ask(daemon, path)).headers.get('etag') ?? ''
  expect((await ask(daemon, path, { 'If-None-Match': tag })).status).toBe(304)
  await daemon.readAgain(products(['beta']))
  expect((await answerTo(daemon, '/entitlements/cus_1')).features).toEqual([
    { id: 'beta', active: false, until: refunded, productIds: ['pro_1'] },
    { id: 'export', ...active, productIds: ['pro_2'] },
  ])
  expect((await ask(daemon, path, { 'If-None-Match': tag })).status).toBe(200)
  const changes = (await answerTo(daemon, '/changes')).items as { features: unknown }[]
  expect(changes.map(({ features }) => features)).toEqual([['beta'], ['export'], ['beta']])
})

it('says of a product or feature that nothing names that it is unknown', async () => {
  const daemon = await runDaemon({ config: products(['api']) })
  await pay(daemon, 'pro_3', 'pay_3')
  for (const [path, isUnknown] of [
    ['/entitlements/cus_2/pro_1', false],
    ['/entitlements/cus_2/pro_3', false],
    ['/entitlements/cus_2/pro_4', true],
    ['/entitlements/cus_1/pro_3', false],
    ['/entitlements/cus_2/pro_3?environment=sandbox', true],
    ['/entitlements/cus_2/features/api', false],
    ['/entitlements/cus_2/features/apo', true],
    ['/entitlements/cus_2/features/explanation', true],
  ] as const) {
    const { unknown = false } = await answerTo(daemon, path)
    expect({ path, unknown }).toEqual({ path, unknown: isUnknown })
  }
})

it('many checks of products and features are answered at once, by the customer with the longest access', async () => {
  const daemon = await runDaemon({ config: products(['api', 'export']) })
  await pay(daemon, 'pro_2', 'pay_1')
  await call(daemon, 'POST', '/customers/cus_2/grants', {
    productId: 'pro_1',
    until: '2026-04-01T00:00:00Z',
    reason: 'x',
  })
  const until = '2026-04-01T00:00:00.000Z'
  const checks = [
    { customerId: 'cus_1', feature: 'export' },
    { customerId: 'cus_1', feature: 'api' },
    { customerId: 'cus_2', feature: 'api' },
    { customerId: 'cus_2', productId: 'pro_1' },
    { customerId: 'cus_2', productId: 'pro_9' },
    { customerId: 'cus_2', feature: 'apo' },
    { externalRef: 'nobody', feature: 'api' },
  ]
  const answered = [
    { customerId: 'cus_1', active: true, until: null },
    { customerId: 'cus_1', active: false, until: null },
    { customerId: 'cus_2', active: true, until },
    { customerId: 'cus_2', active: true, until },
    { customerId: 'cus_2', active: false, until: null, unknown: true },
    { customerId: 'cus_2', active: false, until: null, unknown: true },
    { customerId: null, active: false, until: null },
  ]
  const { json } = await call(daemon, 'POST', '/entitlements/check', { checks })
  expect(json.results).toEqual(
    checks.map(({ customerId: _, externalRef: __, ...what }: Record<string, unknown>, i) => ({
      ...what,
      ...answered[i],
    })),
  )
})
