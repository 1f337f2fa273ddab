import { copyFileSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { foundIn } from '../daemon/erasing.js'
import { foldedState } from '../faults/aftermath.js'
import { deliver, person, sentEvent } from '../stories.js'
import {
  answerOf,
  configuredFolder,
  type DaemonHere,
  databaseIn,
  entitlementsOf,
  run,
  serveHere,
} from '../world.js'

const ADA = person(1)
const BOB = person(2)
const ERASE = `erase ${ADA.customerId} --yes`

const wordsLeft = (folder: string, { words } = ADA) => foundIn(databaseIn(folder), words)
const statusOf = async (daemon: DaemonHere, { customerId } = ADA) =>
  (await entitlementsOf(daemon, customerId)).map(({ status }) => status)

/** A folder whose daemon has taken in both. */
async function served() {
  const folder = configuredFolder()
  const daemon = await serveHere(folder)
  expect((await deliver(daemon.url, [...ADA.events, ...BOB.events])).refused).toEqual([])
  return { folder, daemon }
}

describe('latchkey erase', () => {
  it('erases somebody for good', async () => {
    const { folder, daemon } = await served()
    expect(await wordsLeft(folder)).toEqual(ADA.words)
    const done = await answerOf(folder, `${ERASE} --reason asked`)
    expect(done).toMatchObject({
      customerId: ADA.customerId,
      environment: 'live',
      eventId: expect.stringMatching(/^man_/),
      finishedAt: expect.any(String),
    })
    expect(await wordsLeft(folder)).toEqual([])
    expect(await wordsLeft(folder, BOB)).toEqual(BOB.words)
    expect(await answerOf(folder, ERASE)).toEqual(done)
    expect([await statusOf(daemon), await statusOf(daemon, BOB)]).toEqual([['revoked'], ['active']])
    const { stdout } = await run(folder, `explain ${ADA.customerId} pro_1`)
    expect(stdout).toMatch(/the customer was erased/)
    expect(await answerOf(folder, 'rebuild --verify')).toEqual({ differences: [] })
    expect(await wordsLeft(folder)).toEqual([])
  })

  it('leaves what was read to an export, without a signature, and says so of each body', async () => {
    const { folder } = await served()
    await answerOf(folder, ERASE)
    const { stdout, stderr } = await run(folder, 'events export')
    expect(stderr).toMatch(/^6 events .*without a signature.*--with-manual/)
    expect(ADA.words.filter((word) => stdout.includes(word))).toEqual([])
    // Six of each, and the act.
    expect(stdout.trimEnd().split('\n')).toHaveLength(13)
    const told = await answerOf(folder, 'events export --output left.jsonl')
    expect(told).toMatchObject({ lines: 13, readings: 6, leftOut: 0 })
    const id = ADA.events[0]?.id
    const why = 'was removed: its details say when and why'
    const body = await run(folder, `events body ${id}`)
    expect(body).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(why) })
    expect((await run(folder, `events show ${id}`)).stdout).toMatch(/^bodyRemoved.why +erased$/m)
  })
})

