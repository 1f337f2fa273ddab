import { Help } from 'commander'
import { LatchkeyError } from '../errors.js'
import { nearestName } from '../handlers/nearest-name.js'
import type { Generation } from '../provider/event.js'
import { findSampleType, SAMPLE_TYPES, sampleTypes } from '../provider/sample-event.js'

const LINE_WIDTH = 78

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
  const question = nearest === null ? '' : ` Did you mean ${nearest}?`
  throw new LatchkeyError(
    'usage',
    `there is no ${where}event type ${JSON.stringify(type)}.${question} \`latchkey trigger --help\` lists them all`,
  )
}
