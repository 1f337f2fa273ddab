import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { foundIn } from '../daemon/erasing.js'
import { databaseIn } from '../faults/aftermath.js'
import { latchkey, type ProgramExit, runProgram, temporaryFolder } from '../setup/program.js'
import { runHere } from './in-process.js'
import { customerStory, deliver } from './load.js'
import { type Person, person } from './person.js'
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

/** A few in every run; many by hand. */
const KILLS = Number(process.env.FAULT_ROUNDS ?? 2)

/** Most commands run here, against the same daemon and database; those that are the point, as built. */
const run = (folder: string, ...args: readonly string[]) => runHere(folder, args)
const built = (folder: string, ...args: readonly string[]) => runProgram(latchkey(...args), { folder })

async function answerOf(folder: string, ...args: readonly string[]) {
  return told(await run(folder, ...args, '--json'))
}

function told({ code, stdout, stderr }: ProgramExit) {
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout) as Readonly<Record<string, unknown>>
}

const ADA = person(1)
const BOB = person(2)

/** Everything that there is to know of an erasure, whatever came in between. */
async function expectErased(folder: string, { customerId, words }: Person): Promise<void> {
  expect(foundIn(databaseIn(folder), words)).toEqual([])
  const { acts, erasures } = await readStore(folder, async (db) => ({
    acts: await db.selectFrom('events').selectAll().where('type', '=', 'manual.erased').execute(),
    erasures: await db.selectFrom('erasures').selectAll().execute(),
  }))
  expect(acts).toMatchObject([{ customer_id: customerId }])
  expect(erasures).toMatchObject([
    { customer_id: customerId, event_id: acts[0]?.event_id, finished_at: expect.any(Number) },
  ])
  const recorded = readFileSync(`${databaseIn(folder)}.erasures`, 'utf8')
    .trimEnd()
    .split('\n')
  expect(recorded.map((line) => JSON.parse(line))).toMatchObject([
    { customerId, eventId: acts[0]?.event_id, at: erasures[0]?.erased_at },
  ])
}

/** Every event is there, and what stands is what they come to. */
async function expectWhole(folder: string, ids: readonly string[]): Promise<void> {
  const rows = await readStore(folder, (db) => db.selectFrom('events').select('event_id').execute())
  expect(rows.map(({ event_id: id }) => id)).toEqual(expect.arrayContaining([...ids]))
  expect(await run(folder, 'rebuild', '--verify')).toMatchObject({ code: 0 })
}

/** What the doctor says of one thing. */
async function foundBy(folder: string, what: string): Promise<readonly object[]> {
  const { stdout } = await run(folder, 'doctor', '--json')
  const { findings } = JSON.parse(stdout) as { readonly findings: readonly { readonly what: string }[] }
  return findings.filter((finding) => finding.what === what)
}

/** A folder with the config, and a daemon that has taken in both. */
async function served(env: Readonly<Record<string, string>> = {}) {
  const folder = configuredFolder()
  const daemon = await serve(folder, env)
  expect((await deliver(daemon.url, [...ADA.events, ...BOB.events])).refused).toEqual([])
  return { folder, daemon }
}

describe('latchkey erase', () => {
  it.each(['beside a running daemon', 'on the database of none'])(
    'erases somebody for good, %s',
    async (where) => {
      const { folder, daemon } = await served()
      expect(foundIn(databaseIn(folder), ADA.words)).toEqual(ADA.words)
      if (where === 'on the database of none') await kill(daemon)
      const asked = ['erase', ADA.customerId, '--reason', 'asked for it', '--yes', '--json']
      const done = told(await built(folder, ...asked))
      expect(done).toMatchObject({
        customerId: ADA.customerId,
        environment: 'live',
        eventId: expect.stringMatching(/^man_/),
        finishedAt: expect.any(String),
      })
      await expectErased(folder, ADA)
      expect(foundIn(databaseIn(folder), BOB.words)).toEqual(BOB.words)
      expect(await answerOf(folder, 'erase', ADA.customerId, '--yes')).toEqual(done)

      const next = where === 'on the database of none' ? await serve(folder) : daemon
      expect(await entitlementsOf(next, ADA.customerId)).toEqual([
        { productId: 'pro_1', active: false, status: 'revoked' },
      ])
      expect(await entitlementsOf(next, BOB.customerId)).toMatchObject([{ active: true }])
      const { stdout } = await run(folder, 'explain', ADA.customerId, 'pro_1')
      expect(stdout).toMatch(/the customer was erased/)
      expect(await run(folder, 'rebuild', '--verify')).toMatchObject({ code: 0 })
      expect(foundIn(databaseIn(folder), ADA.words)).toEqual([])
    },
  )

  it('asks the daemon that --url names, in the name of a key that may', async () => {
    const keys = ['admin', 'write'].map((scope) => ({
      ...keyEntry(scope, `${API_KEY}_${scope}`),
      scopes: [scope],
    }))
    const folder = configuredFolder({ ...CONFIG, api: { keys } })
    const daemon = await serve(folder)
    const as = (scope: string) =>
      runHere(temporaryFolder(), ['erase', 'cus_1', '--yes', '--url', daemon.url], {
        LATCHKEY_API_KEY: `${API_KEY}_${scope}`,
      })
    expect(await as('write')).toMatchObject({ code: 1, stderr: expect.stringContaining('403') })
    expect(await as('admin')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^erased cus_1 in live at .* \(man_\w+\)\nNo purchase and no detail /),
    })
  })

  it.each([
    [['erase', 'cus_1'], /--yes/],
    [['erase', '--yes'], /customer/],
    [['erase', '', '--yes'], /not an id/],
    [['erase', 'cus_1', '--yes', '--reason', ' '], /is empty/],
    [['erase', 'cus_1', '--yes', '--environment', 'test'], /environment/],
  ])('%j is wrong use', async (args, why) => {
    const folder = configuredFolder()
    expect(await run(folder, ...args)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(why),
    })
    expect(existsSync(databaseIn(folder))).toBe(false)
  })

  it('shows an example in its help', async () => {
    const { code, stdout } = await run(configuredFolder(), 'erase', '--help')
    expect(code).toBe(0)
    expect(stdout).toContain('$ latchkey erase cus_1 ')
  })
})

