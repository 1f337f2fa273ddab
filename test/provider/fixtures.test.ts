import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Generation, NormalizedEvent } from '../../src/provider/event.js'
import { WIRE_TYPES } from '../../src/provider/event-types.js'
import { normalise } from '../../src/provider/normalise.js'

const RECEIVED_AT = Date.parse('2026-03-01T12:00:05Z')
const FIXTURES = join(import.meta.dirname, '../fixtures')
const EXPECTED = '.normalised.json'

function namesOf(generation: Generation): string[] {
  return readdirSync(join(FIXTURES, generation)).filter((name) => !name.endsWith(EXPECTED))
}

function read(generation: Generation, name: string): Buffer {
  return readFileSync(join(FIXTURES, generation, name))
}

/** Both casings of a v3 body mean the same event, so they share one file. */
function expectedOf(generation: Generation, name: string): NormalizedEvent {
  return JSON.parse(read(generation, name.replace(/(\.snake|\.camel)?\.json$/, EXPECTED)).toString())
}

describe.each(['v2', 'v3'] as const)('the %s fixtures', (generation) => {
  it.each(namesOf(generation))('read %s as the event it is', (name) => {
    expect(normalise(read(generation, name), { environment: 'live', receivedAt: RECEIVED_AT })).toEqual({
      ok: true,
      event: expectedOf(generation, name),
    })
  })

  it('cover every type that the documents name', () => {
    const types = namesOf(generation).map((name) => JSON.parse(read(generation, name).toString()).type)
    expect([...new Set(types)].sort()).toEqual([...WIRE_TYPES[generation]].sort())
  })
})
