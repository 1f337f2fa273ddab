import { expect, it } from 'vitest'
import { startWriter } from '../../src/daemon/start-writer.js'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { paymentEvent } from '../entitlements/events.js'
import { bodyOf, deliveryOf } from '../ingest/wire.js'
import { temporaryFile } from '../store/temporary-store.js'
import { NOW, REBUILD, storeUnder } from './recompute-store.js'

/** The rebuild of one source takes a handful of steps, between any two of which what waits has its turn. */
const BATCHES_MEANWHILE = 100

it('has its turn in the thread that writes, though deliveries never cease', async () => {
  const delivery = deliveryOf(bodyOf(paymentEvent({ type: 'payment.authorized', paymentId: 'pay_1' })))
  const file = temporaryFile()
  const { close } = await storeUnder(DOCUMENTED_POLICY, [delivery], { file })
  await close()
  const ended: Error[] = []
  const writer = startWriter({ file, clock: () => NOW, onEnded: (error) => ended.push(error) })
  let batches = 0
  let isOver = false
  const deliver = async (): Promise<void> => {
    for (; !isOver; batches += 1) await writer.writeBatch([delivery])
  }
  const delivering = [deliver(), deliver(), deliver()]
  try {
    const { access } = await writer.recompute(REBUILD)
    expect(access.all).toMatchObject({ gains: 0, losses: 0, otherwise: 0 })
    expect(batches).toBeLessThan(BATCHES_MEANWHILE)
  } finally {
    isOver = true
    await Promise.all(delivering)
    await writer.close()
  }
  expect(ended).toEqual([])
})
