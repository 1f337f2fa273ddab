import { describe, expect, it } from 'vitest'
import { customerStory, deliver, type SentEvent } from '../stories.js'
import { configuredFolder, entitlementsOf, serve, serveHere } from '../world.js'
import { expectNothingLost } from './aftermath.js'
import { HAS_FAULTY_DISK, type Killing, killAtCommit, killOnDisk, LARGE_EVENTS } from './injected-faults.js'

const BEFORE = customerStory(1)
const DURING = customerStory(2)

/** Kills the daemon while it stores these; what the next one says of each when they come again. */
async function resent({ env, arm }: Killing, events: readonly SentEvent[]): Promise<readonly string[]> {
  const folder = configuredFolder()
  const daemon = await serve(folder, env)
  const acknowledged = [...(await deliver(daemon.url, BEFORE.events)).acknowledged]
  expect(acknowledged).toHaveLength(BEFORE.events.length)
  arm()
  acknowledged.push(...(await deliver(daemon.url, events)).acknowledged)
  expect(await daemon.exit).toMatchObject({ code: null })
  await expectNothingLost(folder, acknowledged)

  const next = await serveHere(folder)
  const left = events.filter(({ id }) => !acknowledged.includes(id))
  const again = await deliver(next.url, left)
  expect(again.refused).toEqual([])
  expect(await entitlementsOf(next, BEFORE.customerId)).toEqual([BEFORE.outcome])
  await expectNothingLost(folder, [...acknowledged, ...again.acknowledged])
  return again.dispositions
}

describe('a daemon killed', () => {
  it('right before a commit has stored nothing of it', async () => {
    expect(await resent(killAtCommit('before'), DURING.events)).toEqual(['applied', 'applied'])
  })

  it('between a commit and the answer knows the event when it comes again', async () => {
    expect(await resent(killAtCommit('after'), DURING.events)).toContain('duplicate')
  })
})

describe.skipIf(!HAS_FAULTY_DISK)('a daemon killed by way of its disk', () => {
  it('half-way through a write has stored nothing of it', async () => {
    expect(await resent(killOnDisk('write'), DURING.events)).toEqual(['applied', 'applied'])
  })

  it('right after a sync has stored it whole', async () => {
    expect(await resent(killOnDisk('sync'), DURING.events)).toContain('duplicate')
  })

  it('half-way through moving the log into the database keeps both', async () => {
    // Beside the commits: what was under way may have been stored by then, or not, or all was acknowledged.
    for (const disposition of await resent(killOnDisk('write', 'latchkey.db'), LARGE_EVENTS)) {
      expect(['applied', 'duplicate']).toContain(disposition)
    }
  })
})
