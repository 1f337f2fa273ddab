import { describe, expect, it, vi } from 'vitest'
import type { CheckFinding } from '../../src/sync/platform.js'
import { RetryableError } from '../../src/sync/platform-errors.js'
import { targetKey } from '../../src/sync/target.js'
import { createCommunity } from './community.js'
import { GOLD, NOON, PRODUCTS, type Syncing, syncing } from './syncing.js'

const TOO_HIGH: CheckFinding = {
  about: targetKey(GOLD),
  isFine: false,
  message: "Put the bot's own role above it.",
}

/** A community that finds these things, and counts how often it was asked. */
async function checked(...findings: CheckFinding[]) {
  let asked = 0
  let now = findings
  const world = await syncing({
    community: {
      ...createCommunity({ clock: () => NOON }),
      check: async () => {
        asked += 1
        return now
      },
    },
  })
  return {
    ...world,
    asked: () => asked,
    find: (...next: CheckFinding[]) => {
      now = next
    },
  }
}

const warnings = ({ logged }: Pick<Syncing, 'logged'>) =>
  logged.filter(({ msg }) => String(msg).includes('somebody has to act')).map(({ reason }) => reason)

describe('a check', () => {
  it('is made at the start, and tells once of each thing that is missing', async () => {
    const world = await checked(TOO_HIGH)
    await vi.waitFor(() => expect(warnings(world)).toEqual([TOO_HIGH.message]))
    expect((await world.sync.status()).checked).toEqual({ at: NOON, problems: [TOO_HIGH] })
    await world.sync.sweep()
    await vi.waitFor(() => expect(world.asked()).toBe(2))
    expect(await world.sync.check()).toEqual([TOO_HIGH])
    expect(warnings(world)).toHaveLength(1)
  })

  it('tells nothing where nothing is missing', async () => {
    const world = await checked({ ...TOO_HIGH, isFine: true })
    await vi.waitFor(async () =>
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
    await vi.waitFor(() => expect(warnings(world)).toHaveLength(1))
    world.find()
    await again(world)
    await vi.waitFor(async () => expect((await world.sync.status()).checked?.problems).toEqual([]))
  })

  it('is made by itself only once sync is resumed, and before that where somebody asks for it', async () => {
    const world = await checked(TOO_HIGH)
    await vi.waitFor(() => expect(world.asked()).toBe(1))
    await world.sync.pause()
    const next = await world.start()
    await next.run()
    expect(world.asked()).toBe(1)
    expect((await next.status()).checked).toBeNull()
    await next.check()
    expect(world.asked()).toBe(2)
    await next.resume()
    await vi.waitFor(() => expect(world.asked()).toBe(3))
  })

  it('waits until a limit is over that the platform has told', async () => {
    const world = await checked(TOO_HIGH)
    await vi.waitFor(() => expect(world.asked()).toBe(1))
    const until = { scope: 'platform', notBefore: NOON + 30_000, isRefused: true } as const
    world.community.meet(() => ({
      error: new RetryableError('rate_limited', 'Slower.', until),
      isMade: false,
    }))
    await world.link('cus_1', '1')
    await world.access({ customerId: 'cus_1', active: true })
    await world.sync.run()
    const asked = world.asked()
    const next = await world.start()
    await next.run()
    expect(await next.check()).toMatchObject([
      {
        about: 'discord',
        isFine: false,
        message: 'No call is made before 2026-03-01T12:00:30.000Z: Slower.',
      },
    ])
    expect(world.asked()).toBe(asked)
    world.pass(60_000)
    next.wake()
    await vi.waitFor(() => expect(world.asked()).toBe(asked + 1))
  })
})
