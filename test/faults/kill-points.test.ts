import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { customerStory, deliver, type SentEvent } from '../process/load.js'
import { configuredFolder, entitlementsOf, serve } from '../process/served.js'
import { temporaryFolder } from '../setup/program.js'
import { expectNothingLost } from './aftermath.js'
import { type DiskFault, type DiskOperation, faultyDisk, HAS_FAULTY_DISK } from './faulty-disk.js'
import { LARGE_EVENTS } from './large-events.js'

const BEFORE = customerStory(1)
const DURING = customerStory(2)

interface Killing {
  readonly env: Readonly<Record<string, string>>
  /** From here on it is killed at the point that is meant. */
  readonly arm: () => void
}

function atCommit(moment: 'before' | 'after'): Killing {
  const file = join(temporaryFolder(), 'kill-at-commit')
  const preload = join(import.meta.dirname, 'kill-at-commit.cjs')
  return {
    env: { NODE_OPTIONS: `--require ${preload}`, KILL_AT_COMMIT: file },
    arm: () => writeFileSync(file, moment),
  }
}

function onDisk(operation: DiskOperation, fault: DiskFault, files?: string): Killing {
  const disk = faultyDisk(files)
  return { env: disk.env, arm: () => disk.fail(operation, fault) }
}

/** Kills the daemon while it stores these; what it says of each when they come again to the next one. */
async function resent({ env, arm }: Killing, events: readonly SentEvent[]): Promise<readonly string[]> {
  const folder = configuredFolder()
  const daemon = await serve(folder, env)
  const acknowledged = [...(await deliver(daemon.url, BEFORE.events)).acknowledged]
  expect(acknowledged).toHaveLength(BEFORE.events.length)
  arm()
  acknowledged.push(...(await deliver(daemon.url, events)).acknowledged)
  expect(await daemon.exit).toMatchObject({ code: null })
  await expectNothingLost(folder, acknowledged)

  const next = await serve(folder)
  const again = await deliver(
    next.url,
    events.filter(({ id }) => !acknowledged.includes(id)),
  )
  expect(await entitlementsOf(next, BEFORE.customerId)).toEqual([BEFORE.outcome])
  await expectNothingLost(folder, [...acknowledged, ...again.acknowledged])
  expect(again.refused).toEqual([])
  return again.dispositions
}

describe('a daemon killed', () => {
  it('right before a commit has stored nothing of it', async () => {
    expect(await resent(atCommit('before'), DURING.events)).toEqual(['applied', 'applied'])
  })

  it('between a commit and the answer knows the event when it comes again', async () => {
    expect(await resent(atCommit('after'), DURING.events)).toContain('duplicate')
  })
})

describe.skipIf(!HAS_FAULTY_DISK)('a daemon killed by way of its disk', () => {
  it('half-way through a write has stored nothing of it', async () => {
    expect(await resent(onDisk('write', 'gone'), DURING.events)).toEqual(['applied', 'applied'])
  })

  it('right after a sync has stored it whole', async () => {
    expect(await resent(onDisk('sync', 'gone'), DURING.events)).toContain('duplicate')
  })

  it('half-way through moving the log into the database keeps both', async () => {
    // Beside the commits: what was under way may have been stored by then, or not, or all was acknowledged.
    for (const disposition of await resent(onDisk('write', 'gone', 'latchkey.db'), LARGE_EVENTS)) {
      expect(['applied', 'duplicate']).toContain(disposition)
    }
  })
})
