import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../src/store/sqlite/dialect.js'
import { latchkey, runProgram } from '../setup/program.js'
import { customerStory, deliver } from './load.js'
import { configuredFolder, kill, type ServedDaemon, serve } from './served.js'
import { foldedAnew, foldedState, storedEvents } from './stored-state.js'

const EVENTS = Array.from({ length: 400 }, (_, n) => customerStory(n)).flatMap(({ events }) => events)
const EVENTS_BEFORE_STOP = 150
const STOP_WITHIN_MS = 10_000

/** A connection that says this much and then nothing more. */
async function connection({ url }: ServedDaemon, said = ''): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  // However the daemon ends it, it is to end.
  socket.on('error', () => {})
  await new Promise((resolve) => socket.once('connect', resolve))
  socket.write(said)
  return socket
}

/** A connection that has been answered, and is kept by both sides. */
async function idleConnection(daemon: ServedDaemon): Promise<Socket> {
  const socket = await connection(daemon, 'GET /healthz HTTP/1.1\r\nHost: latchkey\r\n\r\n')
  await new Promise((resolve) => socket.once('data', resolve))
  return socket
}

/** Its exit code; null where it had to be killed, since it took longer than it may. */
async function exitCodeOf(daemon: ServedDaemon): Promise<number | null> {
  const deadline = setTimeout(() => daemon.signal('SIGKILL'), STOP_WITHIN_MS)
  const { code } = await daemon.exit
  clearTimeout(deadline)
  return code
}

describe('a daemon that is told to stop', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'by %s answers what is under way, keeps all that it acknowledged, and exits 0',
    async (signal) => {
      const folder = configuredFolder()
      const daemon = await serve(folder)
      await idleConnection(daemon)
      await connection(daemon)
      const load = await deliver(daemon.url, EVENTS, {
        onAcknowledged: (count) => {
          if (count === EVENTS_BEFORE_STOP) daemon.signal(signal)
        },
      })

      expect(await exitCodeOf(daemon)).toBe(0)
      expect(daemon.logged().map(({ msg }) => msg)).toContain('stopped')
      expect(daemon.stderr()).toBe('')
      expect(load.refused).toEqual([])
      expect(load.acknowledged.length).toBeLessThan(EVENTS.length)
      // Whatever was stored was answered too: nothing was cut off.
      const stored = await storedEvents(folder)
      expect(stored.map(({ event_id }) => event_id).sort()).toEqual([...load.acknowledged].sort())
      expect(await foldedState(folder)).toEqual(await foldedAnew(folder))
    },
  )

  it('does not wait for a sender that never finishes its request', async () => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    const head =
      'POST /webhooks/live HTTP/1.1\r\nHost: latchkey\r\nContent-Length: 100\r\nExpect: 100-continue'
    const slow = await connection(daemon, `${head}\r\n\r\nhalf`)
    // The daemon says `100 Continue`: it has begun with the request.
    await new Promise((resolve) => slow.once('data', resolve))
    daemon.signal('SIGTERM')
    expect(await exitCodeOf(daemon)).toBe(0)
    expect(await storedEvents(folder)).toEqual([])
  })
})

describe('a second daemon on the same database', () => {
  it('exits 1 while the first goes on, and takes its place at once when that is killed', async () => {
    const folder = configuredFolder()
    const first = await serve(folder)
    const second = await runProgram(latchkey('serve', '--json'), { folder, env: { LATCHKEY_PORT: '0' } })
    expect({ code: second.code, stdout: second.stdout }).toEqual({ code: 1, stdout: '' })
    expect(JSON.parse(second.stderr)).toEqual({
      error: {
        code: 'store_in_use',
        message: expect.stringMatching(
          `^Another process is using ${join(folder, 'data', 'latchkey.db')}. If it is a daemon, stop it first, or `,
        ),
        issues: [],
      },
    })
    const events = customerStory(0).events
    expect((await deliver(first.url, events)).dispositions).toEqual(['applied', 'applied'])

    await kill(first)
    const third = await serve(folder)
    expect((await deliver(third.url, events)).dispositions).toEqual(['duplicate', 'duplicate'])
  })
})

describe('a database that a newer version has changed', () => {
  it('is refused, and left as it is', async () => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    daemon.signal('SIGTERM')
    await daemon.exit
    const db = openDatabase(join(folder, 'data', 'latchkey.db'), { readOnly: false })
    const steps = db.withTables<{ schema_migrations: { name: string; timestamp: string } }>()
    await steps
      .insertInto('schema_migrations')
      .values({ name: '9999-later', timestamp: '2099-01-01T00:00:00.000Z' })
      .execute()
    const before = await steps.selectFrom('schema_migrations').selectAll().execute()

    const refused = await runProgram(latchkey('serve', '--json'), { folder, env: { LATCHKEY_PORT: '0' } })
    expect(refused.code).toBe(1)
    expect(JSON.parse(refused.stderr)).toMatchObject({
      error: { code: 'schema_too_new', message: expect.stringContaining('9999-later') },
    })
    expect(await steps.selectFrom('schema_migrations').selectAll().execute()).toEqual(before)
    await db.destroy()
  })
})
