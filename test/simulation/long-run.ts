/* Seed after seed in several processes, for so many minutes: `npm run simulate -- --minutes 60 --jobs 2`. */

import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { numberIn, optionsIn } from './options.js'

/** Then a fresh process goes on. */
const SEEDS_EACH = 50
const LONG_DAYS = 20
/** To look at the memory takes as long as half of all else in a world: one process of so many does. */
const MEMORY_EVERY = 4
const SCRIPTS = join(import.meta.dirname, '..', '..', 'scripts')

export async function runLong(args: readonly string[]): Promise<number> {
  const values = optionsIn(args, {
    minutes: { type: 'string', default: '60' },
    jobs: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string' },
    days: { type: 'string', default: '60' },
  })
  const days = numberIn('days', values.days, 'parts')
  const jobs = numberIn('jobs', values.jobs)
  const endsAt = Date.now() + numberIn('minutes', values.minutes, 'parts') * 60_000
  let next = numberIn('seed', values.seed)
  const last =
    values.seeds === undefined ? Number.POSITIVE_INFINITY : next + numberIn('seeds', values.seeds) - 1
  const counts = { played: 0, failed: 0 }

  async function work(): Promise<void> {
    while (Date.now() < endsAt && next <= last) {
      const from = next
      const count = Math.min(SEEDS_EACH, last - from + 1)
      next += count
      const said = await runSeeds(from, count, days)
      counts.played += said.filter((line) => / hash [0-9a-f]+$/.test(line)).length
      const failures = said.filter((line) => / failed: /.test(line)).length
      counts.failed += failures
      if (failures > 0)
        process.stdout.write(`${said.filter((line) => !/^seed \d+: /.test(line)).join('\n')}\n`)
    }
  }
  await Promise.all(Array.from({ length: jobs }, work))
  process.stdout.write(`${counts.played} seeds of ${days} days, ${counts.failed} failures\n`)
  return counts.failed === 0 && counts.played > 0 ? 0 : 1
}

/** @returns the lines that it wrote */
function runSeeds(from: number, count: number, days: number): Promise<readonly string[]> {
  const looksAtMemory = days >= LONG_DAYS && Math.floor(from / SEEDS_EACH) % MEMORY_EVERY === 0
  const collects = looksAtMemory ? ['--expose-gc'] : []
  const program = [
    // Each processor has a job: threads that help with the garbage would only take from one another.
    ...['--disable-warning=ExperimentalWarning', '--single-threaded-gc', ...collects],
    ...['--import', join(SCRIPTS, 'typescript.js')],
  ]
  const which = ['--seed', String(from), '--seeds', String(count), '--days', String(days), '--shrink']
  const child = spawn(process.execPath, [...program, join(import.meta.dirname, 'main.ts'), ...which], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => {
      if (code !== 0 && !text.includes(' failed: '))
        text += `seed ${from} failed: the process ended with ${code}\n`
      resolve(text.split('\n').filter((line) => line !== ''))
    })
  })
}
