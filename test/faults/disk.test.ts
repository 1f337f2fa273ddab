import { rmSync } from 'node:fs'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  customerStory,
  deliver,
  eventsOf,
  idsOf,
  NOT_STORED,
  type SentEvent,
  send,
  storiesOf,
} from '../stories.js'
import {
  ask,
  configuredFolder,
  databaseIn,
  entitlementsOf,
  kill,
  limited,
  type ServedDaemon,
  serve,
  serveHere,
} from '../world.js'
import { expectNothingLost } from './aftermath.js'
import {
  type DiskFault,
  type DiskOperation,
  faultyDisk,
  HAS_FAULTY_DISK,
  LARGE_EVENTS,
} from './injected-faults.js'

const BEFORE = customerStory(1)
const DURING = customerStory(2)
const [FIRST, SECOND] = DURING.events as [SentEvent, SentEvent]
const ALL = idsOf(eventsOf([BEFORE, DURING]))

const FAILED = {
  code: 1,
  stderr:
    'error: The store has failed: nothing more was acknowledged. Run `latchkey doctor` to see what is wrong; ' +
    'if the database is damaged, restore a backup with `latchkey restore`.\n',
}

/** A daemon that has taken in what came before. */
async function served(env: Readonly<Record<string, string>> = {}) {
  const folder = configuredFolder()
  const daemon = await serve(folder, env)
  expect((await deliver(daemon.url, BEFORE.events)).refused).toEqual([])
  return { folder, daemon }
}

/** The next daemon has all that was acknowledged, and goes on with what comes. */
async function expectRecovery(folder: string): Promise<void> {
  await expectNothingLost(folder, idsOf(BEFORE.events))
  const next = await serveHere(folder)
  expect((await deliver(next.url, DURING.events)).refused).toEqual([])
  for (const { customerId, outcome } of [BEFORE, DURING]) {
    expect(await entitlementsOf(next, customerId)).toEqual([outcome])
  }
  await expectNothingLost(folder, ALL)
}

describe.skipIf(!HAS_FAULTY_DISK)('a disk', () => {
  it('that is full has deliveries refused in time and questions answered, and needs no restart once it has room', async () => {
    const disk = faultyDisk()
    const { folder, daemon } = await served(disk.env)
    disk.fail('write', 'ENOSPC')
    const refused = DURING.events.map((event) => send(daemon.url, event))
    expect((await ask(daemon, '/readyz')).status).toBe(503)
    expect((await ask(daemon, '/healthz')).status).toBe(200)
    expect(await entitlementsOf(daemon, BEFORE.customerId)).toEqual([BEFORE.outcome])
    for (const answer of await Promise.all(refused)) expect(answer).toMatchObject(NOT_STORED)
    expect(await entitlementsOf(daemon, DURING.customerId)).toEqual([])

    disk.heal()
    const again = await deliver(daemon.url, DURING.events)
    expect(again.refused).toEqual([])
    // The last attempt to store one, under way when its sender was refused, may have met the room.
    for (const disposition of again.dispositions) expect(['applied', 'duplicate']).toContain(disposition)
    expect(await entitlementsOf(daemon, DURING.customerId)).toEqual([DURING.outcome])
    await expectNothingLost(folder, ALL)
  })

  it.each<[string, DiskOperation, DiskFault]>([
    ['fails to write', 'write', 'EIO'],
    ['fails to sync', 'sync', 'EIO'],
    ['is read-only now', 'write', 'EROFS'],
  ])('that %s ends the daemon, which acknowledged nothing more', async (_name, operation, fault) => {
    const disk = faultyDisk()
    const { folder, daemon } = await served(disk.env)
    disk.fail(operation, fault)
    expect(await send(daemon.url, FIRST)).toMatchObject(NOT_STORED)
    // By now it may be gone.
    expect([503, undefined]).toContain((await send(daemon.url, SECOND))?.status)
    expect(await daemon.exit).toMatchObject(FAILED)
    await expectRecovery(folder)
  })

  it.each<DiskOperation>(['write', 'sync'])(
    'that fails to %s the database alone leaves in its log what was acknowledged',
    async (operation) => {
      const disk = faultyDisk('latchkey.db')
      const { folder, daemon } = await served(disk.env)
      disk.fail(operation, 'EIO')
      const { acknowledged } = await deliver(daemon.url, LARGE_EVENTS)
      expect(acknowledged.length).toBeGreaterThan(0)
      await kill(daemon)
      await expectNothingLost(folder, acknowledged)
      await expectRecovery(folder)
    },
  )

  it('that fails to read leaves questions without an answer, and never says that a customer has no access', async () => {
    const disk = faultyDisk()
    const { daemon } = await served(disk.env)
    disk.fail('read', 'EIO')
    // What the daemon reads for itself may meet the fault first, and end it.
    const answer = await ask(daemon, `/entitlements/${BEFORE.customerId}`).catch(() => null)
    if (answer === null) expect(await daemon.exit).toMatchObject({ code: 1 })
    else expect([answer.status, await answer.json()]).toMatchObject([503, { code: 'store_unavailable' }])
  })
})

it('a file that may grow no further ends the daemon, with all that it acknowledged in place', async () => {
  const folder = configuredFolder()
  const load = eventsOf(storiesOf(0, 150))
  // The write-ahead log reaches it first.
  const daemon = await serve(folder, {}, limited(1200, 'serve'))
  const { acknowledged, refused } = await deliver(daemon.url, load)
  expect(acknowledged.length).toBeGreaterThan(0)
  expect(acknowledged.length).toBeLessThan(load.length)
  expect(new Set(refused)).toEqual(new Set([503]))
  expect(await daemon.exit).toMatchObject(FAILED)
  await expectNothingLost(folder, acknowledged)
  const next = await serveHere(folder)
  expect((await deliver(next.url, load)).acknowledged).toHaveLength(load.length)
})

it.each([
  ['the log', ['-wal']],
  ['its index', ['-shm']],
  ['both', ['-wal', '-shm']],
])('without %s a daemon takes nothing more, ends, and saves what it acknowledged', async (_name, removed) => {
  const { folder, daemon } = await served()
  for (const suffix of removed) rmSync(`${databaseIn(folder)}${suffix}`)
  expect(await send(daemon.url, FIRST)).toMatchObject(NOT_STORED)
  expect(await daemon.exit).toMatchObject({ code: 1 })
  await expectRecovery(folder)
})

describe('while another process holds the database', () => {
  /** This process has the write lock. */
  async function held() {
    const { folder, daemon } = await served()
    const other = new Sqlite(databaseIn(folder))
    onTestFinished(() => void other.close())
    other.exec('begin immediate')
    return { folder, daemon, letGo: () => other.exec('rollback') }
  }
  const hasTried = (daemon: ServedDaemon) => daemon.until(/"msg":"the store cannot be written now/)

  it('deliveries wait for it, and are stored as soon as it lets go', async () => {
    const { folder, daemon, letGo } = await held()
    const sent = DURING.events.map((event) => send(daemon.url, event))
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
    const { folder, daemon, letGo } = await held()
    const refused = await Promise.all(DURING.events.map((event) => send(daemon.url, event)))
    for (const answer of refused) expect(answer).toMatchObject(NOT_STORED)
    letGo()
    // One that was refused for being late may have been under way, and stored at last.
    for (const disposition of (await deliver(daemon.url, DURING.events)).dispositions) {
      expect(['applied', 'duplicate']).toContain(disposition)
    }
    await expectNothingLost(folder, ALL)
  })
})
