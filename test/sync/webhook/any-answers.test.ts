import fc from 'fast-check'
import { expect, it } from 'vitest'
import { CHANGE_TYPES, typeOfChange } from '../../../src/entitlements/entitlement.js'
import { findMessages } from '../../../src/store/message-log.js'
import { loadDueMessages } from '../../../src/store/message-queue.js'
import { ENVIRONMENTS } from '../../../src/store/schema.js'
import { eventually } from '../../setup/eventually.js'
import { CHANGE, NOON, outboundStore, pass } from './outbound-store.js'
import { startReceiver, status } from './receiver.js'

const HOUR = 3_600_000
const [NONE, SOME] = [CHANGE.before, CHANGE.after]

const change = fc.record({
  customerId: fc.constantFrom('cus_1', 'cus_2'),
  environment: fc.constantFrom(...ENVIRONMENTS),
  before: fc.constantFrom(NONE, SOME),
  after: fc.constantFrom(NONE, SOME),
})
const changes = fc.record({ list: fc.array(change, { minLength: 1, maxLength: 5 }) })
const acts = [
  'send',
  'send later',
  'answer',
  'replay one',
  'replay some',
  'retry',
  'pause',
  'disable',
] as const
const act = fc.record({ act: fc.constantFrom(...acts), at: fc.nat(9) })
const filter = fc.record({
  types: fc.subarray([...CHANGE_TYPES], { minLength: 1 }),
  environments: fc.subarray([...ENVIRONMENTS], { minLength: 1 }),
  /** To the first attempts of all, before the receiver is well; 0: none until it is asked for one. */
  answers: fc.array(fc.constantFrom(204, 500, 429, 302, 410, 0, 0), { maxLength: 12 }),
})

/** A receiver that gives these answers first, and what came to it, by the numbers of the changes. */
async function answering(
  { answers, ...filtered }: typeof filter extends fc.Arbitrary<infer One> ? One : never,
  n: number,
) {
  const receiver = await startReceiver()
  const left = [...answers]
  const [received, settled]: [number[], number[]] = [[], []]
  const owed = new Map<number, () => void>()
  receiver.answerWith((res, message, count) => {
    const number = Number(message.payload.data.productId)
    const code = left.shift() ?? 204
    received.push(number)
    if ([0, 204, 410].includes(code)) settled.push(number)
    if (code !== 0) return status(code)(res, message, count)
    owed.set(number, () => {
      owed.delete(number)
      status(204)(res, message, count)
    })
  })
  const address = { ...filtered, id: `to-${n}`, url: receiver.url, disabled: false }
  return { receiver, received, settled, owed, address }
}

it('sends to each address what its filters let through, each customer in order and the newest last, whatever is answered, held back or sent again', async () => {
  const step = fc.oneof({ arbitrary: changes, weight: 1 }, { arbitrary: act, weight: 3 })
  const steps = fc.array(step, { minLength: 8, maxLength: 16 })
  await fc.assert(
    fc.asyncProperty(changes, steps, fc.tuple(filter, filter), async (first, next, filters) => {
      const store = await outboundStore()
      const receivers = await Promise.all(filters.map(answering))
      const outbound = await store.tell(...receivers.map(({ address }) => address))
      const all: (typeof CHANGE)[] = []
      let [isPaused, requeued] = [false, 0]
      const expectedBy = ({ address: { types, environments } }: (typeof receivers)[number]) =>
        [...all.entries()].filter(
          ([, { before, after, environment }]) =>
            types.includes(typeOfChange(before, after)) && environments.includes(environment),
        )
      const messages = (webhooks: readonly string[]) =>
        findMessages(
          store.db,
          { environments: ENVIRONMENTS, webhooks },
          { order: 'oldest first', limit: 1_000 },
        )
      const customerOf = (n: number) => `${all[n]?.environment}/${all[n]?.customerId}`

      /** Awaits that all is queued and sent that may be: a customer waits for the answer that is owed. */
      const quiet = () =>
        eventually(async () => {
          outbound.wake()
          for (const one of receivers) {
            const { address, owed } = one
            expect(await messages([address.id])).toHaveLength(expectedBy(one).length)
            if (isPaused || address.disabled) continue
            const due = await loadDueMessages(store.db, address.id, Date.now(), 20)
            const waiting = [...owed.keys()].map(customerOf)
            expect(due.filter((one) => !waiting.includes(customerOf(Number(one.change.productId))))).toEqual(
              [],
            )
          }
        })

      const perform: Record<(typeof acts)[number], (at: number) => unknown> = {
        send: quiet,
        'send later': async () => {
          await quiet()
          // Only now: a signature is good for minutes.
          pass(outbound, HOUR)
          await quiet()
        },
        answer: (at) => [...(receivers[at % 2]?.owed.values() ?? [])][0]?.(),
        'replay one': async (at) => {
          await quiet()
          const found = (await messages(['to-0', 'to-1'])).at(at)
          if (found === undefined) return
          requeued += 1
          await outbound.replay({ environments: ENVIRONMENTS, ids: [found.id] })
        },
        'replay some': async (at) => {
          await quiet()
          requeued += 1
          await outbound.replay({ environments: ENVIRONMENTS, from: NOON + at, to: NOON + at + 3 })
        },
        retry: async () => {
          await quiet()
          requeued += 1
          await outbound.retry({})
        },
        pause: async () => {
          await quiet()
          isPaused = !isPaused
          store.pause(isPaused)
        },
        disable: async (at) => {
          await quiet()
          const address = receivers[at % 2]?.address
          if (address !== undefined) address.disabled = !address.disabled
        },
      }
      for (const step of [first, ...next]) {
        if ('act' in step) await perform[step.act](step.at)
        else {
          const list = step.list.map((one, n) => {
            const number = all.length + n
            return { ...CHANGE, ...one, at: NOON + number, productId: `${number}` }
          })
          all.push(...list)
          await store.change(...list)
        }
      }

      store.pause(false)
      isPaused = false
      for (const { address } of receivers) address.disabled = false
      await eventually(async () => {
        for (const { owed } of receivers) for (const answer of [...owed.values()]) answer()
        await perform['send later'](0)
        for (const { waiting } of await outbound.status(ENVIRONMENTS)) expect(waiting).toBe(0)
      })
      await outbound.stop()
      for (const one of receivers) {
        expect(one.receiver.refused).toEqual([])
        const own = expectedBy(one).map(([n]) => n)
        const byCustomer = Map.groupBy(own, customerOf)
        for (const [customer, inOrder] of byCustomer) {
          const isTheirs = (n: number) => customerOf(n) === customer
          const came = one.received.filter(isTheirs)
          expect([...new Set(came)].toSorted((a, b) => a - b)).toEqual(inOrder)
          expect(came.at(-1)).toBe(inOrder.at(-1))
          const backwards = came.filter((n, at) => n < (came[at - 1] ?? -1))
          expect(backwards.length).toBeLessThanOrEqual(requeued)
          if (requeued === 0) expect(one.settled.filter(isTheirs)).toEqual(inOrder)
        }
        expect(one.received.filter((n) => !own.includes(n))).toEqual([])
      }
    }),
    { numRuns: 5 },
  )
})
