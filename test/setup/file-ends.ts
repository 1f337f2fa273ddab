import { afterAll } from 'vitest'
import type { AtEnd } from '../world.js'

/** Ends what a file's tests share, the last first: also after a set-up that has failed half way. */
export function whenFileEnds(): AtEnd {
  const ends: (() => unknown)[] = []
  afterAll(async () => {
    for (const end of ends) await end()
  })
  return (end) => void ends.unshift(end)
}
