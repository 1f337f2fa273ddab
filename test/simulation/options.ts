/* What the command line asks for. It loads nothing else: worlds put clocks and much more in place before the program is. */

import { type ParseArgsConfig, parseArgs } from 'node:util'

export const HELP = `npm run simulate -- [options]

  --seed 7, --seeds 100    where to begin, and how many worlds to play
  --days 60                how long each story is
  --kinds act,kill         draws only steps of these kinds
  --only 3,7,12            plays only these steps
  --shrink                 makes a story that fails as short as possible
  --until-failure          plays no more seeds after one that fails
  --trace                  prints all that happens

  --minutes 60, --jobs 2   plays one seed after another for so long, in so many processes;
                           with --seed, --seeds and --days

  --postgres               plays worlds of two daemons on PostgreSQL, in real time; with --seconds 60
                           in place of --days, and --seed, --seeds, --kinds, --only and --trace
`

/** The command line asks for something that can't be done. */
export class UsageError extends Error {}

export function optionsIn<Options extends NonNullable<ParseArgsConfig['options']>>(
  args: readonly string[],
  options: Options,
) {
  try {
    return parseArgs({ args: [...args], options }).values
  } catch (error) {
    const [said = ''] = String(error instanceof Error ? error.message : error).split(/\. |\.?\n/)
    throw new UsageError(said.replace(/^Unknown option (\S+)$/, 'there is no option $1 here'))
  }
}

/** A number of at least 1, and a whole one unless parts of it can be had. */
export function numberIn(option: string, text: string, parts: 'whole' | 'parts' = 'whole'): number {
  const number = Number(text)
  const isFine = parts === 'whole' ? Number.isSafeInteger(number) && number >= 1 : number > 0
  if (isFine && number < Number.POSITIVE_INFINITY) return number
  throw new UsageError(
    `--${option} is ${parts === 'whole' ? 'a whole number from 1 on' : 'a number above 0'}, not "${text}"`,
  )
}
