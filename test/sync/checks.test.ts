import { describe, expect, it } from 'vitest'
import { type CheckFinding, RetryableError } from '../../src/sync/platform.js'
import { targetKey } from '../../src/sync/target.js'
import { eventually } from '../setup/eventually.js'
import { createCommunity } from './community.js'
import { GOLD, NOON, PRODUCTS, SILVER, type Syncing, syncing } from './syncing.js'

const TOO_HIGH: CheckFinding = {
  about: targetKey(GOLD),
  isFine: false,
  message: "Put the bot's own role above it.",
}

const LIMITED: CheckFinding = {
  about: 'discord',
  isFine: false,
  isUnknown: true,
  message: 'Calls are paused until 2026-03-01T12:00:30.000Z: Slower.',
}

/** After which a check that found something is made again. */
const SOME_MINUTES = 5 * 60_000

/** A community that finds these things, or fails, and counts how often it was asked. */
async function checked(...findings: CheckFinding[]) {
  let asked = 0
  let now: () => readonly CheckFinding[] = () => findings
  const world = await syncing({
    community: {
      ...createCommunity({ clock: () => NOON }),
      check: async () => {
        asked += 1
        return now()
      },
    },
  })
  return {
    ...world,
    asked: () => asked,
    find: (...next: CheckFinding[]) => {
      now = () => next
    },
    fail: (error: RetryableError) => {
      now = () => {
        throw error
      }
    },
  }
}

/** Makes the community ask to be left alone, for half a minute. */
async function limit({ community, link, access, sync }: Syncing): Promise<void> {
  const until = { scope: 'platform', notBefore: NOON + 30_000, isRefused: true } as const
  community.meet(() => ({ error: new RetryableError('rate_limited', 'Slower.', until), isMade: false }))
  await link('cus_1', '1')
  await access({ customerId: 'cus_1', active: true })
  await sync.run()
}

const warnings = ({ logged }: Pick<Syncing, 'logged'>) =>
  logged.filter(({ msg }) => String(msg).includes('action needed')).map(({ reason }) => reason)

