import { expect, it } from 'vitest'
import { advanceSource, foldSource } from '../../src/entitlements/fold-source.js'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { BEGUN, DAY, foldInTurn, LONG_AGO } from './advancing.js'
import { pay, SUBSCRIPTION, sub } from './explained.js'

it('whether a payment is new is asked only once payments were forgotten', () => {
  const asked: string[] = []
  const isNew = (paymentId: string) => {
    asked.push(paymentId)
    return true
  }
  for (const events of [BEGUN, LONG_AGO]) {
    const folded = foldSource(SUBSCRIPTION, events, DOCUMENTED_POLICY)
    const newest = pay('it', 'payment.failed', `pay_after_${events.length}`, 600 * DAY)
    expect(advanceSource(folded, newest, DOCUMENTED_POLICY, isNew)).not.toBeNull()
  }
  expect(asked).toEqual([`pay_after_${LONG_AGO.length}`])
})

it('what is remembered of a subscription does not grow with its years', () => {
  const renewed = (times: number) => [
    ...BEGUN,
    ...Array.from({ length: times }, (_, i) => [
      pay(`evt_paid_${i}`, 'payment.authorized', `pay_${i + 2}`, (i + 1) * 30 * DAY),
      sub(`evt_renewed_${i}`, 'subscription.renewed', (i + 1) * 30 * DAY + 1),
    ]).flat(),
  ]
  const remembered = (times: number) => {
    const { memory } = foldInTurn(SUBSCRIPTION, renewed(times))
    expect(memory).not.toBeNull()
    return JSON.stringify(memory).length
  }
  expect(remembered(240)).toBeLessThan(1.1 * remembered(24))
})
