/* Plays a story in its world, and says what came of it. */

import { beQuiet } from './checks/quiet.js'
import { chanceOf } from './machine/chance.js'
import { isOfKilled } from './machine/processes.js'
import { elapsed, pass, processorTime, standStill, turns, until } from './machine/time.js'
import { trace, traceSoFar } from './machine/trace.js'
import { perform } from './steps.js'
import { DAY_MS, SOON_MS, type Step } from './story.js'
import { BrokenPromise, createWorld, MINUTE_MS, type World } from './world.js'

export interface Outcome {
  readonly seed: number
  readonly failure: { readonly promise: string; readonly message: string; readonly at: number } | null
  readonly hash: string
  readonly lines: number
  readonly turns: number
  readonly ms: number
}

/** So long after each moment, what has begun goes on by itself. */
const AFTERMATH_MS = 5_000

export async function play(
  seed: number,
  story: readonly Step[],
  heard: ((line: string) => void) | null = null,
): Promise<Outcome> {
  const from = processorTime()
  const turnsBefore = turns()
  let world: World | null = null
  let failure: Outcome['failure'] = null
  const stray: unknown[] = []
  const onStray = (error: unknown): void => {
    if (!isOfKilled(error)) stray.push(error)
  }
  process.on('unhandledRejection', onStray)
  process.on('uncaughtException', onStray)
  try {
    world = await createWorld(seed, heard)
    for (const moment of momentsOf(story)) await playMoment(world, moment, stray)
  } catch (error) {
    const promise = error instanceof BrokenPromise ? error.promise : 'nothing fails'
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
    failure = { promise, message, at: elapsed() }
    trace(`failed: ${promise}`)
  }
  const { hash, lines } = traceSoFar()
  try {
    await world?.end()
  } catch (error) {
    failure ??= { promise: 'the world ends', message: String(error), at: elapsed() }
  }
  process.off('unhandledRejection', onStray)
  process.off('uncaughtException', onStray)
  return { seed, failure, hash, lines, turns: turns() - turnsBefore, ms: processorTime() - from }
}

function momentsOf(story: readonly Step[]): readonly (readonly Step[])[] {
  return [...Map.groupBy(story, ({ at }) => at).values()]
}

async function playMoment(world: World, moment: readonly Step[], stray: unknown[]): Promise<void> {
  await passUntil(world, moment[0]?.at ?? 0)
  const begun = moment.map(async (step) => {
    trace(`step ${step.number} ${step.kind}`)
    if (step.kind === 'quiet') return
    await perform(world, step.kind, chanceOf(step.seed))
  })
  await until(`the steps ${moment.map(({ number }) => number).join()}`, Promise.all(begun), 30 * MINUTE_MS)
  await pass(AFTERMATH_MS)
  if (moment.some(({ kind }) => kind === 'quiet')) await beQuiet(world)
  const [lost] = stray
  if (lost !== undefined) throw lost
  const [broken] = world.broken
  if (broken !== undefined) throw broken
}

/** Time passes; the machine stands still if it is long. The service has then done what fell due. */
export async function passUntil(world: World, at: number): Promise<void> {
  const left = at - elapsed()
  if (left > SOON_MS) standStill(left)
  else if (left > 0) await pass(left)
  await until('what fell due at the service', world.service.sandbox.advance({ to: Date.now() }), DAY_MS)
}
