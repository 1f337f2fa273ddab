import { rmSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { customerStory, deliver, type SentEvent } from '../process/load.js'
import { configuredFolder, entitlementsOf, serve } from '../process/served.js'
import { databaseIn, expectNothingLost } from './aftermath.js'
import { NOT_STORED, send } from './patient-sender.js'

const BEFORE = customerStory(1)
const [NEXT] = customerStory(2).events as [SentEvent]

describe('a daemon whose write-ahead log is removed', () => {
  it.each([
    ['the log', ['-wal']],
    ['its index', ['-shm']],
    ['both', ['-wal', '-shm']],
  ])('takes nothing more without %s, ends, and saves what it acknowledged', async (_name, removed) => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    const { acknowledged } = await deliver(daemon.url, BEFORE.events)
    for (const suffix of removed) rmSync(`${databaseIn(folder)}${suffix}`)

    expect(await send(daemon, NEXT)).toMatchObject(NOT_STORED)
    expect(await daemon.exit).toMatchObject({ code: 1 })
    await expectNothingLost(folder, acknowledged)
    const next = await serve(folder)
    expect(await entitlementsOf(next, BEFORE.customerId)).toEqual([BEFORE.outcome])
  })
})