describe('an erasure that is interrupted by kill -9', () => {
  it.each(['before', 'after'])(
    '%s the commit of the act ends as if it had run once, by the next start',
    async (moment) => {
      const file = join(temporaryFolder(), 'kill-at-commit')
      const preload = join(import.meta.dirname, '..', 'faults', 'kill-at-commit.cjs')
      const { folder, daemon } = await served({
        NODE_OPTIONS: `--require ${preload}`,
        KILL_AT_COMMIT: file,
      })
      writeFileSync(file, moment)
      expect(await run(folder, 'erase', ADA.customerId, '--yes')).toMatchObject({ code: 1 })
      expect(await daemon.exit).toMatchObject({ code: null })

      const next = await serve(folder)
      await expectErased(folder, ADA)
      expect(await entitlementsOf(next, ADA.customerId)).toMatchObject([{ status: 'revoked' }])
      expect(await answerOf(folder, 'erase', ADA.customerId, '--yes')).toMatchObject({ wasKnown: true })
      await expectErased(folder, ADA)
      await expectWhole(
        folder,
        BOB.events.map(({ id }) => id),
      )
    },
  )

  it('at any moment goes on by itself, and is as good as one that was not', async () => {
    for (let round = 0; round < KILLS; round += 1) {
      const folder = configuredFolder()
      const daemon = await serve(folder)
      const others = Array.from({ length: 150 }, (_, n) => customerStory(n).events).flat()
      await deliver(daemon.url, [...ADA.events, ...others])
      const asked = run(folder, 'erase', ADA.customerId, '--yes')
      await wait((round * 97) % 400)
      await kill(daemon)
      await asked
      const next = await serve(folder)
      await answerOf(folder, 'erase', ADA.customerId, '--yes')
      await expectErased(folder, ADA)
      await kill(next)
      await expectWhole(
        folder,
        others.map(({ id }) => id),
      )
    }
  })
})

