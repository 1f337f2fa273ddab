import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import type { Incoming, Receipt } from '../../src/ingest/delivery.js'
import { createIngestQueue } from '../../src/ingest/queue.js'

const MIB = 1024 * 1024

function delivery(bytes: number): Incoming {
  return {
    endpoint: 'live',
    environment: 'live',
    body: Buffer.alloc(bytes),
    headers: { event: null, timestamp: '1790000000', signature: 'v1=00' },
    receivedAt: 1_790_000_000_000,
  }
}

/** A queue before a store that commits nothing until it may. */
function queueBeforeSlowStore() {
  const batches: number[] = []
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const queue = createIngestQueue({
    writeBatch: async (deliveries) => {
      batches.push(deliveries.length)
      await opened
      const receipts = deliveries.map((): Receipt => ({ id: null, disposition: 'applied' }))
      return { receipts, remarks: [], touched: [] }
    },
    log: pino({ enabled: false }),
    onWritten: () => {},
    onBroken: () => {},
  })
  return { queue, batches, open }
}

describe('what a batch and the queue hold', () => {
  it('is bounded by number', async () => {
    const { queue, batches, open } = queueBeforeSlowStore()
    open()
    await Promise.all(Array.from({ length: 600 }, () => queue.ingest(delivery(10))))
    expect(batches).toEqual([256, 256, 88])
  })

  it('is bounded by the bytes of the bodies', async () => {
    const { queue, batches, open } = queueBeforeSlowStore()
    open()
    await Promise.all(Array.from({ length: 11 }, () => queue.ingest(delivery(MIB))))
    expect(batches).toEqual([4, 4, 3])
  })

  it('takes no more than 64 MiB of bodies that wait, and again when there is room', async () => {
    const { queue, open } = queueBeforeSlowStore()
    const sent = Array.from({ length: 64 }, () => queue.ingest(delivery(MIB)))
    await expect(queue.ingest(delivery(1))).rejects.toMatchObject({ code: 'not_stored' })
    open()
    await Promise.all(sent)
    expect(await queue.ingest(delivery(MIB))).toEqual({ id: null, disposition: 'applied' })
  })

  it('takes no more than 4,096 deliveries that wait', async () => {
    const { queue, open } = queueBeforeSlowStore()
    const sent = Array.from({ length: 4_096 }, () => queue.ingest(delivery(10)))
    await expect(queue.ingest(delivery(10))).rejects.toMatchObject({ code: 'not_stored' })
    open()
    expect(await Promise.all(sent)).toHaveLength(4_096)
  })
})
