import { execFileSync } from 'node:child_process'
import { createWriteStream, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { exportLine } from '../../src/history/line.js'
import { signBody } from '../../src/provider/signature.js'
import { loadJob } from '../../src/store/recompute.js'
import { foundIn } from '../daemon/erasing.js'
import { expectNothingLost, storedIds } from '../faults/aftermath.js'
import { killAtCommit } from '../faults/injected-faults.js'
import { misread } from '../setup/alter-body.js'
import { eventually } from '../setup/eventually.js'
import { deliver, eventsOf, idsOf, person, type SentEvent, storiesOf } from '../stories.js'
import {
  act,
  answerOf,
  configuredFolder,
  databaseIn,
  entitlementsOf,
  kill,
  latchkey,
  MAY_ALL,
  readStore,
  rewriteConfig,
  run,
  SECRET,
  serve,
  serveHere,
  startProgram,
} from '../world.js'

/** A few in every run; many by hand. */
const KILLS = Number(process.env.FAULT_ROUNDS ?? 2)

const SIGNED_AT = Date.UTC(2025, 1, 1)

/** An export of these, signed long ago. */
function exportOf(events: readonly SentEvent[]): string {
  const lines = events.map(({ body: text }, n) => {
    const body = Buffer.from(text)
    const timestamp = String(SIGNED_AT / 1000 + n)
    const headers = { event: null, timestamp, signature: signBody(SECRET, timestamp, body) }
    const receivedAt = SIGNED_AT + 1_000 * n
    return exportLine({ environment: 'live', endpoint: 'live', headers, body, receivedAt })
  })
  return lines.join('')
}

const verified = async (folder: string) =>
  expect(await run(folder, 'rebuild --verify')).toMatchObject({ code: 0 })

describe('an import that is killed, and done again,', () => {
  it.each(['command', 'daemon'])('ends as if it was done once: the %s', async (victim) => {
    const folder = configuredFolder()
    const events = eventsOf(storiesOf(0, 400))
    const lines = exportOf(events)
    writeFileSync(join(folder, 'events.jsonl'), lines)
    execFileSync('mkfifo', [join(folder, 'events.fifo')])
    const daemon = await serve(folder)
    const importing = startProgram(latchkey('import', 'events.fifo'), { folder })
    // The end is held back, so that it can't be done before it is killed; who reads may be gone by then.
    const feed = createWriteStream(join(folder, 'events.fifo')).on('error', () => {})
    feed.write(lines.slice(0, -20_000))
    await eventually(async () => expect(await storedIds(folder)).not.toEqual([]), { intervalMs: 2 })
    await kill(victim === 'daemon' ? daemon : importing)
    feed.end()
    expect((await importing.exit).code).toBe(victim === 'daemon' ? 1 : null)
    // It may be storing what the command sent last.
    if (victim === 'command') await daemon.stop()
    const taken = (await storedIds(folder)).length
    expect(taken).toBeLessThan(events.length)

    await serveHere(folder)
    const again = await answerOf(folder, 'import events.jsonl')
    expect(again).toMatchObject({
      lines: events.length,
      applied: events.length - taken,
      duplicates: taken,
    })
    expect(await expectNothingLost(folder, idsOf(events))).toHaveLength(events.length)
  })
})

describe('an erasure that is killed', () => {
  const ADA = person(1)

  /** The act is written down once, in the database and beside it, and nothing else says who it was. */
  async function expectErased(folder: string): Promise<void> {
    expect(await foundIn(databaseIn(folder), ADA.words)).toEqual([])
    const { acts, erasures } = await readStore(folder, async (db) => ({
      acts: await db.selectFrom('events').selectAll().where('type', '=', 'manual.erased').execute(),
      erasures: await db.selectFrom('erasures').selectAll().execute(),
    }))
    expect(acts).toMatchObject([{ customer_id: ADA.customerId }])
    const eventId = acts[0]?.event_id
    expect(erasures).toMatchObject([
      { customer_id: ADA.customerId, event_id: eventId, finished_at: expect.any(Number) },
    ])
    const listed = readFileSync(`${databaseIn(folder)}.erasures`, 'utf8')
      .trimEnd()
      .split('\n')
    expect(listed.map((line) => JSON.parse(line))).toMatchObject([{ customerId: ADA.customerId, eventId }])
  }

  it.each(['before', 'after'] as const)(
    '%s the commit of the act ends as if it had run once, by the next start',
    async (moment) => {
      const folder = configuredFolder()
      const { env, arm } = killAtCommit(moment)
      const daemon = await serve(folder, env)
      const bob = person(2)
      expect((await deliver(daemon.url, [...ADA.events, ...bob.events])).refused).toEqual([])
      arm()
      expect(await run(folder, `erase ${ADA.customerId} --yes`)).toMatchObject({ code: 1 })
      expect(await daemon.exit).toMatchObject({ code: null })

      const next = await serveHere(folder)
      await expectErased(folder)
      expect(await entitlementsOf(next, ADA.customerId)).toMatchObject([{ status: 'revoked' }])
      expect(await answerOf(folder, `erase ${ADA.customerId} --yes`)).toMatchObject({ wasKnown: true })
      await expectErased(folder)
      expect(await storedIds(folder)).toEqual(expect.arrayContaining([...idsOf(bob.events)]))
      await verified(folder)
    },
  )

  it('at any moment goes on by itself, and is as good as one that was not', async () => {
    for (let round = 0; round < KILLS; round += 1) {
      const folder = configuredFolder()
      const daemon = await serve(folder)
      const others = eventsOf(storiesOf(0, 150))
      await deliver(daemon.url, [...ADA.events, ...others])
      const asked = run(folder, `erase ${ADA.customerId} --yes`)
      await wait((round * 97) % 400)
      await kill(daemon)
      await asked
      const next = await serveHere(folder)
      await answerOf(folder, `erase ${ADA.customerId} --yes`)
      await expectErased(folder)
      await next.stop()
      expect(await storedIds(folder)).toEqual(expect.arrayContaining([...idsOf(others)]))
      await verified(folder)
    }
  })
})

describe('what is worked out again, killed in the middle and given the same command again,', () => {
  const STORIES = storiesOf(0, 600)

  it('ends as if it had run once: putting a policy in force', async () => {
    const folder = configuredFolder(MAY_ALL)
    const daemon = await serveHere(folder)
    expect((await deliver(daemon.url, eventsOf(STORIES))).refused).toEqual([])
    await daemon.stop()
    const policy = { grantOn: { card: [], crypto: [], unknown: [] }, paidCycle: 'informs' }
    rewriteConfig(folder, { ...MAY_ALL, policy })

    const { env, arm } = killAtCommit('after', "select 1 from changes where cause_kind = 'rebuild'")
    const first = await serve(folder, env)
    arm()
    expect(await run(folder, 'policy apply')).toMatchObject({ code: 1 })
    expect(await first.exit).toMatchObject({ code: null })
    const job = await readStore(folder, loadJob)
    expect(job).toMatchObject({ isMoving: true })
    expect(job?.reached).toBeGreaterThan(0)
    expect(job?.reached).toBeLessThan(Number(job?.newest))

    const notYet = /^error: Not every source has been moved to the policy in force yet: .*policy apply/
    for (const words of ['rebuild --verify', 'replay --dry-run']) {
      const refused = await run(folder, words)
      expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(notYet) })
    }
    await serveHere(folder)
    const losses = STORIES.filter(({ outcome }) => outcome.active).length
    expect(await answerOf(folder, 'policy apply')).toMatchObject({ gains: 0, losses })
    const told = await readStore(folder, (db) =>
      db.selectFrom('changes').select('customer_id').where('cause_kind', '=', 'rebuild').execute(),
    )
    expect(new Set(told.map(({ customer_id: id }) => id)).size).toBe(STORIES.length)
    expect(told).toHaveLength(STORIES.length)
    expect(await readStore(folder, loadJob)).toBeNull()
    await verified(folder)
  })

  it('ends as if it had run once: a replay of what could not be read before', async () => {
    const folder = configuredFolder(MAY_ALL)
    const before = await serveHere(folder)
    const events = eventsOf(STORIES)
    const misreadings = events.map(({ id, body }) => ({ id, body, unreadable: `nobody can read ${id}` }))
    const sent = misreadings.map(({ id, unreadable }) => ({ id, body: unreadable }))
    expect((await deliver(before.url, sent)).refused).toEqual([])
    await before.stop()
    await misread(databaseIn(folder), misreadings)
    const quarantined = () =>
      readStore(folder, async (db) => {
        const rows = db.selectFrom('events').select('seq').where('disposition', '=', 'quarantined')
        return (await rows.execute()).length
      })

    const { env, arm } = killAtCommit('after', "select 1 from events where disposition = 'applied'")
    const daemon = await serve(folder, env)
    arm()
    await act(daemon, 'POST', '/replays', {}).catch(() => null)
    expect(await daemon.exit).toMatchObject({ code: null })
    const left = await quarantined()
    expect(left).toBeGreaterThan(0)
    expect(left).toBeLessThan(events.length)

    const all = events.length
    const next = await serveHere(folder)
    const replayed = await answerOf(folder, 'replay')
    expect(replayed).toMatchObject({ read: all, changed: all, recovered: all, losses: 0 })
    await verified(folder)
    for (const { customerId, outcome } of STORIES.slice(0, 20)) {
      expect(await entitlementsOf(next, customerId)).toEqual([outcome])
    }
  })
})
