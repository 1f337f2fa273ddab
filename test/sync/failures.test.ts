import { describe, expect, it } from 'vitest'
import { LatchkeyError } from '../../src/errors.js'
import { ActionRequiredError, RetryableError } from '../../src/sync/platform.js'
import type { WriteSync } from '../../src/sync/writes.js'
import { GOLD, HOUR, NOON, SILVER, type Syncing, syncing } from './syncing.js'

const UNHEARD = new RetryableError('unreachable', 'No answer.')
const NOT_THERE = new ActionRequiredError('not_there', 'Have them join.', { mayHeal: true })

/** The platform asks to be left alone until then. */
const slower = (notBefore: number, scope: 'platform' | 'target' = 'platform', isRefused = true) =>
  new RetryableError('rate_limited', 'Slower.', { scope, notBefore, isRefused })

async function withCustomers(count: number): Promise<Syncing> {
  const world = await syncing()
  // In the background it would call for the first ones before the last ones are there.
  await world.sync.stop()
  for (let i = 10; i < 10 + count; i += 1) {
    await world.link(`cus_${i}`, String(i))
    await world.access({ customerId: `cus_${i}`, active: true })
  }
  return { ...world, sync: await world.start() }
}

describe('a limit', () => {
  it('of a platform is waited for by all of its targets, and then asked about by one call', async () => {
    const { sync, community, access, pass, clock } = await withCustomers(10)
    await access({ customerId: 'cus_10', active: true, productId: 'pro_silver' })
    const until = NOON + 5_000
    const limited = slower(until)
    community.meet(() => (clock() < until ? { error: limited, isMade: false } : null))
    await sync.run()
    expect(community.calls.length).toBeLessThanOrEqual(community.concurrency)
    const first = community.calls.length
    pass(4_999)
    await sync.run()
    expect(community.calls.length).toBe(first)
    expect((await sync.status()).platforms).toEqual([
      {
        platform: 'discord',
        state: 'limited',
        until,
        reason: { code: 'rate_limited', message: 'Slower.' },
      },
    ])
    pass(1)
    expect(await sync.run()).toMatchObject({ given: 11, failed: 0 })
    expect(community.calls[first]?.at).toBe(until)
    expect(community.membersOf(SILVER)).toEqual(['10'])
    expect((await sync.status()).platforms).toEqual([
      { platform: 'discord', state: 'ok', until: null, reason: null },
    ])
  })

  it('lasts no longer, and no shorter, for a clock that is set back', async () => {
    const { sync, community, access, link, pass, clock } = await withCustomers(1)
    const limited = slower(NOON + 5_000)
    community.meet(() => (community.calls.length === 1 ? { error: limited, isMade: false } : null))
    await sync.run()
    pass(-HOUR)
    await link('cus_90', '90')
    await access({ customerId: 'cus_90', active: true })
    await sync.run()
    expect((await sync.status()).platforms).toMatchObject([{ until: clock() + 5_000 }])
    pass(4_999)
    await sync.run()
    expect(community.calls).toHaveLength(1)
    pass(1)
    expect(await sync.run()).toMatchObject({ given: 1 })
    expect(community.membersOf(GOLD)).toEqual(['90'])
  })

  it.each([
    [60_000, 1],
    [59_999, 0],
  ])('of %d ms is told in the log %d times', async (ms, times) => {
    const { sync, community, logged } = await withCustomers(10)
    community.meet(() => ({ error: slower(NOON + ms, 'platform', false), isMade: false }))
    await sync.run()
    const told = logged.filter(({ msg }) => String(msg).includes('rate limited by the platform'))
    expect(told).toHaveLength(times)
    for (const line of told) expect(line).toMatchObject({ level: 40, platform: 'discord', reason: 'Slower.' })
  })

  it('is waited for by a process that comes after the one that was told of it', async () => {
    const { community, access, pass, clock, start, sync } = await withCustomers(40)
    const until = NOON + 5_000
    const limited = slower(until)
    community.meet(() => (clock() < until ? { error: limited, isMade: false } : null))
    await sync.run()
    const first = community.calls.length
    expect(first).toBeGreaterThan(0)

    const next = await start()
    await access({ customerId: 'cus_11', active: true, productId: 'pro_silver' })
    await next.run()
    expect(community.calls.length).toBe(first)
    expect((await next.status()).platforms).toMatchObject([
      { state: 'limited', reason: { code: 'rate_limited' } },
    ])
    // Before the wait, one more back-off may have been added.
    pass(10_000)
    expect(await next.run()).toMatchObject({ given: 41, failed: 0 })
  })

  it('of one target keeps no other waiting', async () => {
    const { sync, community, access } = await withCustomers(1)
    await access({ customerId: 'cus_10', active: true, productId: 'pro_silver' })
    const limited = slower(NOON + 1_000, 'target', false)
    community.meet(({ target }) => (target === 'discord:1:10' ? { error: limited, isMade: false } : null))
    expect(await sync.run()).toMatchObject({ given: 1, failed: 1 })
    expect(community.membersOf(SILVER)).toEqual(['10'])
  })

  it('that comes again and again is asked about less and less often', async () => {
    const { sync, community, pass, clock } = await withCustomers(50)
    community.meet(() => ({ error: slower(clock() + 100, 'platform', false), isMade: false }))
    for (let second = 0; second < 200; second += 1) {
      await sync.run()
      pass(1_000)
    }
    expect(community.calls.length).toBeLessThan(30)
  })
})

