import { join } from 'node:path'
import { expect, it } from 'vitest'
import { misread } from '../setup/misread.js'
import { latchkey, type ProgramExit, runProgram } from '../setup/program.js'
import { runHere } from './in-process.js'
import { customerStory, deliver } from './load.js'
import {
  API_KEY,
  CONFIG,
  configuredFolder,
  entitlementsOf,
  keyEntry,
  kill,
  readStore,
  serve,
} from './served.js'

const ADMIN = { ...keyEntry('app', API_KEY), scopes: ['read', 'admin'] }
const STORIES = Array.from({ length: 400 }, (_, n) => customerStory(n))

function command(folder: string, ...args: string[]): Promise<ProgramExit> {
  return runProgram(latchkey(...args), { folder })
}

/** The same in this process, for what was seen of the built program once. */
const here = (folder: string, ...args: string[]) => runHere(folder, args)

/** A folder whose store holds every event of the stories as bytes that the program before could not read. */
async function folderAfterMisreading(stories = STORIES): Promise<string> {
  const folder = configuredFolder({ ...CONFIG, api: { keys: [ADMIN] } })
  const daemon = await serve(folder)
  const events = stories.flatMap(({ events }) => events)
  const misreadings = events.map(({ id, body }) => ({ id, body, unreadable: `nobody can read ${id}` }))
  const sent = misreadings.map(({ id, unreadable }) => ({ id, body: unreadable }))
  expect((await deliver(daemon.url, sent)).refused).toEqual([])
  daemon.signal('SIGTERM')
  await daemon.exit
  await misread(join(folder, 'data', 'latchkey.db'), misreadings)
  return folder
}

function countQuarantined(folder: string): Promise<number> {
  return readStore(folder, async (db) => {
    const rows = await db
      .selectFrom('events')
      .select('seq')
      .where('disposition', '=', 'quarantined')
      .execute()
    return rows.length
  })
}

it('ends as if it had run once, killed in the middle and given the same command again', async () => {
  const folder = await folderAfterMisreading()
  const first = await serve(folder)
  const started = await fetch(`${first.url}/replays`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${API_KEY}`, 'Content-Type': 'application/json' },
    body: '{}',
  })
  expect(started.status).toBe(202)
  const all = await countQuarantined(folder)
  while ((await countQuarantined(folder)) === all) await new Promise((resolve) => setImmediate(resolve))
  await kill(first)
  const left = await countQuarantined(folder)
  expect(left).toBeGreaterThan(0)

  const replay = await command(folder, 'replay', '--json')
  expect({ code: replay.code, stderr: replay.stderr }).toEqual({ code: 0, stderr: '' })
  expect(JSON.parse(replay.stdout)).toMatchObject({ read: all, changed: all, recovered: all, losses: 0 })
  expect(await here(folder, 'rebuild', '--verify')).toMatchObject({ code: 0 })
  const second = await serve(folder)
  for (const { customerId, outcome } of STORIES.slice(0, 20)) {
    expect(await entitlementsOf(second, customerId)).toEqual([outcome])
  }
})

it('replays through the daemon or without one, on trial or in earnest, and says what that does', async () => {
  const [story] = STORIES
  const folder = await folderAfterMisreading(STORIES.slice(0, 1))
  const would = [
    '2 read again, 2 would say something else',
    '2 could not be used before',
    '1 would gain access, 0 would lose it, 0 would change in another way',
    'live  cus_0  pro_1  none -> active',
    'no role or group would follow',
    '',
  ].join('\n')
  expect(await command(folder, 'replay', '--dry-run')).toMatchObject({ code: 0, stdout: would })
  const daemon = await serve(folder)
  expect(await here(folder, 'replay', '--dry-run')).toMatchObject({ code: 0, stdout: would })
  expect(await entitlementsOf(daemon, 'cus_0')).toEqual([])

  expect(await command(folder, 'replay', '--endpoint', 'liv')).toEqual({
    code: 2,
    stdout: '',
    stderr:
      'error: The body is not valid.\n  filter.endpoint: is none of live, manual, and nothing came through it\n',
  })
  const env = { LATCHKEY_API_KEY: API_KEY }
  const there = await runHere(folder, ['replay', '--endpoint', 'liv', '--url', daemon.url], env)
  expect(there).toMatchObject({ code: 2, stdout: '' })
  expect(there.stderr).toContain('is none of live, manual, and nothing came through it\n')

  // Once it is done they follow by themselves.
  const [calls = ''] = would.match(/no role.*\n/) ?? []
  const done = await command(folder, 'replay', '--disposition', 'quarantined')
  expect(done).toMatchObject({
    code: 0,
    stdout: would.replace(calls, '').replaceAll('would say', 'said').replaceAll('would ', ''),
  })
  expect(await entitlementsOf(daemon, 'cus_0')).toEqual([story?.outcome])
  expect(await here(folder, 'replay')).toMatchObject({
    code: 0,
    stdout: '2 read again, 0 said something else\nnobody’s access has changed\n',
  })
})
