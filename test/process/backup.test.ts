import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { expectNothingLost, foldedState, storedIds } from '../faults/aftermath.js'
import { type CustomerStory, deliver, eventsOf, idsOf, storiesOf } from '../stories.js'
import {
  built,
  configuredFolder,
  databaseIn,
  entitlementsOf,
  latchkey,
  limited,
  run,
  runProgram,
  serve,
  serveHere,
  startProgram,
  toldBy,
} from '../world.js'

/** A few in every run; many by hand. */
const KILLS = Number(process.env.FAULT_ROUNDS ?? 2)

const done = async (folder: string, words: string) =>
  expect(await run(folder, words)).toMatchObject({ code: 0, stderr: '' })

/** A stopped store with some stories, and a backup of it before the last ones came. */
async function backedUpFolder(before: readonly CustomerStory[], since: readonly CustomerStory[]) {
  const folder = configuredFolder()
  const daemon = await serveHere(folder)
  await deliver(daemon.url, eventsOf(before))
  await done(folder, 'backup backup.db')
  await deliver(daemon.url, eventsOf(since))
  await daemon.stop()
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
  const backingUp = built(folder, 'backup backups/monday.db --json').finally(() => {
    isBackedUp = true
  })
  while (!isBackedUp) await deliverMore()
  expect(acknowledged.length).toBeGreaterThan(before.length)
  const file = join(folder, 'backups', 'monday.db')
  expect(toldBy(await backingUp)).toEqual({ file, bytes: statSync(file).size })
  expect(statSync(file).mode & 0o777).toBe(0o600)
  await daemon.stop()

  const elsewhere = configuredFolder()
  const restored = await run(elsewhere, ['restore', file])
  expect(restored).toMatchObject({ code: 0, stderr: '' })
  expect(restored.stdout).toContain('there was no database before\n')
  const next = await serveHere(elsewhere)
  await expectNothingLost(elsewhere, before)
  await deliver(next.url, eventsOf(storiesOf(0, stories)))
  expect(await foldedState(elsewhere)).toEqual(await foldedState(folder))
  for (const { customerId, outcome } of storiesOf(0, 4)) {
    expect(await entitlementsOf(next, customerId)).toEqual([outcome])
  }
})

it.each([
  [
    'backup',
    ['backup', 'next.db'],
    /latchkey\.db can't be copied to \S+next\.db\.\w+\.part: .*disk may be full/,
  ],
  [
    'restore',
    ['restore', 'backup.db'],
    /backup\.db can't be copied to \S+latchkey\.db\.\w+\.part: .*disk may be full/,
  ],
  ['compact', ['compact'], /disk I\/O error/],
])('%s says in a line which file could not grow, and leaves nothing behind', async (_name, args, said) => {
  const folder = await backedUpFolder(storiesOf(0, 60), [])
  await done(folder, 'compact')
  const before = readdirSync(folder)
  // Less than the database by far.
  const { code, stderr } = await runProgram(limited(100, ...args), { folder })
  expect(code).toBe(1)
  expect(stderr).toMatch(/^error: [^\n]+\n$/)
  expect(stderr).toMatch(said)
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
  await done(folder, 'backup backups/next.db --force')
  expect(readdirSync(join(folder, 'backups'))).toEqual(['next.db'])
  const elsewhere = configuredFolder()
  await done(elsewhere, `restore ${join(folder, 'backups', 'next.db')}`)
  expect(await foldedState(elsewhere)).toEqual(await foldedState(folder))
})

it('stands whole after a restore was killed, as before it or as after it, and the next one ends it', async () => {
  const folder = await backedUpFolder(storiesOf(0, 60), storiesOf(60, 60))
  const old = await storedIds(folder)
  const backedUp = old.slice(0, eventsOf(storiesOf(0, 60)).length)
  await done(folder, 'backup whole.db')
  for (const [n, after] of moments().entries()) {
    await killed(folder, after, 'restore', n % 2 === 0 ? 'backup.db' : 'whole.db')
    // Under two names it is half-way, and no daemon would open it.
    if (statSync(databaseIn(folder)).nlink === 1)
      expect([old, backedUp]).toContainEqual(await storedIds(folder))
  }
  await done(folder, 'restore backup.db')
  expect(await storedIds(folder)).toEqual(backedUp)
  await expectNothingLost(folder, backedUp)

  const data = readdirSync(join(folder, 'data'))
  expect(data.filter((name) => name.includes('.part'))).toEqual([])
  const [first = ''] = data.filter((name) => /\.before-restore-[^-]*$/.test(name)).sort()
  await done(folder, `restore ${join('data', first)}`)
  expect((await storedIds(folder)).toSorted()).toEqual(idsOf(eventsOf(storiesOf(0, 120))).toSorted())
})