describe('a check', () => {
  it('says nothing of an answer that comes after a stop, which finds the store closed', async () => {
    const { promise: answer, reject } = Promise.withResolvers<readonly CheckFinding[]>()
    const world = await syncing({
      community: { ...createCommunity({ clock: () => NOON }), check: () => answer },
    })
    await eventually(() => expect(world.sync.mayCall()).toBe(true))
    const asked = world.sync.check().catch((error: unknown) => error)
    world.sync.recheck()
    await world.sync.stop()
    const closed = new Error('the store is closed')
    reject(closed)
    expect(await asked).toBe(closed)
    expect(world.logged.filter(({ level }) => level === 50)).toEqual([])
  })

  it('is made at the start, and tells once of each thing that is missing', async () => {
    const world = await checked(TOO_HIGH)
    await eventually(() => expect(warnings(world)).toEqual([TOO_HIGH.message]))
    expect((await world.sync.status()).checked).toEqual({ at: NOON, problems: [TOO_HIGH] })
    await world.sync.sweep()
    await eventually(() => expect(world.asked()).toBe(2))
    expect(await world.sync.check()).toEqual([TOO_HIGH])
    expect(warnings(world)).toHaveLength(1)
  })

  it('tells of one environment what is about its targets, or about a whole platform', async () => {
    const world = await checked(TOO_HIGH, { ...TOO_HIGH, about: 'discord' })
    await eventually(() => expect(world.asked()).toBe(1))
    expect((await world.sync.check(['live'])).map(({ about }) => about)).toEqual([TOO_HIGH.about, 'discord'])
    expect((await world.sync.check(['sandbox'])).map(({ about }) => about)).toEqual(['discord'])
    const { checked: report } = await world.sync.status(['sandbox'])
    expect(report?.problems.map(({ about }) => about)).toEqual(['discord'])
  })

  it('tells nothing where nothing is missing', async () => {
    const world = await checked({ ...TOO_HIGH, isFine: true })
    await eventually(async () =>
      expect((await world.sync.status()).checked).toEqual({ at: NOON, problems: [] }),
    )
    expect(warnings(world)).toEqual([])
  })

  it.each<[string, (world: Syncing) => unknown]>([
    ['a sweep', ({ sync }) => sync.sweep()],
    ['a run', ({ sync }) => sync.run()],
    ['a reload', ({ sync, community }) => sync.reload(PRODUCTS, [community])],
  ])('is made again by %s, after which what was mended is told no more', async (_, again) => {
    const world = await checked(TOO_HIGH)
    await eventually(() => expect(warnings(world)).toHaveLength(1))
    world.find()
    await again(world)
    await eventually(async () => expect((await world.sync.status()).checked?.problems).toEqual([]))
  })

  it('is made by itself only once sync is resumed, and before that where somebody asks for it', async () => {
    const world = await checked(TOO_HIGH)
    await eventually(() => expect(world.asked()).toBe(1))
    await world.sync.pause()
    const next = await world.start()
    await next.run()
    expect(world.asked()).toBe(1)
    expect((await next.status()).checked).toBeNull()
    await next.check()
    expect(world.asked()).toBe(2)
    await next.resume()
    await eventually(() => expect(world.asked()).toBe(3))
  })

  it('is made again by itself some minutes later, until nothing is missing', async () => {
    const world = await checked(TOO_HIGH)
    await eventually(() => expect(warnings(world)).toHaveLength(1))
    world.pass(SOME_MINUTES)
    world.sync.wake()
    await eventually(() => expect(world.asked()).toBe(2))
    world.find()
    world.pass(SOME_MINUTES)
    world.sync.wake()
    await eventually(async () =>
      expect((await world.sync.status()).checked).toEqual({ at: NOON + 2 * SOME_MINUTES, problems: [] }),
    )
    expect(warnings(world)).toHaveLength(1)
  })

  it('waits until a limit is over that the platform has told', async () => {
    const world = await checked(TOO_HIGH)
    await eventually(() => expect(world.asked()).toBe(1))
    await limit(world)
    const asked = world.asked()
    const next = await world.start()
    await next.run()
    expect(await next.check()).toEqual([LIMITED])
    expect(world.asked()).toBe(asked)
    world.pass(60_000)
    next.wake()
    await eventually(() => expect(world.asked()).toBe(asked + 1))
  })

  it('finds nothing for somebody to see to in a limit, which is over by itself', async () => {
    const world = await checked()
    await eventually(() => expect(world.asked()).toBe(1))
    await limit(world)
    expect(await world.sync.check()).toEqual([LIMITED])
    expect((await world.sync.status()).checked?.problems).toEqual([])
    expect(warnings(world)).toEqual([])
    expect(world.logged).toContainEqual(
      expect.objectContaining({
        level: 30,
        reason: LIMITED.message,
        msg: 'could not check roles and groups; checking again later',
      }),
    )
  })

  it('is made again by itself some minutes after an outage, in which it finds nothing for somebody to see to', async () => {
    const world = await checked({ ...TOO_HIGH, isFine: true })
    await eventually(() => expect(world.asked()).toBe(1))
    world.fail(new RetryableError('unreachable', 'Discord could not be reached.'))
    const next = await world.start()
    const again = expect.objectContaining({ level: 30, reason: 'Discord could not be reached.' })
    await eventually(() => expect(world.logged).toContainEqual(again))
    expect((await next.status()).checked?.problems).toEqual([])
    expect(await next.check()).toMatchObject([{ about: 'discord', isFine: false }])
    expect(warnings(world)).toEqual([])
    world.find(TOO_HIGH)
    world.pass(SOME_MINUTES)
    next.wake()
    await eventually(() => expect(warnings(world)).toEqual([TOO_HIGH.message]))
  })

  it('forgets what was mended, and nothing that it got no answer about', async () => {
    const silver = { ...TOO_HIGH, about: targetKey(SILVER) }
    const world = await checked(TOO_HIGH, silver)
    await eventually(() => expect(warnings(world)).toHaveLength(2))
    world.find(
      { ...TOO_HIGH, isUnknown: true, message: 'Discord did not answer.' },
      { ...silver, isFine: true },
    )
    await world.sync.check()
    expect((await world.sync.status()).checked?.problems).toEqual([TOO_HIGH])
  })

  it('forgets nothing that was missing while the platform cannot be asked', async () => {
    const world = await checked(TOO_HIGH)
    await eventually(() => expect(warnings(world)).toHaveLength(1))
    await limit(world)
    expect(await world.sync.check()).toEqual([LIMITED])
    expect((await world.sync.status()).checked?.problems).toEqual([TOO_HIGH])
    world.pass(60_000)
    expect(await world.sync.check()).toEqual([TOO_HIGH])
    expect(warnings(world)).toHaveLength(1)
  })
})
