import { describe, expect, it } from 'vitest'
import { deliveryOf } from '../ingest/wire.js'
import { sentEvent } from '../stories.js'
import { answerOf, configuredFolder, MAY_ALL, run, takeIn } from '../world.js'

const DAY = 86_400_000
const NOW = Date.UTC(2026, 0, 31, 12)
const now = () => NOW

/** An event by card, which arrives as it happens. */
async function happen(
  folder: string,
  at: number,
  [type, id, customer, product = 'pro_1']: readonly [string, string, string, string?],
) {
  const [object, action] = type.split('.')
  const facts = { customer: { id: customer }, product: { id: product }, external_ref: `ref_${customer}` }
  const { body } = sentEvent(`evt_${id}_${action}`, type, at, { object, id, method: 'CARD', ...facts })
  const delivery = deliveryOf(body, { environment: 'live', endpoint: 'live', receivedAt: at })
  await takeIn(folder, [delivery], () => at)
}

/** Two days ago two customers bought; yesterday one was refunded and a third bought; today the second lost it. */
async function shop(): Promise<string> {
  const folder = configuredFolder(MAY_ALL)
  await happen(folder, NOW - 2 * DAY, ['payment.authorized', 'pay_1', 'cus_1'])
  await happen(folder, NOW - 2 * DAY + 1, ['subscription.created', 'sub_2', 'cus_2', 'pro_2'])
  await happen(folder, NOW - DAY, ['payment.refunded', 'pay_1', 'cus_1'])
  await happen(folder, NOW - DAY + 1, ['payment.authorized', 'pay_3', 'cus_3'])
  await happen(folder, NOW - 1_000, ['subscription.expired', 'sub_2', 'cus_2', 'pro_2'])
  return folder
}

const customersIn = ({ items }: { items: readonly { customerId: string }[] }) =>
  items.map(({ customerId }) => customerId)

describe('latchkey changes', () => {
  it('says who lost access yesterday, and why', async () => {
    const folder = await shop()
    const { code, stdout, stderr } = await run(folder, 'changes --lost --from yesterday --to today', { now })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toBe(
      '2026-01-30T12:00:00.000Z  cus_1  pro_1  lost  the payment was refunded  evt_pay_1_refunded\n',
    )
  })

  it.each([
    ['', ['cus_1', 'cus_3', 'cus_2']],
    ['--from 1h', ['cus_2']],
    ['--from 3d', ['cus_1', 'cus_2', 'cus_1', 'cus_3', 'cus_2']],
    ['--to 2026-01-30', ['cus_1', 'cus_2']],
    ['--from 3d --gained', ['cus_1', 'cus_2', 'cus_3']],
    ['--from 3d --lost', ['cus_1', 'cus_2']],
    ['--from 3d --lost --gained --product pro_2', ['cus_2', 'cus_2']],
    ['--customer cus_1', ['cus_1', 'cus_1']],
    ['--ref ref_cus_3', ['cus_3']],
    ['--payment pay_1 --from 25h', ['cus_1']],
    ['--customer nobody', []],
  ])('shows what is asked for: %s', async (options, customers) => {
    const folder = await shop()
    expect(customersIn(await answerOf(folder, `changes ${options}`, { now }))).toEqual(customers)
  })

  it('shows as many as asked for, and continues there', async () => {
    const folder = await shop()
    const first = await answerOf(folder, 'changes --from 3d --lost --limit 1', { now })
    expect([customersIn(first), first.hasMore]).toEqual([['cus_1'], true])
    const rest = await answerOf(folder, `changes --from 3d --lost --limit 1 --after ${first.next}`, { now })
    expect([customersIn(rest), rest.hasMore]).toEqual([['cus_2'], false])
    const { stderr } = await run(folder, 'changes --from 3d --lost --limit 1', { now })
    expect(stderr).toMatch(new RegExp(`^note: .* --after ${first.next}\\n$`))
  })

  it('refuses a time that is none, and a stretch that ends before it begins', async () => {
    const folder = await shop()
    for (const [options, message] of [
      [
        '--from lately',
        'Expected an ISO 8601 time, a duration back such as 1d, "yesterday" or "today" (in UTC).',
      ],
      ['--from today --to yesterday', '--from is later than --to'],
    ]) {
      expect(await run(folder, `changes ${options}`, { now })).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(message ?? ''),
      })
    }
  })
})
