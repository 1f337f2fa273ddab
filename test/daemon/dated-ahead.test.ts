import { describe, expect, it } from 'vitest'
import type { JobJson } from '../../src/handlers/rebuilds.js'
import type { ReplayJson } from '../../src/handlers/replays.js'
import { eventually } from '../setup/eventually.js'
import {
  API_KEY,
  ask,
  call,
  LIVE_SECRET,
  NOW,
  type RunningDaemon,
  runDaemon,
  SANDBOX_SECRET,
  send,
} from './running-daemon.js'
import { CUSTOMER, PRODUCT, wireEvent } from './wire-events.js'

const DAY_MINUTES = 24 * 60
const HOUR_MINUTES = 60

/** Two endpoints of the sandbox, of which one may be ahead by so much. */
const aheadAtMost = (given: string | undefined) => ({
  endpoints: {
    live: { environment: 'live', secrets: [LIVE_SECRET] },
    sandbox: { environment: 'sandbox', secrets: [SANDBOX_SECRET], ...(given && { aheadAtMost: given }) },
    strict: { environment: 'sandbox', secrets: [SANDBOX_SECRET] },
  },
})

/** A payment that happens so many days from now. */
const paidIn = (days: number, id = `evt_in_${days}`) =>
  wireEvent('payment.authorized', {
    id,
    minutes: HOUR_MINUTES + days * DAY_MINUTES,
    environment: 'sandbox',
    payment: `pay_${id}`,
  })

async function disposition(daemon: RunningDaemon, body: string, endpoint = 'sandbox'): Promise<unknown> {
  const answer = await send(daemon, body, { endpoint, secret: SANDBOX_SECRET })
  return ((await answer.json()) as { disposition: unknown }).disposition
}

const get = async (daemon: RunningDaemon, path: string) => (await ask(daemon, path)).json()

const access = async (daemon: RunningDaemon, at = '') =>
  (
    (await get(daemon, `/entitlements/${CUSTOMER}/${PRODUCT}?environment=sandbox${at}`)) as {
      active: boolean
    }
  ).active

async function replayed(daemon: RunningDaemon): Promise<ReplayJson['summary']> {
  const started = await call(daemon, 'POST', '/replays?environment=sandbox', {})
  return eventually(async () => {
    const replay = (await get(daemon, `/replays/${started.json.id}`)) as ReplayJson
    expect(replay.state).toBe('done')
    return replay.summary
  })
}

/** How much of what is stored differs from what the events say. */
async function differences(daemon: RunningDaemon): Promise<unknown> {
  await call(daemon, 'POST', '/rebuild/verification', {})
  return eventually(async () => {
    const job = (await get(daemon, '/rebuild/verification')) as JobJson
    expect(job.state).toBe('done')
    return job.state === 'done' && job.differences?.count
  })
}

describe('an event that is dated ahead of the clock', () => {
  it('counts as far ahead as its endpoint accepts, and by default for a day', async () => {
    const daemon = await runDaemon({ config: aheadAtMost('1y') })
    expect(await disposition(daemon, paidIn(1), 'strict')).toBe('applied')
    expect(await disposition(daemon, paidIn(2), 'strict')).toBe('quarantined')
    expect(await disposition(daemon, paidIn(365))).toBe('applied')
    expect(await disposition(daemon, paidIn(366))).toBe('quarantined')
  })

  it('gives access as of itself, and at any instant from then on', async () => {
    const daemon = await runDaemon({ config: aheadAtMost('10y') })
    await disposition(daemon, paidIn(390))
    const at = (days: number) => `&at=${new Date(NOW + days * 86_400_000).toISOString()}`
    expect(await access(daemon)).toBe(true)
    expect(await access(daemon, at(389))).toBe(false)
    expect(await access(daemon, at(391))).toBe(true)
    expect(await get(daemon, '/changes?environment=sandbox')).toMatchObject({
      items: [{ at: new Date(NOW).toISOString(), after: { active: true } }],
    })
  })

  it('is taken in by a replay once its endpoint accepts it, and stays when that is set back', async () => {
    const daemon = await runDaemon({ config: aheadAtMost(undefined) })
    expect(await disposition(daemon, paidIn(300))).toBe('quarantined')
    expect(await replayed(daemon)).toMatchObject({ read: 1, recovered: 0, quarantined: 1 })
    expect(await access(daemon)).toBe(false)

    await daemon.readAgain(aheadAtMost('10y'))
    expect(await access(daemon)).toBe(false)
    expect(await replayed(daemon)).toMatchObject({ read: 1, recovered: 1, gains: 1 })
    expect(await access(daemon)).toBe(true)
    expect(await disposition(daemon, paidIn(301))).toBe('applied')

    await daemon.readAgain(aheadAtMost('2d'))
    expect(await disposition(daemon, paidIn(302))).toBe('quarantined')
    expect(await replayed(daemon)).toMatchObject({ read: 3, changed: 0, quarantined: 1, losses: 0 })
    const again = await daemon.restart()
    expect(await differences(again)).toBe(0)
    expect(await access(again)).toBe(true)
  })

  it('is imported where the endpoint accepts it, and quarantined where it does not', async () => {
    const from = await runDaemon({ config: aheadAtMost('10y') })
    await disposition(from, paidIn(300))
    const { lines } = (await get(from, '/exports?environment=sandbox')) as { lines: readonly string[] }
    for (const [given, outcome] of [
      ['10y', 'applied'],
      [undefined, 'quarantined'],
    ] as const) {
      const daemon = await runDaemon({ config: aheadAtMost(given) })
      const answer = await fetch(`${daemon.url}/imports`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${API_KEY}`, 'Content-Type': 'application/x-ndjson' },
        body: lines.join(''),
      })
      expect(await answer.json()).toEqual({ results: [{ outcome }] })
    }
  })
})
