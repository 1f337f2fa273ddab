/* The command line: `npm run simulate -- --seed 7 --days 400`. */

import { parseArgs } from 'node:util'
import { play } from './run.js'
import { type Kind, storyOf } from './story.js'
import { prepareWorlds } from './world.js'

const write = (text: string): void => void process.stdout.write(`${text}\n`)

export async function runCommand(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seed: { type: 'string', default: '1' },
      seeds: { type: 'string', default: '1' },
      days: { type: 'string', default: '60' },
      only: { type: 'string' },
      kinds: { type: 'string' },
      trace: { type: 'boolean', default: false },
    },
  })
  const clean = await prepareWorlds()
  let failed = 0
  const first = Number(values.seed)
  for (let seed = first; seed < first + Number(values.seeds); seed += 1) {
    const story = storyOf(seed, Number(values.days), (values.kinds?.split(',') as Kind[] | undefined) ?? null)
    const only = values.only?.split(',').map(Number)
    const chosen = only === undefined ? story : story.filter(({ number }) => only.includes(number))
    const outcome = await play(seed, chosen, values.trace ? write : null)
    if (outcome.failure !== null) {
      failed += 1
      write(`seed ${seed} failed: ${outcome.failure.message}`)
    }
    write(
      `seed ${seed}: ${story.length} steps, ${outcome.lines} lines, ${outcome.turns} turns, ${Math.round(outcome.ms)} ms, hash ${outcome.hash}`,
    )
  }
  clean()
  return failed === 0 ? 0 : 1
}