describe('what comes back after an erasure', () => {
  /** A stopped store from which she was erased, the list of erasures, and a backup with everything of hers. */
  async function erased() {
    const { folder, daemon } = await served()
    await answerOf(folder, 'backup before.db')
    const act = await answerOf(folder, `${ERASE} --reason asked`)
    await daemon.stop()
    return { folder, act, list: `${databaseIn(folder)}.erasures` }
  }

  it.each<[string, (list: string) => void]>([
    ['is erased again, as it was', () => {}],
    ['is known to the database that it replaces where the list is lost', (list) => rmSync(list)],
  ])('from a backup made before %s', async (_how, lose) => {
    const { folder, act, list } = await erased()
    lose(list)
    expect(await answerOf(folder, 'restore before.db')).toMatchObject({ erasedAgain: 1 })
    expect(await wordsLeft(folder)).toEqual([])
    expect(await answerOf(folder, `events show ${act.eventId}`)).toMatchObject({
      createdAt: act.erasedAt,
      normalized: { reason: 'asked' },
    })
    const { stdout } = await run(folder, `changes --lost --customer ${ADA.customerId}`)
    expect(stdout).toMatch(/lost {2}the customer was erased \(by .+: asked\) {2}man_/)
    const next = await serveHere(folder)
    expect([await statusOf(next), await statusOf(next, BOB)]).toEqual([['revoked'], ['active']])
  })

  it('over a backup that never knew them is known by the list beside the database', async () => {
    const folder = configuredFolder()
    const daemon = await serveHere(folder)
    await answerOf(folder, 'backup empty.db')
    await deliver(daemon.url, ADA.events)
    await answerOf(folder, ERASE)
    await daemon.stop()
    expect(await answerOf(folder, 'restore empty.db')).toMatchObject({ erasedAgain: 1 })
    const next = await serveHere(folder)
    expect((await deliver(next.url, ADA.events)).refused).toEqual([])
    expect(await wordsLeft(folder)).toEqual([])
  })

  it('is known to the database alone where the list is lost, until the next start writes it again', async () => {
    const { folder, list } = await erased()
    const lines = readFileSync(list, 'utf8')
    rmSync(list)
    const listed = async () =>
      (await answerOf(folder, 'doctor')).findings.find(({ what }: { what: string }) => what === 'erasures')
    expect(await listed()).toMatchObject({ level: 'warn', detail: expect.stringContaining('missing') })
    const next = await serveHere(folder)
    expect(readFileSync(list, 'utf8')).toBe(lines)
    expect(await listed()).toMatchObject({ level: 'ok' })
    await next.stop()
    expect(await answerOf(folder, 'restore before.db')).toMatchObject({ erasedAgain: 1 })
  })

  it('where somebody put an older database in the place by hand is erased at the next start', async () => {
    const { folder } = await erased()
    rmSync(databaseIn(folder))
    copyFileSync(join(folder, 'before.db'), databaseIn(folder))
    const next = await serveHere(folder)
    await expect.poll(() => wordsLeft(folder)).toEqual([])
    await answerOf(folder, ERASE)
    expect(next.logged().map(({ msg }) => msg)).toContainEqual(
      expect.stringContaining('erased customers again'),
    )
  })

  it('by an import of what was exported before is stored without what tells of them', async () => {
    const { folder } = await served()
    await answerOf(folder, 'events export --output before.jsonl')
    await answerOf(folder, ERASE)
    expect(await answerOf(folder, 'import before.jsonl')).toMatchObject({ refused: 0, duplicates: 12 })
    // Into a store that never had any of it, and erased somebody of whom it knew nothing.
    const other = configuredFolder()
    await serveHere(other)
    await answerOf(other, ERASE)
    await answerOf(other, `import ${join(folder, 'before.jsonl')}`)
    for (const place of [folder, other]) {
      expect([await wordsLeft(place), await wordsLeft(place, BOB)]).toEqual([[], BOB.words])
    }
    expect(await answerOf(other, 'rebuild --verify')).toEqual({ differences: [] })
  })

  it('comes by an export of what was left, over a backup made before', async () => {
    const paid = (n: number, type: string, customerId: string, at = Date.UTC(2026, 0, 31) + n) =>
      sentEvent(`evt_paid_${n}`, type, at, {
        object: 'payment',
        id: `pay_${customerId}`,
        method: 'CARD',
        customer: { id: customerId },
        product: { id: 'pro_1' },
      })
    const since = [paid(2, 'payment.refunded', 'cus_refunded'), paid(3, 'payment.authorized', 'cus_paying')]
    const folder = configuredFolder()
    const daemon = await serveHere(folder)
    await deliver(daemon.url, [...ADA.events, paid(1, 'payment.authorized', 'cus_refunded')])
    await answerOf(folder, 'backup backup.db')
    await deliver(daemon.url, since)
    await answerOf(folder, ERASE)
    // She comes back, as the same customer.
    await deliver(daemon.url, [paid(4, 'payment.authorized', ADA.customerId, Date.now())])
    const exportFrom = async (from: string) => {
      await answerOf(from, 'events export --output events.jsonl')
      // In any order; but for when a body was rewritten, which each store does itself.
      const text = readFileSync(join(from, 'events.jsonl'), 'utf8')
      return text
        .replaceAll(/"bodyRemoved":\{("why":"\w+"),"at":"[^"]+"/g, '$1')
        .split('\n')
        .toSorted()
    }
    const lines = await exportFrom(folder)
    const state = await foldedState(folder)
    expect(state.entitlements.map(({ status }) => status).sort()).toEqual(['active', 'active', 'refunded'])

    const elsewhere = configuredFolder()
    await answerOf(elsewhere, `restore ${join(folder, 'backup.db')}`)
    await serveHere(elsewhere)
    const file = join(folder, 'events.jsonl')
    const unsigned = await answerOf(elsewhere, `import ${file}`)
    expect(unsigned).toMatchObject({ refused: 0, applied: since.length })
    const applied = unsigned.leftOut - ADA.events.length
    const imported = await answerOf(elsewhere, `import ${file} --with-manual`)
    expect(imported).toMatchObject({ refused: 0, leftOut: 0, applied })
    expect(await foldedState(elsewhere)).toEqual(state)
    // A daemon finishes what was imported within the minute.
    await answerOf(elsewhere, ERASE)
    expect(await wordsLeft(elsewhere)).toEqual([])
    expect(await answerOf(elsewhere, 'rebuild --verify')).toEqual({ differences: [] })
    expect(await exportFrom(elsewhere)).toEqual(lines)
  })
})
