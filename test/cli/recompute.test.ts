import { describe, expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { deliveryOf } from '../ingest/wire.js'
import { everything } from '../recompute/recompute-store.js'
import { misread } from '../setup/alter-body.js'
import { customerStory, deliver, sentEvent, storiesOf } from '../stories.js'
import {
  answerOf,
  ask,
  configuredFolder,
  databaseIn,
  entitlementsOf,
  failureOf,
  MAY_ALL,
  onStore,
  readStore,
  rewriteConfig,
  run,
  runServed,
  serveHere,
  takeIn,
} from '../world.js'

/** Under the documented table a card payment gives access once authorized, and `payment.succeeded` gives none. */
function paid(paymentId: string, type = 'payment.succeeded', environment: 'live' | 'sandbox' = 'live') {
  const data = { id: paymentId, customer: `cus_of_${paymentId}`, product: 'pro_1', method: 'CARD' }
  const { body } = sentEvent(`evt_${paymentId}`, type, Date.UTC(2026, 0, 1), data, environment === 'live')
  return deliveryOf(body, { environment })
}

const OTHER_ROW = { ...MAY_ALL, policy: { grantOn: { card: ['payment.succeeded'] } } }
const NOBODY = 'nobody’s access has changed\n'
const AS_STORED = 'everything stored matches the events\n'
const fine = (stdout: string) => ({ code: 0, stdout, stderr: '' })

/** A stopped database under the documented policy, in which that many succeeded and one was authorized. */
async function stopped(config: unknown = OTHER_ROW, succeeded = 1): Promise<string> {
  const folder = configuredFolder(config)
  const told = Array.from({ length: succeeded }, (_, n) => paid(`pay_${String(n).padStart(2, '0')}`))
  await takeIn(folder, [...told, paid('pay_a', 'payment.authorized')])
  return folder
}

const contents = (folder: string) => readStore(folder, everything)

describe('latchkey policy', () => {
  it('diff names who would gain and who would lose, and changes nothing; apply does what it told, once', async () => {
    const folder = await stopped()
    const before = await contents(folder)
    const lines = [
      '1 would gain access, 1 would lose it, 0 other changes',
      'live  cus_of_pay_00  pro_1  none -> active',
      'live  cus_of_pay_a   pro_1  active -> none',
      '',
    ]
    expect(await run(folder, 'policy diff')).toEqual(fine(lines.join('\n')))
    const sandbox = await run(folder, 'policy diff --environment sandbox')
    expect(sandbox.stdout).toBe('nobody’s access would change\n')
    const told = await answerOf(folder, 'policy diff')
    expect(await contents(folder)).toEqual(before)

    await serveHere(folder)
    expect(await answerOf(folder, 'policy apply')).toEqual(told)
    expect((await run(folder, 'check cus_of_pay_00 pro_1')).stdout).toContain('active')
    const after = await contents(folder)
    expect(await run(folder, 'policy apply')).toEqual(
      fine(`the configured policy was already in force\n${NOBODY}`),
    )
    // The daemon saves other things there.
    expect(await contents(folder)).toEqual({ ...after, settings: expect.anything() })
  })

  it('diff counts all of them, and shows ten unless it is asked for all', async () => {
    const folder = await stopped(OTHER_ROW, 12)
    const { stdout } = await run(folder, 'policy diff')
    expect(stdout).toMatch(/^12 would gain access, 1 would lose it/)
    expect(stdout.split('\n')).toHaveLength(13)
    expect(stdout).toMatch(/\nand 3 more\n$/)
    const all = await answerOf(folder, 'policy diff --all')
    expect(all).toMatchObject({ gains: 12, losses: 1, otherwise: 0, sample: { length: 13 } })
  })

  it('show tells the policy in force, and the rows that are configured otherwise', async () => {
    const folder = await stopped()
    const { stdout } = await run(folder, 'policy show')
    expect(stdout).toMatch(/^grantOn\.card +payment\.authorized, checkout\.succeeded$/m)
    expect(stdout).toMatch(/the configured policy differs.*\n {2}grantOn\.card {2}payment\.succeeded\n$/)
    expect(await answerOf(folder, 'policy show')).toMatchObject({
      inForce: DOCUMENTED_POLICY,
      differs: ['grantOn.card'],
      unfinishedRebuild: false,
    })
    rewriteConfig(folder, MAY_ALL)
    expect((await run(folder, 'policy show')).stdout).toMatch(/the configured policy is the same\n$/)
  })

  it('of a daemon stays in force until it is told to apply the configured one, and then holds for what comes', async () => {
    const folder = configuredFolder(MAY_ALL)
    const daemon = await serveHere(folder)
    const { events, customerId, outcome } = customerStory(0)
    await deliver(daemon.url, events)
    await answerOf(folder, 'grant cus_by_hand pro_1 --reason gift')
    await answerOf(folder, 'block cus_blocked pro_1 --reason fraud')
    const nothing = { grantOn: { card: [], crypto: [], unknown: [] }, paidCycle: 'informs' }
    rewriteConfig(folder, { ...MAY_ALL, policy: nothing })
    expect(await failureOf(folder, 'policy apply')).toMatchObject({
      code: 1,
      error: { code: 'policy_differs' },
    })
    const notes = async () => (await (await ask(daemon, '/readyz')).json()) as object
    expect(await notes()).toMatchObject({ notes: [] })
    await daemon.reload()
    expect(await notes()).toMatchObject({ notes: ['The configured policy is not the one in force.'] })
    expect(await entitlementsOf(daemon, customerId)).toEqual([outcome])

    const told = await answerOf(folder, 'policy diff')
    expect(await answerOf(folder, 'policy apply')).toEqual(told)
    expect(await notes()).toMatchObject({ notes: [] })
    const next = customerStory(1)
    await deliver(daemon.url, next.events)
    for (const id of [customerId, next.customerId]) expect(await entitlementsOf(daemon, id)).toEqual([])
    expect(await entitlementsOf(daemon, 'cus_by_hand')).toMatchObject([{ status: 'active' }])
    expect(await entitlementsOf(daemon, 'cus_blocked')).toMatchObject([{ status: 'blocked' }])
    expect(await run(folder, 'rebuild --verify')).toEqual(fine(AS_STORED))
  })
})

describe('latchkey rebuild', () => {
  it('verifies what stands, exits 1 with what differs, and mends that, under the policy in force', async () => {
    const folder = await stopped()
    await serveHere(folder)
    const before = await contents(folder)
    expect(await run(folder, 'rebuild')).toEqual(fine(NOBODY))
    // The daemon saves other things there.
    expect(await contents(folder)).toEqual({ ...before, settings: expect.anything() })
    expect(await run(folder, 'rebuild --verify')).toEqual(fine(AS_STORED))
    await onStore(folder, (db) =>
      db.updateTable('entitlements').set({ active: 0, status: 'refunded' }).execute(),
    )
    expect(await run(folder, 'rebuild --verify')).toEqual({
      code: 1,
      stdout: 'live  entitlement  cus_of_pay_a pro_1\n',
      stderr: expect.stringMatching(/^error: one .*`latchkey rebuild`.*\n$/),
    })
    expect((await run(folder, 'rebuild')).stdout).toContain('refunded -> active\n')
    expect(await contents(folder)).toMatchObject({ entitlements: before.entitlements })
  })

  it('compares one environment where it is asked to, and rebuilds both, of which it reports that one', async () => {
    /** Both have a payment; what is written down of live is not as its events say. */
    async function tampered(): Promise<string> {
      const folder = configuredFolder(MAY_ALL)
      await takeIn(folder, [
        paid('pay_a', 'payment.authorized'),
        paid('pay_a', 'payment.authorized', 'sandbox'),
      ])
      await onStore(folder, (db) =>
        db.updateTable('entitlements').set({ active: 0 }).where('environment', '=', 'live').execute(),
      )
      return folder
    }
    const folder = await tampered()
    const sandbox = 'everything stored in sandbox matches the events\n'
    expect(await run(folder, 'rebuild --verify --environment sandbox')).toEqual(fine(sandbox))
    expect(await answerOf(folder, 'rebuild --verify --environment sandbox')).toEqual({ differences: [] })
    for (const environment of ['--environment live', '']) {
      const live = await run(folder, `rebuild --verify ${environment}`)
      expect(live).toMatchObject({ code: 1, stdout: 'live  entitlement  cus_of_pay_a pro_1\n' })
    }
    const rebuilt = await runServed(folder, 'rebuild --environment sandbox')
    expect(rebuilt).toEqual(fine('nobody’s access has changed in sandbox\n'))
    expect(await run(folder, 'rebuild --verify')).toEqual(fine(AS_STORED))
    const other = await tampered()
    await serveHere(other)
    const live = await answerOf(other, 'rebuild --environment live')
    expect(live).toMatchObject({ gains: 1, sample: [{ environment: 'live' }] })
  })
})

describe('latchkey replay', () => {
  it('says through the daemon or without one, on trial or in earnest, what it does, and does that', async () => {
    const folder = configuredFolder(MAY_ALL)
    const before = await serveHere(folder)
    const [story] = storiesOf(0, 1)
    const misreadings = (story?.events ?? []).map(({ id, body }) => ({
      id,
      body,
      unreadable: `unreadable ${id}`,
    }))
    await deliver(
      before.url,
      misreadings.map(({ id, unreadable }) => ({ id, body: unreadable })),
    )
    await before.stop()
    await misread(databaseIn(folder), misreadings)

    const lines = [
      '2 read again, 2 would be read differently',
      '2 can be used now',
      '1 would gain access, 0 would lose it, 0 other changes',
      'live  cus_0  pro_1  none -> active',
      'no role or group would change',
      '',
    ]
    expect(await run(folder, 'replay --dry-run')).toEqual(fine(lines.join('\n')))
    const daemon = await serveHere(folder)
    expect(await run(folder, 'replay --dry-run')).toEqual(fine(lines.join('\n')))
    expect(await entitlementsOf(daemon, 'cus_0')).toEqual([])
    // Once it is done they follow by themselves.
    const done = lines
      .toSpliced(4, 1)
      .join('\n')
      .replace('would be', 'were')
      .replace('would gain', 'gained')
      .replace('would lose', 'lost')
    expect(await run(folder, 'replay --disposition quarantined')).toEqual(fine(done))
    expect(await entitlementsOf(daemon, 'cus_0')).toEqual([story?.outcome])
    expect(await run(folder, 'replay')).toEqual(fine(`2 read again, 0 were read differently\n${NOBODY}`))
  })
})

it('an event that is damaged in the database is named by all that needs it, in a line, until a replay or a rebuild mends it', async () => {
  const { customerId, events } = customerStory(0)
  const folder = configuredFolder(MAY_ALL)
  const daemon = await serveHere(folder)
  await deliver(daemon.url, events)
  const { eventId } = await answerOf(folder, `block ${customerId} pro_1 --reason review`)
  const damage = (id: string) =>
    onStore(folder, (db) =>
      db.updateTable('events').set({ normalized: 'not json' }).where('event_id', '=', id).execute(),
    )
  const reasonOf = (id = '') => `The normalised form of the event ${id} is damaged`
  const expectFailure = async (words: string, reason: string) =>
    expect({ words, ...(await run(folder, words)) }).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(`^error: (the daemon answered 503: )?${reason}[^\\n]*\\n$`),
    })

  const paid = events[0]?.id ?? ''
  await damage(paid)
  for (const words of ['rebuild --verify', `explain ${customerId} pro_1`, 'policy diff']) {
    await expectFailure(words, reasonOf(paid))
  }
  for (const mending of ['replay', 'policy apply', 'rebuild']) {
    await damage(paid)
    expect(await run(folder, mending)).toMatchObject({ code: 0 })
    expect(await run(folder, 'rebuild --verify')).toEqual(fine(AS_STORED))
  }

  // Something done by hand is not read again.
  await damage(eventId)
  await expectFailure('rebuild', reasonOf(eventId))
  const status = await (await ask(daemon, '/rebuild')).json()
  expect(status).toEqual({ state: 'failed', reason: expect.stringMatching(`^${reasonOf(eventId)}`) })
  const failed = daemon.logged().find(({ msg }) => msg === 'the rebuild failed')
  expect(failed?.err).toMatchObject({ code: 'store_unavailable' })
  expect(failed?.err).not.toHaveProperty('stack')
  await expectFailure(`unblock ${customerId} pro_1`, reasonOf(eventId))
  await expectFailure(`erase ${customerId} --yes`, reasonOf(eventId))
})
