import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { expectNothingLost } from '../faults/aftermath.js'
import { latchkey, type ProgramExit, runProgram, startProgram } from '../setup/program.js'
import { runHere } from './in-process.js'
import { type CustomerStory, customerStory, deliver } from './load.js'
import { ask, configuredFolder, entitlementsOf, kill, type ServedDaemon, serve } from './served.js'
import { foldedState, storedEvents } from './stored-state.js'

/** A few in every run; many by hand. */
const KILLS = Number(process.env.FAULT_ROUNDS ?? 2)

const storiesOf = (first: number, count: number): readonly CustomerStory[] =>
  Array.from({ length: count }, (_, n) => customerStory(first + n))
const eventsOf = (stories: readonly CustomerStory[]) => stories.flatMap(({ events }) => events)

/** What must be a process of its own: what runs under load, what says who may read a file, what is killed. */
function command(folder: string, ...args: string[]): Promise<ProgramExit> {
  return runProgram(latchkey(...args), { folder })
}

/** The same in this process, for what was seen of the built program once. */
const here = (folder: string, ...args: string[]): Promise<ProgramExit> => runHere(folder, args)

async function errorOf(exit: Promise<ProgramExit>) {
  const { code, stdout, stderr } = await exit
  return { code, stdout, error: JSON.parse(stderr).error.code }
}

async function stop(daemon: ServedDaemon): Promise<void> {
  daemon.signal('SIGTERM')
  expect(await daemon.exit).toMatchObject({ code: 0 })
}

async function idsIn(folder: string): Promise<readonly string[]> {
  return (await storedEvents(folder)).map(({ event_id }) => event_id)
}

/** A stopped store with some stories, and a backup of it before the last ones came. */
async function backedUpFolder(before: readonly CustomerStory[], since: readonly CustomerStory[]) {
  const folder = configuredFolder()
  const daemon = await serve(folder)
  await deliver(daemon.url, eventsOf(before))
  expect(await here(folder, 'backup', 'backup.db')).toMatchObject({ code: 0, stderr: '' })
  await deliver(daemon.url, eventsOf(since))
  // Killed, so that its log is left too.
  await kill(daemon)
  return folder
}

it('restores on another machine what was backed up under load: all that was acknowledged before, and its state', async () => {
  const folder = configuredFolder()
  const daemon = await serve(folder)
  const acknowledged: string[] = []
  let stories = 0
  async function deliverMore(): Promise<void> {
    const load = await deliver(daemon.url, eventsOf(storiesOf(stories, 40)))
    expect(load.refused).toEqual([])
    acknowledged.push(...load.acknowledged)
    stories += 40
  }
  await deliverMore()
  const before = [...acknowledged]
  let isBackedUp = false
  const backingUp = command(folder, 'backup', 'backups/monday.db', '--json').finally(() => {
    isBackedUp = true
  })
  while (!isBackedUp) await deliverMore()
  expect(acknowledged.length).toBeGreaterThan(before.length)
  const file = join(folder, 'backups', 'monday.db')
  const { code, stdout, stderr } = await backingUp
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(JSON.parse(stdout)).toEqual({ file, bytes: statSync(file).size })
  expect(statSync(file).mode & 0o777).toBe(0o600)
  await stop(daemon)

  const elsewhere = configuredFolder()
  const restored = await command(elsewhere, 'restore', file)
  expect(restored).toMatchObject({ code: 0, stderr: '' })
  expect(restored.stdout).toContain('there was no database before\n')
  const next = await serve(elsewhere)
  await expectNothingLost(elsewhere, before)
  await deliver(next.url, eventsOf(storiesOf(0, stories)))
  expect(await foldedState(elsewhere)).toEqual(await foldedState(folder))
  for (const { customerId, outcome } of storiesOf(0, 4)) {
    expect(await entitlementsOf(next, customerId)).toEqual([outcome])
  }
})

it('goes back to a backup, and keeps what was there beside it, each for its owner alone', async () => {
  const folder = await backedUpFolder(storiesOf(0, 2), storiesOf(2, 2))
  const { cursor } = JSON.parse((await here(folder, 'check', 'cus_0', '--json')).stdout) as { cursor: string }
  const { code, stdout } = await here(folder, 'restore', 'backup.db', '--json')
  expect(code).toBe(0)
  const { file, keptAs } = JSON.parse(stdout)
  expect(file).toBe(join(folder, 'data', 'latchkey.db'))
  expect(await idsIn(folder)).toHaveLength(5)
  for (const name of readdirSync(join(folder, 'data'))) {
    expect([name, statSync(join(folder, 'data', name)).mode & 0o777]).toEqual([name, 0o600])
  }

  const daemon = await serve(folder)
  expect(await entitlementsOf(daemon, 'cus_0')).toEqual([customerStory(0).outcome])
  expect(await entitlementsOf(daemon, 'cus_2')).toEqual([])
  // The numbers are given again, to other changes.
  const reset = await ask(daemon, `/changes?cursor=${cursor}`)
  expect([reset.status, await reset.json()]).toMatchObject([410, { code: 'cursor_reset' }])
  await stop(daemon)
  expect(await here(folder, 'restore', keptAs)).toMatchObject({ code: 0 })
  await expectNothingLost(
    folder,
    eventsOf(storiesOf(0, 4)).map(({ id }) => id),
  )
})

