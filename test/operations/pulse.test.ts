import { describe, expect, it } from 'vitest'
import { createPulse } from '../../src/operations/pulse.js'
import { consoleConfig, serveConsole } from '../console/signed-in.js'
import { API_KEY, act, ask } from '../world.js'

const START = Date.parse('2026-03-01T12:00:30Z')
const NONE = { applied: 0, ignored: 0, held: 0, quarantined: 0, duplicate: 0, refused: 0, notStored: 0 }

function pulseAt(start: number) {
  let now = start
  const pulse = createPulse(() => now)
  const pass = (ms: number): void => {
    now += ms
  }
  return { ...pulse, pass }
}

describe('the pulse of deliveries', () => {
  it('counts each minute of the last hour, or since the start, also those without any', () => {
    const { note, read, pass } = pulseAt(START)
    note('live', 'applied', 2)
    pass(120_000)
    note('live', 'duplicate', 2)
    note('live', 'refused', 2)
    note('other', 'held', 2)
    expect(read(['live', 'nowhere']).minutes).toEqual([
      { at: Date.parse('2026-03-01T12:00:00Z'), ...NONE, applied: 1 },
      { at: Date.parse('2026-03-01T12:01:00Z'), ...NONE },
      { at: Date.parse('2026-03-01T12:02:00Z'), ...NONE, duplicate: 1, refused: 1 },
    ])
    expect(read(['live', 'other']).minutes.at(-1)).toMatchObject({ held: 1, duplicate: 1 })
    pass(59 * 60_000)
    const { minutes } = read(['live'])
    expect([minutes.length, minutes[0]]).toEqual([
      60,
      { at: Date.parse('2026-03-01T12:02:00Z'), ...NONE, duplicate: 1, refused: 1 },
    ])
    pass(60_000)
    expect(read(['live']).minutes[0]).toMatchObject(NONE)
  })

  it('knows to a tenth how long acknowledgements took, and nothing of refusals', () => {
    const { note, read } = pulseAt(START)
    note('live', 'refused', 5_000)
    note('live', 'notStored', 4_000)
    expect(read(['live']).acknowledged).toBeNull()
    for (let ms = 1; ms <= 100; ms += 1) note('live', 'applied', ms)
    const { count, p50Ms = 0, p95Ms = 0, p99Ms = 0 } = read(['live']).acknowledged ?? {}
    expect(count).toBe(100)
    for (const [measured, real] of [
      [p50Ms, 50],
      [p95Ms, 95],
      [p99Ms, 99],
    ] as const) {
      expect(measured).toBeGreaterThanOrEqual(real * 0.95)
      expect(measured).toBeLessThanOrEqual(real * 1.15)
    }
    note('live', 'applied', 0)
    note('live', 'applied', 1e9)
    expect(read(['live']).acknowledged?.count).toBe(102)
  })
})

it('GET /deliveries tells a key of one environment of its endpoints alone', async () => {
  const daemon = await serveConsole(
    consoleConfig({ lk_sandbox: { scopes: ['admin'], environments: ['sandbox'] } }),
  )
  await daemon.deliver('payment.authorized')
  await daemon.deliver('payment.authorized', { environment: 'sandbox', eventId: 'evt_again' })
  await daemon.deliver('payment.authorized', { environment: 'sandbox', eventId: 'evt_again' })
  await act(daemon, 'POST', '/customers/cus_1/grants', { productId: 'pro_gold', reason: 'not a delivery' })
  await fetch(`${daemon.url}/webhooks/sandbox`, { method: 'POST', body: '{}' })
  await fetch(`${daemon.url}/webhooks/nowhere`, { method: 'POST', body: '{}' })
  await fetch(`${daemon.url}/webhooks/sandbox`)
  const sumsOf = async (path: string, key = API_KEY) => {
    const answer = (await (await ask(daemon, path, key)).json()) as {
      minutes: readonly Readonly<Record<string, number>>[]
      acknowledged: { count: number }
      endpoints: readonly { name: string; lastEventAt: string | null }[]
    }
    const sum = (name: string) => answer.minutes.reduce((all, minute) => all + (minute[name] ?? 0), 0)
    const names = answer.endpoints.map(({ name }) => name)
    return [names, sum('applied'), sum('duplicate'), sum('refused'), answer.acknowledged.count]
  }
  expect(await sumsOf('/deliveries', 'lk_sandbox')).toEqual([['sandbox'], 1, 1, 1, 2])
  expect(await sumsOf('/deliveries?environment=live')).toEqual([['live'], 1, 0, 0, 1])
  expect(await sumsOf('/deliveries')).toEqual([['live', 'sandbox'], 2, 1, 1, 3])
})
