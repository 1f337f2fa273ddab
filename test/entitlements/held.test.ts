import { describe, expect, it } from 'vitest'
import { foldSource } from '../../src/entitlements/fold-source.js'
import type { SourceEvent } from '../../src/entitlements/kept-event.js'
import { DOCUMENTED_POLICY, type Policy } from '../../src/entitlements/policy.js'
import { once, PAYMENT } from './explained.js'

function heldBy(events: readonly SourceEvent[], policy: Policy = DOCUMENTED_POLICY) {
  return foldSource(PAYMENT, events, policy).held
}

const bare = { railProof: null } as const

describe('what waits', () => {
  it('is saved as the same text, whatever order it arrived in', () => {
    const events = [
      once('evt_2', 'checkout.succeeded', 1, { customerId: null }),
      once('evt_3', 'payment.failed', 1, { customerId: null }),
      once('evt_1', 'payment.authorized', 2, { customerId: null }),
    ]
    const saved = '{"evt_2":"customer_unknown","evt_3":"customer_unknown","evt_1":"customer_unknown"}'
    expect(JSON.stringify(heldBy(events))).toBe(saved)
    expect(JSON.stringify(heldBy([...events].reverse()))).toBe(saved)
  })

  it('is a bare checkout only where a rail that may yet be proved lets it grant', () => {
    const checkout = [once('evt_1', 'checkout.succeeded', 0, bare)]
    expect(heldBy(checkout)).toEqual({ evt_1: 'rail_unknown' })
    const { grantOn, revokeOn } = DOCUMENTED_POLICY
    const onlyTakesBack: Policy = {
      ...DOCUMENTED_POLICY,
      grantOn: { ...grantOn, card: ['payment.authorized'] },
      revokeOn: { ...revokeOn, card: ['checkout.succeeded'] },
    }
    expect(heldBy(checkout, onlyTakesBack)).toEqual({})
    const always: Policy = { ...DOCUMENTED_POLICY, grantOn: { ...grantOn, unknown: ['checkout.succeeded'] } }
    expect(heldBy(checkout, always)).toEqual({})
  })
})
