/*
 * Worlds in real time: two daemons as processes on one PostgreSQL, which are killed, stopped and cut off.
 * `npm run simulate -- --postgres --seed 7 --seconds 60`.
 */

import { setTimeout as wait } from 'node:timers/promises'
import type { Instance } from '../postgres/instance.js'
import { startOwnServer } from '../postgres/own-server.js'
import { openWay } from '../postgres/way.js'
import build from '../setup/build.js'
import { keepExitCode } from '../setup/keep-exit-code.js'
import type { AtEnd } from '../world.js'
import { chooseRealTime, elapsed } from './machine/time.js'
import { numberIn, optionsIn } from './options.js'
import { startDaemonProcesses } from './parts/daemon-processes.js'
import { type Outcome, play } from './run.js'
import { DAY_MS, kindsIn, ON_POSTGRES, realStoryOf, type Step, stepsIn } from './story.js'
import type { Ground } from './world.js'

/** While a second of a story passes, its buyers live through a day, whose events are dated in the past. */
const HASTE = DAY_MS / 1_000
/** Longer than a delivery is tried again, by the clock of the service: a story ends so long before now. */
const REST_MS = 2 * DAY_MS

/** What a world of so many seconds is built on. */
export async function postgresGround(seconds: number): Promise<Ground> {
  const ends: (() => unknown)[] = []
  const atEnd: AtEnd = (end) => void ends.push(end)
  const server = await startOwnServer(atEnd)
  let serving: readonly Instance[] = []
  let turn = 0
  /** Leads to each daemon in turn, whether it serves or not. */
  const way = await openWay(
    () => {
      turn += 1
      const next = serving[turn % serving.length]
      return next === undefined ? null : Number(new URL(next.daemon().url).port)
    },
    undefined,
    atEnd,
  )
  atEnd(connectForEachRequest())
  const from = Date.now() - REST_MS - seconds * 1_000 * HASTE
  /** When the story began: what it needs was started before. */
  let begunAt: number | null = null
  return {
    url: `http://127.0.0.1:${way.port}`,
    serviceOptions: { from, retryDelaysMs: [50, 200], timeoutMs: 2_000 },
    startDaemon: (options) =>
      startDaemonProcesses({
        ...options,
        databaseUrl: server.url,
        atEnd,
        onServing(both) {
          serving = both
        },
      }),
    async reach({ sandbox }, at) {
      begunAt ??= elapsed()
      await wait(Math.max(0, begunAt + at - elapsed()))
      // Its deliveries may wait for a daemon that stands still: the story goes on.
      void sandbox.advance({ to: from + at * HASTE })
    },
    catchUp: ({ sandbox }) => sandbox.advance({ to: Date.now() }),
    mayRunAhead: true,
    expectedErrors: EXPECTED_ERRORS,
    atEnd,
    async end() {
      for (const end of ends.reverse()) await end()
    },
  }
}

/** What a daemon says whose database does not answer. */
const EXPECTED_ERRORS: readonly RegExp[] = [/"code":"store_unavailable"/]

/** So that one question after the other may reach another daemon. @returns what ends it */
function connectForEachRequest(): () => void {
  const { fetch } = globalThis
  globalThis.fetch = (input, init) => {
    const headers = new Headers(init?.headers)
    headers.set('Connection', 'close')
    return fetch(input, { ...init, headers })
  }
  return () => {
    globalThis.fetch = fetch
  }
}

export function playOnPostgres(
  seed: number,
  seconds: number,
  story: readonly Step[],
  heard: ((line: string) => void) | null = null,
): Promise<Outcome> {
  chooseRealTime()
  return play(seed, story, () => postgresGround(seconds), heard)
}

const write = (text: string): void => void process.stdout.write(`${text}\n`)

export async function runOnPostgres(args: readonly string[]): Promise<number> {
  keepExitCode()
  const values = optionsIn(args, {
    postgres: { type: 'boolean' },
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '60' },
    only: { type: 'string' },
    kinds: { type: 'string' },
    trace: { type: 'boolean', default: false },
  })
  const first = numberIn('seed', values.seed)
  const seeds = numberIn('seeds', values.seeds)
  const seconds = numberIn('seconds', values.seconds, 'parts')
  const kinds = kindsIn(values.kinds, ON_POSTGRES)
  build()
  let failed = 0
  for (let seed = first; seed < first + seeds; seed += 1) {
    const story = realStoryOf(seed, seconds, kinds)
    const chosen = stepsIn(story, values.only)
    const from = Date.now()
    const { failure } = await playOnPostgres(seed, seconds, chosen, values.trace ? write : null)
    if (failure !== null) {
      failed += 1
      const options = (['kinds', 'only'] as const).map((name) =>
        values[name] === undefined ? '' : ` --${name} "${values[name]}"`,
      )
      for (const line of told(seed, chosen, failure)) write(line)
      write(`again: npm run simulate -- --postgres --seed ${seed} --seconds ${seconds}${options.join('')}`)
    }
    write(`seed ${seed}: ${chosen.length} steps, ${Math.round((Date.now() - from) / 1_000)} s`)
  }
  return failed === 0 ? 0 : 1
}

/** What failed in which story. */
export function told(
  seed: number,
  story: readonly Step[],
  { message, at }: NonNullable<Outcome['failure']>,
): readonly string[] {
  return [
    `seed ${seed} failed after ${(at / 1_000).toFixed(1)} s: ${message}`,
    ...story.map((step) => `  ${(step.at / 1_000).toFixed(1)} s: step ${step.number}, ${step.kind}`),
  ]
}