it('overwrites a backup only by force', async () => {
  const folder = await backedUpFolder(storiesOf(0, 1), storiesOf(1, 1))
  const before = readFileSync(join(folder, 'backup.db'))
  expect(await errorOf(here(folder, 'backup', 'backup.db', '--json'))).toEqual({
    code: 1,
    stdout: '',
    error: 'backup_exists',
  })
  expect(readFileSync(join(folder, 'backup.db')).equals(before)).toBe(true)
  expect(await here(folder, 'backup', 'backup.db', '--force')).toMatchObject({ code: 0 })
  expect(await here(folder, 'restore', 'backup.db')).toMatchObject({ code: 0 })
  expect(await idsIn(folder)).toHaveLength(5)
})

it('restores nothing while a daemon serves the database, which goes on', async () => {
  const folder = await backedUpFolder(storiesOf(0, 1), [])
  const daemon = await serve(folder)
  expect(await errorOf(here(folder, 'restore', 'backup.db', '--json'))).toEqual({
    code: 1,
    stdout: '',
    error: 'store_in_use',
  })
  const load = await deliver(daemon.url, customerStory(1).events)
  expect(load.refused).toEqual([])
  expect(await entitlementsOf(daemon, 'cus_1')).toEqual([customerStory(1).outcome])
})

it.each([
  ['backup', ['backup', 'next.db'], /latchkey\.db can't be copied to \S+next\.db\.\w+\.part: /],
  ['restore', ['restore', 'backup.db'], /backup\.db can't be copied to \S+latchkey\.db\.\w+\.part: /],
])('names the file that could not grow, and what may be the cause: %s', async (_name, args, named) => {
  const folder = await backedUpFolder(storiesOf(0, 100), [])
  expect(await here(folder, 'compact')).toMatchObject({ code: 0 })
  const before = readdirSync(folder)
  // Counted in blocks of 512 bytes, or of 1024 in some shells: less than the database by far.
  const limited = ['sh', '-c', 'ulimit -f 100; exec "$@"', 'sh', ...latchkey(...args)]
  const { code, stderr } = await runProgram(limited, { folder })
  expect(stderr).toMatch(named)
  expect(stderr).toMatch(/disk may be full or fail, or a limit/)
  expect(code).toBe(1)
  expect(readdirSync(folder)).toEqual(before)
  expect(readdirSync(join(folder, 'data')).filter((name) => name.includes('part'))).toEqual([])
})

/** Runs a command, and kills it that many milliseconds later, unless it has ended. */
async function killed(folder: string, after: number, ...args: string[]): Promise<void> {
  const program = startProgram(latchkey(...args), { folder })
  const timer = setTimeout(() => program.signal('SIGKILL'), after)
  await program.exit
  clearTimeout(timer)
}

const moments = (): readonly number[] => fc.sample(fc.noBias(fc.integer({ min: 100, max: 400 })), KILLS)

it('makes the whole backup after others to the same file were killed, and leaves nothing of those', async () => {
  const folder = await backedUpFolder(storiesOf(0, 100), [])
  for (const after of moments()) await killed(folder, after, 'backup', 'backups/next.db', '--force')
  expect(await here(folder, 'backup', 'backups/next.db', '--force')).toMatchObject({ code: 0 })
  expect(readdirSync(join(folder, 'backups'))).toEqual(['next.db'])
  const elsewhere = configuredFolder()
  await here(elsewhere, 'restore', join(folder, 'backups', 'next.db'))
  expect(await foldedState(elsewhere)).toEqual(await foldedState(folder))
})

it('stands whole after a restore was killed, as before it or as after it, and the next one ends it', async () => {
  const folder = await backedUpFolder(storiesOf(0, 60), storiesOf(60, 60))
  const database = join(folder, 'data', 'latchkey.db')
  const old = await idsIn(folder)
  const backedUp = old.slice(0, eventsOf(storiesOf(0, 60)).length)
  expect(await here(folder, 'backup', 'whole.db')).toMatchObject({ code: 0 })
  for (const [n, after] of moments().entries()) {
    await killed(folder, after, 'restore', n % 2 === 0 ? 'backup.db' : 'whole.db')
    // Under two names it is half-way, and no daemon would open it.
    if (statSync(database).nlink === 1) expect([old, backedUp]).toContainEqual(await idsIn(folder))
  }
  expect(await here(folder, 'restore', 'backup.db')).toMatchObject({ code: 0 })
  expect(await idsIn(folder)).toEqual(backedUp)
  await expectNothingLost(folder, backedUp)

  const data = readdirSync(join(folder, 'data'))
  expect(data.filter((name) => name.includes('.part'))).toEqual([])
  const [first = ''] = data.filter((name) => /\.before-restore-[^-]*$/.test(name)).sort()
  expect(await here(folder, 'restore', join('data', first))).toMatchObject({ code: 0 })
  expect(await idsIn(folder)).toEqual(old)
})