describe('a call that nobody answers', () => {
  it('is made again after a while that doubles, and shows as retrying meanwhile', async () => {
    const { sync, community, pass, clock } = await withCustomers(1)
    community.meet(() => ({ error: UNHEARD, isMade: false }))
    const waits: number[] = []
    for (const attempts of [1, 2, 3]) {
      await sync.run()
      const [one] = (await sync.memberships({ state: 'retrying', limit: 10 })).items
      expect(one).toMatchObject({ attempts, lastError: { code: 'unreachable', message: 'No answer.' } })
      waits.push((one?.nextAttemptAt ?? 0) - clock())
      pass(waits.at(-1) ?? 0)
    }
    expect(waits).toEqual([500, 1_000, 2_000])
    community.meet(() => null)
    expect(await sync.run()).toMatchObject({ given: 1 })
  })

  it('and then others says that the platform is down: it is left alone', async () => {
    const { sync, community } = await withCustomers(100)
    community.meet(() => ({ error: UNHEARD, isMade: false }))
    await sync.run()
    expect(community.calls.length).toBeLessThan(20)
    expect((await sync.status()).platforms).toMatchObject([
      { state: 'limited', reason: { code: 'unreachable' } },
    ])
  })
})

describe('what needs somebody', () => {
  it('is parked with a reason, costs no more calls, and is tried again when it is asked for', async () => {
    const { sync, community, pass } = await withCustomers(2)
    const reason = new ActionRequiredError('account_invalid', 'Link the right one.')
    community.meet(({ accountId }) => (accountId === '10' ? { error: reason, isMade: false } : null))
    expect(await sync.run()).toMatchObject({ given: 1, parked: 1 })
    const made = community.calls.length
    pass(HOUR)
    await sync.run({ sweep: true })
    expect(community.calls.slice(made).map(({ call }) => call)).toEqual(['list', 'list'])
    expect((await sync.memberships({ state: 'parked', limit: 10 })).items).toMatchObject([
      { accountId: '10', parked: { code: 'account_invalid', message: 'Link the right one.' } },
    ])
    community.meet(() => null)
    expect(await sync.run({ retry: { customerId: 'cus_11' } })).toMatchObject({ given: 0 })
    expect(await sync.run({ retry: { customerId: 'cus_10' } })).toMatchObject({ given: 1 })
    expect(community.membersOf(GOLD)).toEqual(['10', '11'])
  })

  it('stops the calls of its target, and a run tells how many are not made', async () => {
    const { sync, community } = await withCustomers(2)
    const reason = new ActionRequiredError('role_not_found', 'Correct the roleId.', { scope: 'target' })
    community.meet(() => ({ error: reason, isMade: false }))
    expect(await sync.run()).toMatchObject({ given: 0, failed: 0, stopped: 2, left: 0 })
    community.meet(() => null)
    expect(await sync.run()).toMatchObject({ given: 2, stopped: 0, left: 0 })
  })

  it('but may come by itself, is tried again by every sweep', async () => {
    const { sync, community } = await withCustomers(1)
    community.meet(({ call }) => (call === 'observe' ? { error: NOT_THERE, isMade: false } : null))
    expect(await sync.run()).toMatchObject({ waiting: 1, parked: 0 })
    expect((await sync.status()).targets[0]?.memberships).toMatchObject({ waiting: 1, parked: 0 })
    expect((await sync.memberships({ state: 'parked', limit: 10 })).items).toEqual([])
    expect((await sync.memberships({ state: 'waiting', limit: 10 })).items).toMatchObject([
      { accountId: '10', state: 'waiting', parked: { code: NOT_THERE.code } },
    ])
    community.meet(() => null)
    expect(await sync.run()).toMatchObject({ given: 0 })
    expect(await sync.run({ sweep: true })).toMatchObject({ given: 1 })
  })

  it('to remove a member is parked with a reason, and tried again by every sweep, too', async () => {
    const { sync, community, access } = await withCustomers(1)
    await sync.run()
    await access({ customerId: 'cus_10', active: false })
    const isAdmin = new ActionRequiredError('member_is_admin', 'Take their rights first.', { mayHeal: true })
    community.meet(({ call }) => (call === 'take' ? { error: isAdmin, isMade: false } : null))
    expect(await sync.run()).toMatchObject({ waiting: 0, parked: 1 })
    expect((await sync.status()).targets[0]?.memberships).toMatchObject({ waiting: 0, parked: 1 })
    expect((await sync.memberships({ state: 'waiting', limit: 10 })).items).toEqual([])
    expect((await sync.memberships({ state: 'parked', limit: 10 })).items).toMatchObject([
      { accountId: '10', state: 'parked', parked: { code: isAdmin.code, message: isAdmin.message } },
    ])
    community.meet(() => null)
    expect(await sync.run()).toMatchObject({ taken: 0 })
    expect(await sync.run({ sweep: true })).toMatchObject({ taken: 1 })
  })

  it('was never given, so that nothing is taken back when access ends', async () => {
    const { sync, community, access } = await withCustomers(1)
    community.meet(({ call }) => (call === 'give' ? { error: NOT_THERE, isMade: false } : null))
    await sync.run()
    await access({ customerId: 'cus_10', active: false })
    community.meet(() => null)
    await sync.run()
    expect(community.calls.map(({ call }) => call)).toEqual(['observe', 'give'])
  })

  it('for a whole platform stops all calls, is told once in the log, and goes on when it is asked for', async () => {
    const { sync, community, logged } = await withCustomers(20)
    const rejected = new ActionRequiredError('token_rejected', 'Put a valid one.', { scope: 'platform' })
    community.meet(() => ({ error: rejected, isMade: false }))
    await sync.run()
    const made = community.calls.length
    expect(made).toBeLessThanOrEqual(community.concurrency)
    expect(logged.filter(({ code }) => code === 'token_rejected')).toHaveLength(1)
    await sync.sweep()
    expect(community.calls.length).toBe(made)
    expect((await sync.status()).platforms).toEqual([
      {
        platform: 'discord',
        state: 'stopped',
        until: null,
        reason: { code: 'token_rejected', message: 'Put a valid one.' },
      },
    ])
    community.meet(() => null)
    expect(await sync.run()).toMatchObject({ given: 20 })
  })
})

