import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { LatchkeyError } from '../../src/errors.js'
import type { Incoming, ManualAct, Receipt } from '../../src/ingest/delivery.js'
import { createIngestQueue } from '../../src/ingest/queue.js'
import { undatedAct } from '../../src/people/acts.js'
import type { DeliveryInput } from '../../src/store/events.js'

const MIB = 1024 * 1024

function delivery(bytes: number): DeliveryInput {
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
    underWayAtMost: 2,
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

describe('what can’t be written', () => {
  const ACT: ManualAct = {
    environment: 'live',
    undated: undatedAct({
      id: 'man_1',
      type: 'manual.blocked',
      customerId: 'cus_1',
      actor: 'ops',
      reason: null,
    }),
  }
  const RECORDED_ACT: Incoming = { ...delivery(10), headers: null }
  const DAMAGE = new LatchkeyError('store_unavailable', 'evt_1 can’t be read any more.')

  function queueBefore(error: unknown) {
    const logged: Record<string, unknown>[] = []
    const queue = createIngestQueue({
      underWayAtMost: 2,
      writeBatch: () => Promise.reject(error),
      log: pino({}, { write: (line: string) => logged.push(JSON.parse(line)) }),
      onWritten: () => {},
      onBroken: () => {},
    })
    return { queue, logged }
  }

  it.each([ACT, RECORDED_ACT])('is to be given again where a person gave it', async (act) => {
    const { queue, logged } = queueBefore(new Error('no such table'))
    const message = 'It could not be stored. Try again.'
    await expect(queue.ingest(act)).rejects.toMatchObject({ code: 'not_stored', message })
    expect(logged).toMatchObject([{ msg: 'a manual change could not be written' }])
  })

  it.each([ACT, RECORDED_ACT])('is refused for what keeps it from being stored, which lasts', async (act) => {
    const { queue } = queueBefore(DAMAGE)
    await expect(queue.ingest(act)).rejects.toBe(DAMAGE)
  })

  it.each([DAMAGE, new Error('no such table')])(
    'is to be sent again where a sender sent it',
    async (error) => {
      const { queue, logged } = queueBefore(error)
      const message = 'The delivery could not be written. Send it again.'
      await expect(queue.ingest(delivery(10))).rejects.toMatchObject({ code: 'not_stored', message })
      expect(logged).toMatchObject([
        { msg: 'a delivery could not be written', err: { message: error.message } },
      ])
    },
  )
})
