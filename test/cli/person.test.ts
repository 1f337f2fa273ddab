import { describe, expect, it } from 'vitest'
import { deliveryOf } from '../ingest/wire.js'
import { sentEvent } from '../stories.js'
import { answerOf, CONFIG, configuredFolder, failureOf, MAY_ALL, run, serveHere, takeIn } from '../world.js'

const NOW = Date.UTC(2026, 0, 31, 12)
const now = () => NOW
const SANDBOX = { environment: 'sandbox', secrets: ['whsec_sandbox_0123456789'] }
const BOTH = { ...MAY_ALL, endpoints: { ...CONFIG.endpoints, sandbox: SANDBOX } }

interface Buyer {
  readonly customer: string
  readonly email?: string
  readonly ref?: string
  readonly subscription?: string
  readonly environment?: 'live' | 'sandbox'
}

/** A payment by card of `pro_1`. */
function bought(payment: string, { customer: id, email, ref, subscription, environment = 'live' }: Buyer) {
  const data = {
    object: 'payment',
    id: payment,
    customer: { id, email },
    product: { id: 'pro_1' },
    external_ref: ref,
    subscription_id: subscription,
    method: 'CARD',
  }
  const at = NOW - 86_400_000
  const { body } = sentEvent(`evt_${payment}`, 'payment.authorized', at, data, environment === 'live')
  return deliveryOf(body, { environment, endpoint: environment })
}

/** A store in which ada can be found in every way, and two others share an email, a reference and a payment. */
async function shop(): Promise<string> {
  const folder = configuredFolder(BOTH)
  const shared = { email: 'shared@example.com', ref: 'shared' }
  await takeIn(
    folder,
    [
      bought('pay_1', { customer: 'cus_ada', email: 'ada@example.com', ref: 'ada', subscription: 'sub_1' }),
      bought('pay_2', { customer: 'cus_2', ...shared }),
      bought('pay_3', { customer: 'cus_3', ...shared }),
      bought('pay_4', { customer: 'cus_test', email: 'test@example.com', environment: 'sandbox' }),
    ],
    now,
  )
  return folder
}

it('customers finds them by the beginning of what is known', async () => {
  const folder = await shop()
  expect(await run(folder, 'customers ad', { now })).toEqual({
    code: 0,
    stdout: 'cus_ada  reference  ada\n',
    stderr: '',
  })
  expect((await run(folder, 'customers ADA@', { now })).stdout).toBe('cus_ada  email  ada@example.com\n')
  const first = await run(folder, 'customers shared --limit 1', { now })
  expect(first).toMatchObject({
    stdout: 'cus_2  reference  shared\n',
    stderr: expect.stringContaining('there are more'),
  })
  expect((await run(folder, 'customers nobody', { now })).stdout).toBe('no customer matches\n')
})

const WAYS = ['--email ADA@example.com', '--ref ada', '--payment pay_1', '--subscription sub_1']

describe('a customer', () => {
  it.each(WAYS)('is named by %s in questions', async (named) => {
    const folder = await shop()
    expect(await answerOf(folder, `check ${named}`, { now })).toMatchObject({ customerId: 'cus_ada' })
    const asked = { customerId: 'cus_ada', productId: 'pro_1' }
    expect(await answerOf(folder, `check ${named} pro_1`, { now })).toMatchObject(asked)
    expect(await answerOf(folder, `explain pro_1 ${named}`, { now })).toMatchObject(asked)
  })

  it.each(WAYS)('is named by %s in changes by hand', async (named) => {
    const folder = await shop()
    await serveHere(folder, { now })
    const act = (words: string) => answerOf(folder, `${words} ${named} --reason test`, { now })
    const theirs = { customerId: 'cus_ada' }
    expect(await act('grant pro_2')).toMatchObject(theirs)
    expect(await act('revoke pro_2')).toMatchObject(theirs)
    expect(await act('block')).toMatchObject(theirs)
    expect(await act('unblock')).toMatchObject(theirs)
    expect(await act('link --community 80351110224678912')).toMatchObject(theirs)
    expect(await act('erase --yes')).toMatchObject(theirs)
  })

  it.each(['--email ada@example.com', '--ref ada'])('is named by %s in lists of events', async (named) => {
    const folder = await shop()
    const { items } = await answerOf(folder, `events list ${named}`, { now })
    expect(items).toMatchObject([{ id: 'evt_pay_1' }])
    expect((await run(folder, `events export ${named}`, { now })).stdout.split('\n')).toHaveLength(2)
  })

  it('is asked for by id where several are meant, and the command does nothing', async () => {
    const folder = await shop()
    for (const [named, option] of [
      ['--email shared@example.com', 'email'],
      ['--ref shared', 'ref'],
    ]) {
      expect(await run(folder, `check ${named}`, { now })).toEqual({
        code: 2,
        stdout: '',
        stderr: expect.stringMatching(`^error: --${option} names 2 customers in live.*\n  cus_2\n  cus_3\n$`),
      })
    }
  })

  it('given by id as well as by an option is not taken for a product', async () => {
    const folder = await shop()
    await serveHere(folder, { now })
    const block = (words: string) => failureOf(folder, `block ${words} --reason test`, { now })
    for (const [words, id] of [
      ['--email ada@example.com cus_ada', 'cus_ada'],
      ['--ref ada cus_2', 'cus_2'],
      ['--payment pay_1 cus_3', 'cus_3'],
      ['cus_2 --subscription sub_1', 'cus_2'],
    ] as const) {
      const named = /--\w+/.exec(words)?.[0]
      expect(await block(words)).toMatchObject({
        code: 2,
        error: {
          code: 'usage',
          message: `${id} is a customer, not a product, and ${named} names the customer: leave one out`,
        },
      })
    }
    expect(await failureOf(folder, 'explain --ref ada cus_ada', { now })).toMatchObject({ code: 2 })
    expect((await answerOf(folder, 'check cus_ada', { now })).entitlements).toHaveLength(1)
    // A product that nobody knows yet can be blocked all the same.
    const blocked = await answerOf(folder, 'block --ref ada pro_new --reason test', { now })
    expect(blocked).toMatchObject({ customerId: 'cus_ada' })
  })

  it('whom nobody knows is reported, and where one is known instead', async () => {
    const folder = await shop()
    for (const [named, message] of [
      ['--email nobody@example.com', 'no customer has this email in live'],
      ['--ref nobody', 'no customer has this reference in live'],
      ['--payment pay_9', 'no customer is named by an event of this payment in live'],
      ['--subscription sub_9', 'no customer is named by an event of this subscription in live'],
      [
        '--email test@example.com',
        'no customer has this email in live; in sandbox it is cus_test: add --environment sandbox',
      ],
      [
        '--payment pay_4',
        'no customer is named by an event of this payment in live; in sandbox it is cus_test: add --environment sandbox',
      ],
    ] as const) {
      expect(await failureOf(folder, `check ${named}`, { now })).toMatchObject({
        code: 1,
        error: { code: 'customer_not_found', message },
      })
    }
  })
})
