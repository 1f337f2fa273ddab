import { expect, it } from 'vitest'
import { metric, warnings } from './observed.js'
import { NOW, type RunningDaemon, runDaemon, send } from './running-daemon.js'

const HOUR = 3_600_000
const WAITING = 'latchkey_events_waiting{environment="live",disposition="quarantined"}'
const OLDEST = 'latchkey_oldest_waiting_event_age_seconds{environment="live",disposition="quarantined"}'
const NO_DELIVERY = 'no delivery for an unusually long time: check the sender, and the proxies on the way'

/** Delivers an event as if it were so late. */
async function deliverAt(daemon: RunningDaemon, at: number, endpoint = 'live'): Promise<void> {
  daemon.setNow(at)
  const createdAt = new Date(at).toISOString()
  const body = JSON.stringify({ id: `evt_${at}`, type: 'customer.created', createdAt, data: { id: 'cus_1' } })
  const answer = await send(daemon, body, { endpoint, timestamp: String(Math.floor(at / 1000)) })
  expect(answer.status).toBe(200)
}

it('tells in metrics when the last delivery came, how long ago, and how often they usually come', async () => {
  const daemon = await runDaemon()
  for (const hours of [9, 3, 2, 1]) await deliverAt(daemon, NOW - hours * HOUR)
  daemon.setNow(NOW)
  const last = (NOW - HOUR) / 1000
  expect(await metric(daemon, 'latchkey_last_delivery_timestamp_seconds{endpoint="live"}')).toBe(last)
  expect(await metric(daemon, 'latchkey_delivery_gap_seconds{endpoint="live"}')).toBe(3_600)
  expect(await metric(daemon, 'latchkey_delivery_usual_interval_seconds{endpoint="live"}')).toBe(9_600)
  expect(await metric(daemon, 'latchkey_delivery_gap_seconds{endpoint="sandbox"}')).toBeNull()
})

it('counts in metrics what waits, and says since when the oldest does', async () => {
  const daemon = await runDaemon()
  expect([await metric(daemon, WAITING), await metric(daemon, OLDEST)]).toEqual([0, null])
  await send(daemon, 'not JSON')
  daemon.setNow(NOW + HOUR)
  await send(daemon, 'no JSON either', { timestamp: String(Math.floor((NOW + HOUR) / 1000)) })
  expect([await metric(daemon, WAITING), await metric(daemon, OLDEST)]).toEqual([2, 3_600])
})

it('warns in the log once an endpoint that is used to deliveries has fallen silent', async () => {
  const daemon = await runDaemon()
  // Twenty, over more than a week.
  for (let n = 19; n >= 0; n -= 1) await deliverAt(daemon, NOW - (n * 10 + 21) * HOUR)
  await deliverAt(daemon, NOW - 21 * HOUR, 'sandbox')
  daemon.setNow(NOW)
  const later = await daemon.restart()
  await expect
    .poll(() => warnings(later))
    .toMatchObject([
      { endpoint: 'live', silentSeconds: 21 * 3_600, usualIntervalSeconds: 36_000, msg: NO_DELIVERY },
    ])
})