describe('what comes back after an erasure', () => {
  it('from a backup made before is erased again, as it was', async () => {
    const { folder, daemon } = await served()
    expect(await run(folder, 'backup', 'before.db')).toMatchObject({ code: 0 })
    const { eventId, erasedAt } = await answerOf(folder, 'erase', ADA.customerId, '--reason', 'why', '--yes')
    daemon.signal('SIGTERM')
    await daemon.exit
    const restored = told(await built(folder, 'restore', 'before.db', '--json'))
    expect(restored).toMatchObject({ erasedAgain: 1 })
    await expectErased(folder, ADA)
    expect(await answerOf(folder, 'events', 'show', String(eventId))).toMatchObject({
      createdAt: erasedAt,
      normalized: { reason: 'why' },
    })
    const next = await serve(folder)
    expect(await entitlementsOf(next, ADA.customerId)).toMatchObject([{ status: 'revoked' }])
    expect(await entitlementsOf(next, BOB.customerId)).toMatchObject([{ active: true }])
  })

  it('over a backup that never knew them is known by what is written down beside the database', async () => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    expect(await run(folder, 'backup', 'empty.db')).toMatchObject({ code: 0 })
    expect((await deliver(daemon.url, ADA.events)).refused).toEqual([])
    await answerOf(folder, 'erase', ADA.customerId, '--yes')
    daemon.signal('SIGTERM')
    await daemon.exit
    expect(await answerOf(folder, 'restore', 'empty.db')).toMatchObject({ erasedAgain: 1 })
    const next = await serve(folder)
    expect((await deliver(next.url, ADA.events)).refused).toEqual([])
    await expectErased(folder, ADA)
  })

  it('is known to the database alone where the list is lost, until the next start writes it again', async () => {
    const { folder, daemon } = await served()
    expect(await run(folder, 'backup', 'before.db')).toMatchObject({ code: 0 })
    await answerOf(folder, 'erase', ADA.customerId, '--yes')
    const list = `${databaseIn(folder)}.erasures`
    const lines = readFileSync(list, 'utf8')
    rmSync(list)
    expect(await foundBy(folder, 'erasures')).toMatchObject([
      {
        level: 'warn',
        detail: expect.stringContaining('missing'),
        todo: 'restart the daemon, which writes it again',
      },
    ])
    await kill(daemon)
    const next = await serve(folder)
    expect(readFileSync(list, 'utf8')).toBe(lines)
    expect(await foundBy(folder, 'erasures')).toMatchObject([{ level: 'ok' }])
    await kill(next)
    expect(await answerOf(folder, 'restore', 'before.db')).toMatchObject({ erasedAgain: 1 })
    await expectErased(folder, ADA)
  })

  it('is known to the database that a backup replaces where the list is lost', async () => {
    const { folder, daemon } = await served()
    expect(await run(folder, 'backup', 'before.db')).toMatchObject({ code: 0 })
    await answerOf(folder, 'erase', ADA.customerId, '--yes')
    daemon.signal('SIGTERM')
    await daemon.exit
    rmSync(`${databaseIn(folder)}.erasures`)
    expect(await answerOf(folder, 'restore', 'before.db')).toMatchObject({ erasedAgain: 1 })
    await expectErased(folder, ADA)
  })

  it('where somebody put an older database in the place by hand is erased at the next start', async () => {
    const { folder, daemon } = await served()
    expect(await run(folder, 'backup', 'before.db')).toMatchObject({ code: 0 })
    await answerOf(folder, 'erase', ADA.customerId, '--yes')
    daemon.signal('SIGTERM')
    await daemon.exit
    rmSync(databaseIn(folder))
    copyFileSync(join(folder, 'before.db'), databaseIn(folder))
    const next = await serve(folder)
    await expect.poll(() => foundIn(databaseIn(folder), ADA.words)).toEqual([])
    await answerOf(folder, 'erase', ADA.customerId, '--yes')
    await expectErased(folder, ADA)
    expect(next.logged().map(({ msg }) => msg)).toContainEqual(expect.stringContaining('erased again'))
  })

  it('by an import of what was exported before is stored without what tells of them', async () => {
    const { folder } = await served()
    expect(await run(folder, 'events', 'export', '--output', 'before.jsonl')).toMatchObject({ code: 0 })
    await answerOf(folder, 'erase', ADA.customerId, '--yes')
    expect(await answerOf(folder, 'import', 'before.jsonl')).toMatchObject({ refused: 0, duplicates: 12 })

    // Into a store that never had any of it, and erased somebody of whom it knew nothing.
    const other = configuredFolder()
    await answerOf(other, 'erase', ADA.customerId, '--yes')
    const { code } = await run(other, 'import', join(folder, 'before.jsonl'))
    expect(code).toBe(0)
    for (const place of [folder, other]) {
      expect(foundIn(databaseIn(place), ADA.words)).toEqual([])
      expect(foundIn(databaseIn(place), BOB.words)).toEqual(BOB.words)
    }
    expect(await run(other, 'rebuild', '--verify')).toMatchObject({ code: 0 })
  })

  it('leaves what was read to an export, without a signature, which says how much', async () => {
    const { folder } = await served()
    await answerOf(folder, 'erase', ADA.customerId, '--yes')
    const { stdout, stderr } = await run(folder, 'events', 'export')
    expect(stderr).toMatch(/^without a signature: 6 events as read, /)
    expect(ADA.words.filter((word) => stdout.includes(word))).toEqual([])
    // Six of each, and the act.
    expect(stdout.trimEnd().split('\n')).toHaveLength(13)
    expect(await answerOf(folder, 'events', 'export', '--output', 'left.jsonl')).toMatchObject({
      lines: 13,
      readings: 6,
      leftOut: 0,
    })
    const [sent] = ADA.events
    expect(await run(folder, 'events', 'body', String(sent?.id))).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/was removed with the erasure of a customer/),
    })
    expect((await run(folder, 'events', 'show', String(sent?.id))).stdout).toMatch(
      /which was removed with the erasure of a customer, at \d/,
    )
  })
})

it('compacts the database of no daemon, and nobody else’s', async () => {
  const { folder, daemon } = await served()
  expect(await run(folder, 'compact')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Another process'),
  })
  daemon.signal('SIGTERM')
  await daemon.exit
  expect(told(await built(folder, 'compact', '--json'))).toMatchObject({ after: expect.any(Number) })
  await expectWhole(
    folder,
    [...ADA.events, ...BOB.events].map(({ id }) => id),
  )
})
