/* The command line: `npm run simulate -- --seed 7 --days 400`. */

import { numberIn, optionsIn } from './options.js'
import { play } from './run.js'
import { shrink } from './shrink.js'
import { DAY_MS, kindsIn, ON_SQLITE, type Step, stepsIn, storyOf } from './story.js'
import { prepareWorlds, virtualGround } from './virtual.js'

const write = (text: string): void => void process.stdout.write(`${text}\n`)

async function tellShortest(
  seed: number,
  again: string,
  story: readonly Step[],
  promise: string,
): Promise<void> {
  const shortest = await shrink(seed, story, promise, virtualGround, (left, runs) =>
    write(`  ${left} steps left after ${runs} runs`),
  )
  for (const { number, at, kind } of shortest) {
    write(`  day ${(at / DAY_MS).toFixed(2)}: step ${number}, ${kind}`)
  }
  const numbers = shortest.map(({ number }) => number).join()
  write(`again: npm run simulate -- --seed ${seed} ${again} --only ${numbers}`)
}

export async function runCommand(args: readonly string[]): Promise<number> {
  const values = optionsIn(args, {
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '1' },
    days: { type: 'string', default: '60' },
    only: { type: 'string' },
    kinds: { type: 'string' },
    shrink: { type: 'boolean', default: false },
    'until-failure': { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
  })
  const first = numberIn('seed', values.seed)
  const seeds = numberIn('seeds', values.seeds)
  const days = numberIn('days', values.days, 'parts')
  const kinds = kindsIn(values.kinds, ON_SQLITE)
  const again = `--days ${days}${values.kinds === undefined ? '' : ` --kinds "${values.kinds}"`}`
  const clean = await prepareWorlds()
  let failed = 0
  for (let seed = first; seed < first + seeds; seed += 1) {
    if (failed > 0 && values['until-failure']) break
    const story = storyOf(seed, days, kinds)
    const chosen = stepsIn(story, values.only)
    const outcome = await play(seed, chosen, virtualGround, values.trace ? write : null)
    if (outcome.failure !== null) {
      failed += 1
      write(`seed ${seed} failed: ${outcome.failure.message}`)
      if (values.shrink) await tellShortest(seed, again, chosen, outcome.failure.promise)
    }
    write(
      `seed ${seed}: ${story.length} steps, ${outcome.lines} lines, ${outcome.turns} turns, ${Math.round(outcome.ms)} ms, hash ${outcome.hash}`,
    )
  }
  clean()
  return failed === 0 ? 0 : 1
}
