import { setTimeout as wait } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { subscriptionHistory } from '../entitlements/histories.js'
import { bodyOf } from '../ingest/wire.js'
import { eventually } from '../setup/eventually.js'
import { freePort } from '../setup/free-port.js'
import { deliver, type SentEvent, send } from '../stories.js'
import {
  type AskedDaemon,
  ask,
  configuredFolder,
  kill,
  latchkey,
  serve,
  serveHere,
  startProgram,
} from '../world.js'
import { expectNothingLost, foldedState } from './aftermath.js'

/** A few in every run; hundreds by hand, as in `FAULT_ROUNDS=200 npx vitest run test/faults/kill.test.ts`. */
const ROUNDS = Number(process.env.FAULT_ROUNDS ?? 3)

/** Starts of a process, and a fold of all there is: generous, for a machine that has other work too. */
const ROUND_TIMEOUT_MS = 30_000

interface Round {
  /** How many milliseconds into a start it is killed for the first time. */
  readonly start: number
  /** Then, once it has served for a while, how many milliseconds into what is under way. */
  readonly later: number
}

const rounds: fc.Arbitrary<Round> = fc.noBias(
  fc.record({ start: fc.integer({ min: 0, max: 700 }), later: fc.integer({ min: 0, max: 12 }) }),
)

/** Subscriptions as the provider tells them, each with customers of its own. */
const EVENTS: readonly SentEvent[] = fc
  .sample(subscriptionHistory, { numRuns: 60, seed: 20_260_301 })
  .flatMap(({ events }, n) => events.map((event) => renamed(bodyOf(event), n)))
const CUSTOMERS = Array.from({ length: 60 }, (_, n) => [`cus_${n}_1`, `cus_${n}_2`]).flat()

function renamed(body: string, n: number): SentEvent {
  const own = body.replace(/"(evt|cus|sub|pay)_/g, `"$1_${n}_`)
  return { id: (JSON.parse(own) as { id: string }).id, body: own }
}

/** All events in an order of their own, every third one twice. */
function disordered(): readonly SentEvent[] {
  const all = [...EVENTS, ...EVENTS.filter((_, i) => i % 3 === 0)]
  const [order = []] = fc.sample(fc.shuffledSubarray(all, { minLength: all.length }), 1)
  return order
}

/** What the API answers about every customer, but for the instant and the place in the change log. */
async function stateOf(folder: string, daemon: AskedDaemon) {
  const answers: object[] = []
  for (const customerId of CUSTOMERS) {
    const answer = await ask(daemon, `/entitlements/${customerId}`)
    expect(answer.status).toBe(200)
    const { asOf: _at, cursor: _place, ...told } = (await answer.json()) as Record<string, unknown>
    answers.push(told)
  }
  return { answers, folded: await foldedState(folder) }
}

/** What a daemon comes to that was never down, and got every event once, in order. */
async function undisturbed() {
  const folder = configuredFolder()
  const daemon = await serveHere(folder)
  expect((await deliver(daemon.url, EVENTS)).acknowledged).toHaveLength(EVENTS.length)
  return stateOf(folder, daemon)
}

/** Sends as the provider does: what is not acknowledged comes again, after a while that grows. */
function startSender(url: string, deliveries: readonly SentEvent[]) {
  const acknowledged: string[] = []
  const refused: number[] = []
  const waiting = deliveries.values()

  async function connection(): Promise<void> {
    for (const event of waiting) {
      for (let pause = 10; ; pause = Math.min(2 * pause, 320)) {
        const answer = await send(url, event)
        if (answer?.status === 200) break
        if (answer !== null) refused.push(answer.status)
        await wait(pause)
      }
      acknowledged.push(event.id)
    }
  }

  return { acknowledged, refused, done: Promise.all(Array.from({ length: 8 }, connection)) }
}

it(
  'loses nothing that it acknowledged, and ends as if it had never been down, killed at random moments under its sender',
  async () => {
    const expected = await undisturbed()
    expect(new Set(expected.folded.entitlements.map(({ status }) => status)).size).toBeGreaterThan(3)

    const folder = configuredFolder()
    const port = { LATCHKEY_PORT: String(await freePort()) }
    const deliveries = disordered()
    const sender = startSender(`http://127.0.0.1:${port.LATCHKEY_PORT}`, deliveries)
    for (const [n, round] of fc.sample(rounds, ROUNDS).entries()) {
      const starting = startProgram(latchkey('serve'), { folder, env: port })
      await Promise.race([wait(round.start), starting.until(/"msg":"serving on /)])
      await kill(starting)

      const daemon = await serve(folder, port)
      const share = ((n + 1) / (ROUNDS + 1)) * deliveries.length
      await eventually(() => expect(sender.acknowledged.length).toBeGreaterThan(share), { intervalMs: 2 })
      await wait(round.later)
      await kill(daemon)
      await expectNothingLost(folder, sender.acknowledged, `round ${n}: ${JSON.stringify(round)}`)
    }

    const daemon = await serve(folder, port)
    await sender.done
    expect(sender.refused).toEqual([])
    const again = await deliver(daemon.url, EVENTS)
    expect(again.dispositions).toEqual(EVENTS.map(() => 'duplicate'))
    await expectNothingLost(folder, sender.acknowledged)
    expect(await stateOf(folder, daemon)).toEqual(expected)
  },
  ROUND_TIMEOUT_MS * (ROUNDS + 2),
)
