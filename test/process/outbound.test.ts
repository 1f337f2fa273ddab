import { expect, it } from 'vitest'
import { eventually } from '../setup/eventually.js'
import { type ReceivedMessage, SECRET, startReceiver, status } from '../sync/webhook/receiver.js'
import { customerStory, deliver } from './load.js'
import { CONFIG, configuredFolder, kill, serve } from './served.js'

const CUSTOMERS = 60

interface Told {
  readonly customerId: string
  readonly after: { readonly active: boolean; readonly status: string }
}

const toldBy = ({ payload }: ReceivedMessage) => payload.data as unknown as Told

it('tells every change of access at least once through kills and outages, in order, under one id each', async () => {
  const receiver = await startReceiver()
  const folder = configuredFolder({ ...CONFIG, sync: { webhook: { url: receiver.url, secret: SECRET } } })
  // Every fifth is taken and not acknowledged, every third refused.
  receiver.answerWith((res, message, count) => {
    if (count % 5 === 0) res.destroy()
    else status(count % 3 === 0 ? 503 : 204)(res, message, count)
  })
  const stories = Array.from({ length: CUSTOMERS }, (_, n) => customerStory(n))
  let daemon = await serve(folder)
  for (const part of [stories.slice(0, CUSTOMERS / 2), stories.slice(CUSTOMERS / 2)]) {
    const before = receiver.received.length
    expect(
      (
        await deliver(
          daemon.url,
          part.flatMap(({ events }) => events),
        )
      ).refused,
    ).toEqual([])
    await eventually(() => expect(receiver.received.length).toBeGreaterThan(before + 10))
    await kill(daemon)
    daemon = await serve(folder)
  }
  receiver.answerWith(status(204))
  await eventually(() => {
    const last = new Map(
      receiver.received.map((message) => [toldBy(message).customerId, toldBy(message).after]),
    )
    expect(last.size).toBe(CUSTOMERS)
    for (const { customerId, outcome } of stories) {
      const { active, status } = outcome
      expect(last.get(customerId)).toMatchObject({ active, status })
    }
  })
  expect(receiver.refused).toEqual([])
  const bodies = new Map<string, unknown>()
  for (const { id, payload } of receiver.received) {
    expect(payload).toEqual(bodies.get(id) ?? payload)
    bodies.set(id, payload)
  }
  for (const { customerId } of stories) {
    const cursors = [
      ...new Set(
        receiver.received.filter((one) => toldBy(one).customerId === customerId).map(({ id }) => id),
      ),
    ].map((id) => Number(id.split('_')[2]))
    expect(cursors).toEqual(cursors.toSorted((a, b) => a - b))
  }
  expect(daemon.stdout() + daemon.stderr()).not.toContain(SECRET.slice(6))
})
