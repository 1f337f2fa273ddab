import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { customerStory, deliver } from '../process/load.js'
import { configuredFolder, entitlementsOf, type ServedDaemon, serve } from '../process/served.js'
import { databaseIn, expectNothingLost } from './aftermath.js'
import { NOT_STORED, send } from './patient-sender.js'

const BEFORE = customerStory(1)
const DURING = customerStory(2)
const ALL = [...BEFORE.events, ...DURING.events].map(({ id }) => id)

/** A daemon with something stored, and this process in possession of its database's write lock. */
async function heldDatabase() {
  const folder = configuredFolder()
  const daemon = await serve(folder)
  await deliver(daemon.url, BEFORE.events)
  const other = new Sqlite(databaseIn(folder))
  onTestFinished(() => void other.close())
  other.exec('begin immediate')
  return { folder, daemon, letGo: () => other.exec('rollback') }
}

const hasTried = (daemon: ServedDaemon) => daemon.until(/"msg":"the store can not be written now/)

describe('while another process holds the database', () => {
  it('deliveries wait for it, and are stored as soon as it lets go', async () => {
    const { folder, daemon, letGo } = await heldDatabase()
    const sent = DURING.events.map((event) => send(daemon, event))
    await hasTried(daemon)
    expect(await entitlementsOf(daemon, BEFORE.customerId)).toEqual([BEFORE.outcome])
    expect(await entitlementsOf(daemon, DURING.customerId)).toEqual([])
    letGo()
    for (const answer of await Promise.all(sent)) {
      expect(answer).toMatchObject({ status: 200, disposition: 'applied' })
    }
    expect(await entitlementsOf(daemon, DURING.customerId)).toEqual([DURING.outcome])
    await expectNothingLost(folder, ALL)
  })

  it('deliveries are refused before their senders give up, and taken when they come again', async () => {
    const { folder, daemon, letGo } = await heldDatabase()
    const refused = await Promise.all(DURING.events.map((event) => send(daemon, event)))
    for (const answer of refused) expect(answer).toMatchObject(NOT_STORED)
    expect(await entitlementsOf(daemon, BEFORE.customerId)).toEqual([BEFORE.outcome])
    letGo()
    // One that was refused for being late may have been under way, and stored at last.
    for (const disposition of (await deliver(daemon.url, DURING.events)).dispositions) {
      expect(['applied', 'duplicate']).toContain(disposition)
    }
    await expectNothingLost(folder, ALL)
  })
})
