import { describe, expect, it } from 'vitest'
import { createStartedParts, type Part } from '../../src/daemon/started-parts.js'

function started(parts: readonly Part[], failing: readonly Part[] = []) {
  const stopped: Part[] = []
  const all = createStartedParts()
  for (const part of parts) {
    all.add(part, async () => {
      stopped.push(part)
      if (failing.includes(part)) throw new Error(`The ${part} would not stop.`)
    })
  }
  return { stop: all.stop, stopped }
}

describe('the parts of a daemon', () => {
  it('stop in their own order, in whatever order they were started, and the store last', async () => {
    const { stop, stopped } = started(['store', 'queue', 'listeners', 'privacySchedule'])
    await stop()
    expect(stopped).toEqual(['privacySchedule', 'listeners', 'queue', 'store'])
  })

  it('all stop where one of them fails to, which is told', async () => {
    const { stop, stopped } = started(['store', 'following', 'backups'], ['following', 'backups'])
    await expect(stop()).rejects.toThrow('The following would not stop.')
    expect(stopped).toEqual(['following', 'backups', 'store'])
  })

  it('stop once, however often they are told to', async () => {
    const { stop, stopped } = started(['store'])
    await Promise.all([stop(), stop()])
    expect(stopped).toEqual(['store'])
  })
})
