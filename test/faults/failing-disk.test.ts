import { describe, expect, it } from 'vitest'
import { customerStory, deliver, type SentEvent } from '../process/load.js'
import { ask, configuredFolder, entitlementsOf, kill, serve } from '../process/served.js'
import { latchkey } from '../setup/program.js'
import { expectNothingLost } from './aftermath.js'
import { type DiskFault, type DiskOperation, faultyDisk, HAS_FAULTY_DISK } from './faulty-disk.js'
import { LARGE_EVENTS } from './large-events.js'
import { NOT_STORED, send } from './patient-sender.js'

const BEFORE = customerStory(1)
const DURING = customerStory(2)
const [FIRST, SECOND] = DURING.events as [SentEvent, SentEvent]
const LOAD = Array.from({ length: 150 }, (_, n) => customerStory(n)).flatMap(({ events }) => events)

const FAILED = {
  code: 1,
  stderr:
    'error: The store has failed: nothing more was acknowledged. See what is wrong with `latchkey doctor`; ' +
    'where the database is damaged, put a backup in its place with `latchkey restore`.\n',
}

describe.skipIf(!HAS_FAULTY_DISK)('a full disk', () => {
  it('has deliveries refused in time and questions answered, and needs no restart once it has room', async () => {
    const folder = configuredFolder()
    const disk = faultyDisk()
    const daemon = await serve(folder, disk.env)
    const { acknowledged } = await deliver(daemon.url, BEFORE.events)

    disk.fail('write', 'ENOSPC')
    const refused = DURING.events.map((event) => send(daemon, event))
    expect((await ask(daemon, '/readyz')).status).toBe(503)
    expect((await ask(daemon, '/healthz')).status).toBe(200)
    expect(await entitlementsOf(daemon, BEFORE.customerId)).toEqual([BEFORE.outcome])
    for (const answer of await Promise.all(refused)) expect(answer).toMatchObject(NOT_STORED)
    expect(await entitlementsOf(daemon, DURING.customerId)).toEqual([])

    disk.heal()
    expect((await deliver(daemon.url, DURING.events)).dispositions).toEqual(['applied', 'applied'])
    expect(await entitlementsOf(daemon, DURING.customerId)).toEqual([DURING.outcome])
    await expectNothingLost(folder, [...acknowledged, ...DURING.events.map(({ id }) => id)])
  })
})

describe.skipIf(!HAS_FAULTY_DISK)('a disk that fails', () => {
  it.each<[string, DiskOperation, DiskFault]>([
    ['to write', 'write', 'EIO'],
    ['to sync', 'sync', 'EIO'],
    ['to write, since it is read-only now', 'write', 'EROFS'],
  ])('%s ends the daemon, which acknowledged nothing more', async (_name, operation, fault) => {
    const folder = configuredFolder()
    const disk = faultyDisk()
    const daemon = await serve(folder, disk.env)
    const { acknowledged } = await deliver(daemon.url, BEFORE.events)

    disk.fail(operation, fault)
    expect(await send(daemon, FIRST)).toMatchObject(NOT_STORED)
    // By now it may be gone.
    expect([503, undefined]).toContain((await send(daemon, SECOND))?.status)
    expect(await daemon.exit).toMatchObject(FAILED)

    await expectNothingLost(folder, acknowledged)
    const next = await serve(folder)
    expect((await deliver(next.url, DURING.events)).refused).toEqual([])
    await expectNothingLost(folder, [...acknowledged, ...DURING.events.map(({ id }) => id)])
    expect(await entitlementsOf(next, DURING.customerId)).toEqual([DURING.outcome])
  })

  it.each<DiskOperation>(['write', 'sync'])(
    'to %s the database alone leaves in its log what was acknowledged',
    async (operation) => {
      const folder = configuredFolder()
      const disk = faultyDisk('latchkey.db')
      const daemon = await serve(folder, disk.env)
      disk.fail(operation, 'EIO')
      const { acknowledged } = await deliver(daemon.url, LARGE_EVENTS)
      expect(acknowledged.length).toBeGreaterThan(0)
      await kill(daemon)
      await expectNothingLost(folder, acknowledged)
      expect((await deliver((await serve(folder)).url, DURING.events)).refused).toEqual([])
      await expectNothingLost(folder, [...acknowledged, FIRST.id, SECOND.id])
    },
  )
})

describe.skipIf(!HAS_FAULTY_DISK)('a disk that fails to read', () => {
  it('leaves questions without an answer, and never tells of a customer without access', async () => {
    const folder = configuredFolder()
    const disk = faultyDisk()
    const daemon = await serve(folder, disk.env)
    await deliver(daemon.url, BEFORE.events)
    disk.fail('read', 'EIO')
    const answer = await ask(daemon, `/entitlements/${BEFORE.customerId}`)
    expect(answer.status).toBe(503)
    expect(await answer.json()).toMatchObject({ code: 'store_unavailable' })
  })
})

describe('a file that may grow no further', () => {
  it('ends the daemon, with all that it acknowledged in place', async () => {
    const folder = configuredFolder()
    // Counted in blocks of 512 bytes, or of 1024 in some shells: the write-ahead log reaches it first.
    const command = ['sh', '-c', 'ulimit -f 1200; exec "$@"', 'sh', ...latchkey('serve')]
    const daemon = await serve(folder, {}, command)
    const { acknowledged, refused } = await deliver(daemon.url, LOAD)
    expect(acknowledged.length).toBeGreaterThan(0)
    expect(acknowledged.length).toBeLessThan(LOAD.length)
    expect(new Set(refused)).toEqual(new Set([503]))
    expect(await daemon.exit).toMatchObject(FAILED)
    await expectNothingLost(folder, acknowledged)

    const next = await serve(folder)
    expect((await deliver(next.url, LOAD)).acknowledged).toHaveLength(LOAD.length)
  })
})
