import { Help } from 'commander'
import { LatchkeyError } from '../errors.js'
import type { Generation } from '../provider/event.js'
import { findSampleType, SAMPLE_TYPES, sampleTypes } from '../provider/sample-event.js'

const LINE_WIDTH = 78

/** More slips than this in a name, and it was meant otherwise. */
const MAX_SLIPS = 3

/** Every type that can be sent, for the help. */
export function sampleTypesText(): string {
  return [...typeLines('v3', 'Event types of v3:'), ...typeLines('v2', 'Event types of v2:')].join('\n')
}

function typeLines(generation: Generation, heading: string): string[] {
  const wrapped = new Help().boxWrap(SAMPLE_TYPES[generation].join(', '), LINE_WIDTH)
  return ['', heading, ...wrapped.split('\n').map((line) => `  ${line}`)]
}

/** Throws `usage`, with the type that was probably meant, for one that the generation does not send. */
export function requireSampleType(type: string, generation: Generation | undefined): void {
  if (findSampleType(type, generation) !== undefined) return
  const nearest = nearestName(type, sampleTypes(generation))
  const where = generation ? `${generation} ` : ''
  const question = nearest === undefined ? '' : ` Did you mean ${nearest}?`
  throw new LatchkeyError(
    'usage',
    `there is no ${where}event type ${JSON.stringify(type)}.${question} \`latchkey trigger --help\` lists them all`,
  )
}

function nearestName(text: string, names: readonly string[]): string | undefined {
  const [nearest] = names
    .map((name) => ({ name, slips: slipsBetween(text.toLowerCase(), name.toLowerCase()) }))
    .filter(({ slips }) => slips <= MAX_SLIPS)
    .sort((a, b) => a.slips - b.slips)
  return nearest?.name
}

/** How many characters were left out, added or exchanged: the Levenshtein distance. */
function slipsBetween(text: string, name: string): number {
  let row = Array.from({ length: name.length + 1 }, (_, length) => length)
  for (const [index, typed] of [...text].entries()) {
    const next = [index + 1]
    for (const [column, meant] of [...name].entries()) {
      const [skipped = 0, exchanged = 0, added = 0] = [row[column + 1], row[column], next[column]]
      next.push(Math.min(skipped + 1, added + 1, exchanged + (typed === meant ? 0 : 1)))
    }
    row = next
  }
  return row[name.length] ?? 0
}
