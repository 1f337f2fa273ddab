/* Plays a story in its world, and says what came of it. */

import { beQuiet } from './checks/quiet.js'
import { chanceOf } from './machine/chance.js'
import { isOfKilled } from './machine/processes.js'
import { elapsed, pass, until, untilGoingOn } from './machine/time.js'
import { trace, traceSoFar } from './machine/trace.js'
import { processorTime, turns } from './machine/virtual-time.js'
import { perform } from './steps.js'
import { HOUR_MS, type Step } from './story.js'
import { BrokenPromise, createWorld, type Ground, MINUTE_MS, type World } from './world.js'

export interface Outcome {
  readonly seed: number
  readonly failure: { readonly promise: string; readonly message: string; readonly at: number } | null
  readonly hash: string
  readonly lines: number
  readonly turns: number
  readonly ms: number
}

export async function play(
  seed: number,
  story: readonly Step[],
  groundOf: (seed: number) => Promise<Ground>,
  heard: ((line: string) => void) | null = null,
): Promise<Outcome> {
  const from = processorTime()
  const turnsBefore = turns()
  const ground = await groundOf(seed)
  let world: World | null = null
  let failure: Outcome['failure'] = null
  const stray: unknown[] = []
  const onStray = (error: unknown): void => {
    if (!isOfKilled(error)) stray.push(error)
  }
  process.on('unhandledRejection', onStray)
  process.on('uncaughtException', onStray)
  try {
    world = await createWorld(seed, heard, ground)
    for (const moment of momentsOf(story)) await playMoment(world, moment, stray)
  } catch (error) {
    const promise = error instanceof BrokenPromise ? error.promise : 'nothing fails'
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
    failure = { promise, message, at: elapsed() }
    trace(`failed: ${promise}`)
  }
  const { hash, lines } = traceSoFar()
  for (const one of [world, ground]) {
    try {
      await one?.end()
    } catch (error) {
      failure ??= { promise: 'the world ends', message: String(error), at: elapsed() }
    }
  }
  process.off('unhandledRejection', onStray)
  process.off('uncaughtException', onStray)
  return { seed, failure, hash, lines, turns: turns() - turnsBefore, ms: processorTime() - from }
}

function momentsOf(story: readonly Step[]): readonly (readonly Step[])[] {
  return [...Map.groupBy(story, ({ at }) => at).values()]
}

async function playMoment(world: World, moment: readonly Step[], stray: unknown[]): Promise<void> {
  await world.ground.reach(world.service, moment[0]?.at ?? 0)
  const begun = moment.map(async (step) => {
    trace(`step ${step.number} ${step.kind}`)
    if (step.kind === 'quiet') return
    await perform(world, step.kind, chanceOf(step.seed))
  })
  const all = Promise.all(begun)
  world.begun.push(all)
  await untilGoingOn(`the steps ${moment.map(({ number }) => number).join()}`, all)
  if (moment.some(({ kind }) => kind === 'quiet')) {
    await until('all steps', Promise.all(world.begun.splice(0)), HOUR_MS)
    await beQuiet(world)
  }
  const [lost] = stray
  if (lost !== undefined) throw lost
  const [broken] = world.broken
  if (broken === undefined) return
  // What the daemon logs of it comes a moment later.
  await pass(MINUTE_MS)
  throw new BrokenPromise(broken.promise, world.broken.map(({ message }) => message).join('\n'))
}