it('an adapter that throws what it should not is told in the log without its words, and tried again', async () => {
  const { sync, community, logged, pass } = await withCustomers(1)
  community.meet(() => {
    throw new TypeError('secret-token is not a function')
  })
  expect(await sync.run()).toMatchObject({ failed: 1 })
  expect(JSON.stringify([logged, await sync.memberships({ limit: 10 })])).not.toContain('secret-token')
  community.meet(() => null)
  pass(HOUR)
  expect(await sync.run()).toMatchObject({ given: 1 })
})

it.each([
  ['that can’t be written', new LatchkeyError('store_unavailable', 'The store cannot be written now.')],
  ['that can’t be read', Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' })],
])(
  'a store %s ends the round of an adapter that uses it, and no call counts as failed',
  async (_how, error) => {
    const { sync, community, access, logged } = await withCustomers(1)
    await sync.run()
    // First: what goes on in the background may be as quick as the run.
    community.meet(({ call }) => {
      if (call === 'take') throw error
      return null
    })
    await access({ customerId: 'cus_10', active: false })
    await expect(sync.run()).rejects.toBe(error)
    expect(logged.map(({ msg }) => msg)).not.toContain('a call to a platform failed because of a bug')
    const [one] = (await sync.memberships({ limit: 10 })).items
    expect(one).toMatchObject({ state: 'due', attempts: 0, lastError: null })
    community.meet(() => null)
    expect(await sync.run()).toMatchObject({ taken: 1 })
    expect(community.membersOf(GOLD)).toEqual([])
  },
)

it('a call that is under way is not made again, although the store fails meanwhile', async () => {
  const { community, start, writeSync } = await withCustomers(2)
  const { promise: storeFailed, resolve: storeFails } = Promise.withResolvers<void>()
  let isFailing = true
  const failing: WriteSync = (name, change) => {
    if (name !== 'stepMemberships' || !isFailing) return writeSync(name, change)
    isFailing = false
    storeFails()
    return Promise.reject(new LatchkeyError('store_unavailable', 'The store cannot be written now.'))
  }
  const { promise: released, resolve: release } = Promise.withResolvers<null>()
  let asked = 0
  community.meet(({ call, accountId }) => {
    if (accountId !== '11' || call !== 'observe') return null
    asked += 1
    return released
  })
  const sync = await start({ writeSync: failing })
  let isOver = false
  const failed = sync.run().catch(() => {
    isOver = true
  })
  const next = sync.run()
  await storeFailed
  // Answered by the store: by then, a run that does not wait for its calls is over.
  await sync.status()
  expect(isOver).toBe(false)
  release(null)
  await failed
  await next
  expect(isOver).toBe(true)
  expect(asked).toBe(1)
  expect(community.membersOf(GOLD)).toEqual(['10', '11'])
})

it('at most as many calls are under way as the platform bears', async () => {
  const { sync, community } = await withCustomers(30)
  await sync.run()
  expect(community.mostAtOnce()).toBe(community.concurrency)
})
