import { chmodSync, closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import type { Finding } from '../../src/doctor/finding.js'
import { signBody } from '../../src/provider/signature.js'
import { lockStore } from '../../src/store/sqlite/file.js'
import { alterStopped } from '../setup/alter-body.js'
import { latchkey, type ProgramExit, runProgram } from '../setup/program.js'
import { runHere } from './in-process.js'
import { customerStory, deliver } from './load.js'
import { configuredFolder, SECRET, type ServedDaemon, serve } from './served.js'

const STORIES = Array.from({ length: 20 }, (_, n) => customerStory(n))

const databaseIn = (folder: string): string => join(folder, 'data', 'latchkey.db')

/** A folder with a config that only its owner may read, served, with some events in it. */
async function served(): Promise<{ folder: string; daemon: ServedDaemon }> {
  const folder = configuredFolder()
  chmodSync(join(folder, 'config.json'), 0o600)
  const daemon = await serve(folder)
  await deliver(
    daemon.url,
    STORIES.flatMap(({ events }) => events),
  )
  return { folder, daemon }
}

async function stop(daemon: ServedDaemon): Promise<void> {
  daemon.signal('SIGTERM')
  expect(await daemon.exit).toMatchObject({ code: 0 })
}

function command(folder: string, ...args: readonly string[]): Promise<ProgramExit> {
  return runProgram(latchkey(...args), { folder })
}

function doctor(folder: string, ...args: readonly string[]): Promise<ProgramExit> {
  return command(folder, 'doctor', ...args)
}

/** The same in this process, for what was seen of the built program once. */
const here = (folder: string, ...args: string[]) => runHere(folder, args)

async function findings(folder: string): Promise<readonly Finding[]> {
  const { stdout } = await here(folder, 'doctor', '--json')
  return (JSON.parse(stdout) as { findings: readonly Finding[] }).findings
}

async function found(folder: string, what: string): Promise<readonly Finding[]> {
  return (await findings(folder)).filter((finding) => finding.what === what)
}

/** Sends a delivery that is not authentic: of another secret, or of another time. */
async function refused(daemon: ServedDaemon, secret: string, secondsLate: number): Promise<number> {
  const body = '{}'
  const timestamp = String(Math.floor(Date.now() / 1000) - secondsLate)
  const signature = signBody(secret, timestamp, Buffer.from(body))
  const answer = await fetch(`${daemon.url}/webhooks/live`, {
    method: 'POST',
    body,
    headers: { 'X-Webhook-Timestamp': timestamp, 'X-Webhook-Signature': signature, Connection: 'close' },
  })
  return answer.status
}

describe('the doctor', () => {
  it('finds nothing to do beside a running daemon, nor on its stopped database but to start it', async () => {
    const { folder, daemon } = await served()
    const beside = await doctor(folder)
    expect(beside).toMatchObject({ code: 0, stderr: '' })
    expect(
      beside.stdout
        .trimEnd()
        .split('\n')
        .filter((line) => !line.startsWith('ok ')),
    ).toEqual([])
    expect(beside.stdout).toMatch(/\nok {4}daemon +running since 20/)
    expect(beside.stdout).toMatch(
      /\nok {4}deliveries live +last at 20\S+Z, (usually every \S+, )?now \S+ ago\n/,
    )

    await stop(daemon)
    const stopped = await doctor(folder, '--thorough')
    expect(stopped).toMatchObject({ code: 0, stderr: '' })
    expect(
      stopped.stdout
        .trimEnd()
        .split('\n')
        .filter((line) => !line.startsWith('ok ')),
    ).toEqual([expect.stringMatching(/^warn {2}daemon +not running, /)])
    expect(stopped.stdout).not.toContain('refused live')
  })

  it('asks the running daemon what it refused, and how far off a clock was', async () => {
    const { folder, daemon } = await served()
    expect(await refused(daemon, 'whsec_other', 0)).toBe(401)
    expect(await refused(daemon, SECRET, 4_000)).toBe(401)
    expect(await found(folder, 'refused live')).toMatchObject([
      { level: 'warn', detail: '1 signature_invalid, 1 timestamp_out_of_tolerance' },
    ])
    expect(await found(folder, 'clock')).toMatchObject([
      { level: 'ok' },
      {
        level: 'warn',
        detail: expect.stringMatching(/^a delivery to live was refused: .* 1h 6m behind ours$/),
      },
    ])
  })

  it('tells a store that another process works on from one that nobody has', async () => {
    const { folder, daemon } = await served()
    await stop(daemon)
    const lock = lockStore(databaseIn(folder))
    try {
      expect(await found(folder, 'daemon')).toMatchObject([
        { level: 'warn', detail: expect.stringMatching(/^a process has the database/) },
      ])
    } finally {
      lock.release()
    }
    expect(await found(folder, 'daemon')).toMatchObject([
      { level: 'warn', detail: expect.stringMatching(/^not running/) },
    ])
  })

  it.each(['events', 'sqlite_schema'])('fails where a page of %s is damaged', async (name) => {
    const { folder, daemon } = await served()
    await stop(daemon)
    damage(folder, name)
    const { code, stdout, stderr } = await here(folder, 'doctor')
    expect(code).toBe(1)
    expect(stdout).toMatch(
      /^FAIL {2}integrity .*: stop the daemon, and put a backup in its place: `latchkey restore`$/m,
    )
    expect(stdout).toMatch(/\nok {4}sync +no targets configured\n$/)
    expect(stderr).toMatch(/^error: \d+ checks? failed\n$/)
  })

  it('compares every body with its hash where it is to be thorough, and says which is another', async () => {
    const { folder, daemon } = await served()
    await stop(daemon)
    for (const id of ['evt_7_paid', 'evt_3_paid']) await alterStopped(databaseIn(folder), id, '{}')
    expect(await here(folder, 'doctor')).toMatchObject({ code: 0 })
    const { code, stdout, stderr } = await doctor(folder, '--thorough')
    expect({ code, stderr }).toEqual({ code: 1, stderr: 'error: 1 check failed\n' })
    expect(stdout).toMatch(
      /^FAIL {2}body hashes +2 of 50 altered in the database, the first that of evt_\d_paid in live: .*`latchkey restore`/m,
    )
    const replay = await command(folder, 'replay')
    expect(replay).toMatchObject({ code: 0, stderr: '' })
    expect(replay.stdout).toMatch(/^48 read again, 0 said something else\n2 taken as they stand: .* altered /)
    expect(replay.stdout).toMatch(/\nnobody’s access has changed\n$/)
  })

  it('changes no byte of a stopped database', async () => {
    const { folder, daemon } = await served()
    await stop(daemon)
    const before = readFileSync(databaseIn(folder))
    await here(folder, 'doctor', '--thorough')
    expect(readFileSync(databaseIn(folder)).equals(before)).toBe(true)
  })
})

const PAGE_BYTES = 4096

/** Writes zeros over the page that leads to all others of a table. */
function damage(folder: string, name: string): void {
  const db = new Sqlite(databaseIn(folder), { readonly: true })
  const query = db.prepare<[string], number>("select pageno from dbstat where name = ? and path = '/'")
  const page = query.pluck().get(name) as number
  db.close()
  const file = openSync(databaseIn(folder), 'r+')
  writeSync(file, Buffer.alloc(PAGE_BYTES), 0, undefined, (page - 1) * PAGE_BYTES)
  closeSync(file)
}
