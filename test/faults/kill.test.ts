import fc from 'fast-check'
import { expect, it } from 'vitest'
import { customerStory, deliver, type SentEvent } from '../process/load.js'
import { configuredFolder, entitlementsOf, kill, serve } from '../process/served.js'
import { latchkey, startProgram } from '../setup/program.js'
import { expectNothingLost } from './aftermath.js'

/** A few in every run; hundreds by hand, as in `FAULT_ROUNDS=200 npx vitest run test/faults/kill.test.ts`. */
const ROUNDS = Number(process.env.FAULT_ROUNDS ?? 3)

/** Starts of a process, and a fold of all there is: generous, for a machine that has other work too. */
const ROUND_TIMEOUT_MS = 30_000

const STORIES_PER_ROUND = 40

interface Round {
  /** How many milliseconds into a start it is killed for the first time. */
  readonly start: number
  /** Then, served anew, how many deliveries must have been acknowledged. */
  readonly acknowledged: number
  /** How many milliseconds into what is under way then. */
  readonly later: number
}

const rounds: fc.Arbitrary<Round> = fc.noBias(
  fc.record({
    start: fc.integer({ min: 0, max: 700 }),
    acknowledged: fc.integer({ min: 1, max: 90 }),
    later: fc.integer({ min: 0, max: 12 }),
  }),
)

const storiesOf = (round: number) =>
  Array.from({ length: STORIES_PER_ROUND }, (_, i) => customerStory(round * STORIES_PER_ROUND + i))

/** Killed on its way to serving, or, where it is faster than that, once it serves. */
async function killAtStart(folder: string, after: number): Promise<void> {
  const program = startProgram(latchkey('serve'), { folder, env: { LATCHKEY_PORT: '0' } })
  const timer = setTimeout(() => program.signal('SIGKILL'), after)
  await program.until(/"msg":"serving on /).catch(() => {})
  clearTimeout(timer)
  await kill(program)
}

/** Delivers until the daemon is killed under it. */
async function killUnder(folder: string, events: readonly SentEvent[], { acknowledged, later }: Round) {
  const daemon = await serve(folder)
  const load = await deliver(daemon.url, events, {
    onAcknowledged: (count) => {
      if (count === acknowledged) setTimeout(() => daemon.signal('SIGKILL'), later)
    },
  })
  await kill(daemon)
  return load
}

it(
  'loses nothing that it acknowledged, killed at random moments again and again on one database',
  async () => {
    const folder = configuredFolder()
    const acknowledged: string[] = []
    let stored: readonly string[] = []
    let left: readonly SentEvent[] = []
    let storedUntold = 0
    for (const [n, round] of fc.sample(rounds, ROUNDS).entries()) {
      const moment = `round ${n}: ${JSON.stringify(round)}`
      await killAtStart(folder, round.start)
      const events = [...left, ...storiesOf(n).flatMap((story) => story.events)]
      const load = await killUnder(folder, events, round)

      expect(load.refused, moment).toEqual([])
      const again = load.acknowledged.filter((_, i) => load.dispositions[i] === 'duplicate')
      expect(new Set(again), moment).toEqual(new Set(load.acknowledged.filter((id) => stored.includes(id))))
      acknowledged.push(...load.acknowledged)
      stored = await expectNothingLost(folder, acknowledged, moment)
      left = events.filter(({ id }) => !load.acknowledged.includes(id))
      storedUntold += again.length
    }

    const daemon = await serve(folder)
    const last = await deliver(daemon.url, left)
    acknowledged.push(...last.acknowledged)
    storedUntold += last.dispositions.filter((disposition) => disposition === 'duplicate').length
    await expectNothingLost(folder, acknowledged)
    for (const { customerId, outcome } of Array.from({ length: ROUNDS }, (_, n) => storiesOf(n)).flat()) {
      expect(await entitlementsOf(daemon, customerId)).toEqual([outcome])
    }
    process.stdout.write(
      `${2 * ROUNDS} kills, ${acknowledged.length} events acknowledged, ${storedUntold} of them stored before\n`,
    )
  },
  ROUND_TIMEOUT_MS * (ROUNDS + 1),
)
