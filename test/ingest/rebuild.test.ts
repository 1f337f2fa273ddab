import fc from 'fast-check'
import { expect, it } from 'vitest'
import { DOCUMENTED_POLICY, type GrantType, type Policy } from '../../src/entitlements/policy.js'
import { paymentEvent, subscriptionEvent } from '../entitlements/events.js'
import { policies } from '../entitlements/policies.js'
import { deliveries } from './rebuild-histories.js'
import { decidedBy, everything, PACE, type RebuildStore, storeUnder } from './rebuild-store.js'
import { bodyOf, deliveryOf } from './wire.js'

const NOTHING = { gains: 0, losses: 0, otherwise: 0, sample: [] }
const NOTHING_CHANGED = { ...NOTHING, byEnvironment: { live: NOTHING, sandbox: NOTHING } }

function withGrant(type: GrantType): Policy {
  const { grantOn } = DOCUMENTED_POLICY
  return { ...DOCUMENTED_POLICY, grantOn: { ...grantOn, unknown: [...grantOn.unknown, type] } }
}

async function closed<T>(store: RebuildStore, result: Promise<T>): Promise<T> {
  try {
    return await result
  } finally {
    await store.close()
  }
}

it('ends where taking everything in under the new policy would have ended', async () => {
  await fc.assert(
    fc.asyncProperty(deliveries, policies, policies, async (told, before, after) => {
      const store = await storeUnder(before, told)
      await store.rebuild(after)
      const anew = await storeUnder(after, told)
      expect(await closed(store, decidedBy(store.db))).toEqual(await closed(anew, decidedBy(anew.db)))
    }),
    { numRuns: 40 },
  )
})

it('changes nothing under the policy in force, not even the change log', async () => {
  await fc.assert(
    fc.asyncProperty(deliveries, policies, policies, async (told, before, after) => {
      const store = await storeUnder(before, told)
      const untouched = await everything(store.db)
      expect(await store.rebuild(before)).toEqual(NOTHING_CHANGED)
      expect(await everything(store.db)).toEqual(untouched)

      await store.rebuild(after)
      const rebuilt = await everything(store.db)
      expect(await store.rebuild(after)).toEqual(NOTHING_CHANGED)
      expect(await closed(store, everything(store.db))).toEqual(rebuilt)
    }),
    { numRuns: 30 },
  )
})

it('loses nothing of what is taken in while it runs', async () => {
  await fc.assert(
    fc.asyncProperty(deliveries, policies, policies, fc.nat(), async (told, before, after, cut) => {
      const early = told.slice(0, cut % (told.length + 1))
      const late = told.slice(early.length)
      const store = await storeUnder(before, early)
      const written: Promise<unknown>[] = []
      await store.rebuild(after, {
        onProgress: () => {
          const next = late.shift()
          if (next) written.push(store.writeBatch([next]))
        },
      })
      await Promise.all(written)
      for (const delivery of late) await store.writeBatch([delivery])
      const anew = await storeUnder(after, told)
      expect(await closed(store, decidedBy(store.db))).toEqual(await closed(anew, decidedBy(anew.db)))
    }),
    { numRuns: 40 },
  )
})

it('goes on after an interruption at any batch, whatever is taken in between', async () => {
  await fc.assert(
    fc.asyncProperty(deliveries, policies, policies, fc.nat(5), async (told, before, after, batches) => {
      const [last, ...early] = told
      const first = await storeUnder(before, early)
      let asked = 0
      const counted: number[] = []
      const interrupted = await first
        .rebuild(after, {
          isStopping: () => asked++ === batches,
          onProgress: (count) => counted.push(count),
        })
        .then(
          () => null,
          (error: { code: string }) => error.code,
        )
      if (interrupted !== null) expect(interrupted).toBe('rebuild_interrupted')
      if (last) await first.writeBatch([last])
      await first.close()

      const again = await storeUnder(before, [], { file: first.file })
      const folded: number[] = []
      await again.rebuild(after, { onProgress: (count) => folded.push(count) })
      // From where that was written down last, or from the first one where it had ended.
      const left = interrupted === null ? 0 : Number(counted.at(-1))
      expect([0, ...counted]).toContain(folded[0])
      expect(folded[0]).toBeLessThanOrEqual(left)
      expect(folded[0]).toBeGreaterThan(left - PACE.sourcesPerSave)
      // In the order in which they came here, which histories hold.
      const anew = await storeUnder(after, last ? [...early, last] : early)
      expect(await closed(again, decidedBy(again.db))).toEqual(await closed(anew, decidedBy(anew.db)))
    }),
    { numRuns: 30 },
  )
})

it('goes on though an event that it had folded has moved to another source since', async () => {
  // Under this policy it is applied, under the documented one ignored: the rebuild finds that twice.
  const before = withGrant('checkout.initiated')
  const begun = bodyOf(paymentEvent({ type: 'checkout.initiated', paymentId: 'pay_1' }))
  const linking = bodyOf(subscriptionEvent({ type: 'subscription.created', paymentId: 'pay_1' }))
  const store = await storeUnder(before, [deliveryOf(begun)])
  let asked = 0
  const interrupted = store.rebuild(DOCUMENTED_POLICY, { isStopping: () => asked++ === 1 })
  await expect(interrupted).rejects.toMatchObject({ code: 'rebuild_interrupted' })
  await store.writeBatch([deliveryOf(linking)])

  await store.rebuild(DOCUMENTED_POLICY)
  const anew = await storeUnder(DOCUMENTED_POLICY, [deliveryOf(begun), deliveryOf(linking)])
  expect(await decidedBy(store.db)).toEqual(await decidedBy(anew.db))
})

it('begins anew where the interrupted rebuild was for another policy', async () => {
  await fc.assert(
    fc.asyncProperty(deliveries, policies, policies, policies, async (told, before, dropped, after) => {
      const store = await storeUnder(before, told)
      let asked = 0
      await store.rebuild(dropped, { isStopping: () => asked++ === 2 }).catch(() => {})
      await store.rebuild(after)
      const anew = await storeUnder(after, told)
      expect(await closed(store, decidedBy(store.db))).toEqual(await closed(anew, decidedBy(anew.db)))
    }),
    { numRuns: 40 },
  )
})
