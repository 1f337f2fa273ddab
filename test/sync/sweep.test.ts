import { describe, expect, it } from 'vitest'
import { RetryableError } from '../../src/sync/platform.js'
import { eventually } from '../setup/eventually.js'
import { createCommunity } from './community.js'
import { GOLD, GROUP, HOUR, PRODUCTS, type Syncing, syncing } from './syncing.js'

const UNHEARD = { error: new RetryableError('unreachable', 'No answer.'), isMade: false }

async function withMembers(world: Syncing): Promise<Syncing> {
  for (const id of ['a', 'b']) {
    await world.link(`cus_${id}`, id)
    await world.access({ customerId: `cus_${id}`, active: true })
  }
  await world.sync.run()
  world.pass(HOUR)
  return world
}

describe('a sweep', () => {
  it('gives again what was lost, and asks about nobody who is there', async () => {
    const { sync, community } = await withMembers(await syncing())
    community.staffTakes(GOLD, 'a')
    const made = community.calls.length
    expect(await sync.run({ sweep: true })).toMatchObject({ given: 1, taken: 0 })
    expect(community.membersOf(GOLD)).toEqual(['a', 'b'])
    // What one list lacks may be asked about before the other is read.
    const calls = community.calls.slice(made).map(({ call, accountId }) => `${call} ${accountId}`)
    expect(calls.sort()).toEqual(['give a', 'list ', 'list ', 'observe a'])
  })

  it('is waited for by a stop, as is the rest of the run that it belongs to', async () => {
    const { sync, community } = await withMembers(await syncing())
    const { promise: answer, resolve } = Promise.withResolvers<null>()
    community.meet(({ call }) => (call === 'list' ? answer : null))
    const made = community.calls.length
    const ended: string[] = []
    const run = sync.run({ sweep: true }).then(() => ended.push('run'))
    await eventually(() => expect(community.calls.length).toBeGreaterThan(made))
    const stop = sync.stop().then(() => ended.push('stop'))
    expect(sync.isStopping()).toBe(true)
    resolve(null)
    await Promise.all([run, stop])
    expect(ended).toEqual(['run', 'stop'])
  })

  it('takes nothing from those whom staff gave a role, with an account that a customer has or with another', async () => {
    const { sync, community, access } = await withMembers(await syncing())
    community.staffGives(GOLD, 'stranger')
    await access({ customerId: 'cus_a', active: false })
    await sync.run()
    community.staffGives(GOLD, 'a')
    expect(await sync.run({ sweep: true })).toMatchObject({ given: 0, taken: 0 })
    expect(community.membersOf(GOLD)).toEqual(['a', 'b', 'stranger'])
  })

  it('takes from whom was gone at first as soon as they are seen again, and has them not asked about until then', async () => {
    const { sync, community, access } = await withMembers(await syncing())
    await access({ customerId: 'cus_a', active: false })
    community.meet(({ call }) => (call === 'take' ? 'gone' : null))
    expect(await sync.run()).toMatchObject({ taken: 0, unchanged: 1, left: 0 })
    expect((await sync.memberships({ limit: 1 })).items).toMatchObject([
      { accountId: 'a', state: 'settled', desired: false, applied: 'unknown', given: true },
    ])
    community.meet(() => null)
    community.staffTakes(GOLD, 'a')
    expect(await sync.run({ sweep: true, retry: {} })).toMatchObject({ taken: 0, unchanged: 0 })
    community.staffGives(GOLD, 'a')
    expect(await sync.run({ sweep: true })).toMatchObject({ taken: 1 })
    expect(community.membersOf(GOLD)).toEqual(['b'])
    community.staffGives(GOLD, 'a')
    expect(await sync.run({ sweep: true })).toMatchObject({ taken: 0 })
    expect(community.membersOf(GOLD)).toEqual(['a', 'b'])
  })

  it.each(['fails', 'is empty'])('takes nothing where the list of members %s', async (how) => {
    const { sync, community } = await withMembers(await syncing())
    community.meet(({ call }) => (call === 'list' && how === 'fails' ? UNHEARD : null))
    const empty = { ...community, listMembers: async function* () {} }
    sync.reload(PRODUCTS, [how === 'is empty' ? empty : { ...community }])
    expect(await sync.run({ sweep: true })).toMatchObject({ given: 0, taken: 0 })
    expect(community.membersOf(GOLD)).toEqual(['a', 'b'])
  })

  it('still takes back what an empty list does not show', async () => {
    const { sync, community, access } = await withMembers(await syncing())
    await access({ customerId: 'cus_a', active: false })
    sync.reload(PRODUCTS, [{ ...community, listMembers: async function* () {} }])
    expect(await sync.run({ sweep: true })).toMatchObject({ taken: 1 })
    expect(community.membersOf(GOLD)).toEqual(['b'])
  })

  it('asks about each where the platform lists nobody, and shows them as settled meanwhile', async () => {
    const world = await syncing()
    const community = createCommunity({ name: 'telegram', lists: false, clock: world.clock })
    const sync = await world.start({
      platforms: [community],
      products: [{ id: 'pro_gold', targets: [GROUP] }],
    })
    await withMembers({ ...world, sync })
    community.staffTakes(GROUP, 'a')
    community.meet(() => UNHEARD)
    await sync.run({ sweep: true })
    expect((await sync.status()).targets.map(({ memberships }) => memberships.settled)).toEqual([2])
    expect((await sync.plan()).calls).toEqual([])
    community.meet(() => null)
    world.pass(HOUR)
    expect(await sync.run()).toMatchObject({ given: 1, unchanged: 1 })
    expect(community.membersOf(GROUP)).toEqual(['a', 'b'])
  })

  it('finds out by itself that a limit is over, where nothing else is due', async () => {
    const { sync, community, pass, clock } = await withMembers(await syncing())
    const limited = new RetryableError('rate_limited', 'Slower.', {
      scope: 'platform',
      notBefore: clock() + 500,
    })
    community.meet(({ call }) => (call === 'list' ? { error: limited, isMade: false } : null))
    await sync.run({ sweep: true })
    community.staffTakes(GOLD, 'a')
    community.meet(() => null)
    expect(await sync.run({ sweep: true })).toMatchObject({ given: 0 })
    pass(HOUR)
    expect(await sync.run({ sweep: true })).toMatchObject({ given: 1 })
    expect((await sync.status()).platforms).toMatchObject([{ platform: 'discord', state: 'ok' }])
  })

  it('gives what was lost again after a retry, though it could not be asked about at first', async () => {
    const { sync, community, pass, clock } = await withMembers(await syncing())
    community.staffTakes(GOLD, 'a')
    const limited = new RetryableError('rate_limited', 'Slower.', {
      scope: 'platform',
      notBefore: clock() + 500,
    })
    community.meet(({ call }) => (call === 'observe' ? { error: limited, isMade: false } : null))
    expect(await sync.run({ sweep: true })).toMatchObject({ failed: 1 })
    community.meet(() => null)
    pass(HOUR)
    expect(await sync.run({ retry: {} })).toMatchObject({ given: 1 })
    expect(community.membersOf(GOLD)).toEqual(['a', 'b'])
  })

  it('is told with its time, and none is made while sync is paused', async () => {
    const { sync, community, clock } = await withMembers(await syncing())
    await sync.sweep()
    expect(await sync.status()).toMatchObject({ sweptAt: clock() })
    await sync.pause()
    const made = community.calls.length
    await sync.sweep()
    expect(community.calls.length).toBe(made)
  })

  it('forgets after a day those who have been removed', async () => {
    const { sync, access, pass } = await withMembers(await syncing())
    await access({ customerId: 'cus_a', active: false })
    await sync.run()
    await sync.sweep()
    expect((await sync.memberships({ limit: 10 })).items).toHaveLength(2)
    pass(24 * HOUR + 1)
    await sync.sweep()
    expect((await sync.memberships({ limit: 10 })).items).toMatchObject([{ accountId: 'b' }])
  })

  it('forgets after ninety days those who were gone', async () => {
    const { sync, community, access, pass } = await withMembers(await syncing())
    await access({ customerId: 'cus_a', active: false })
    community.meet(({ call }) => (call === 'take' ? 'gone' : null))
    await sync.run()
    community.staffTakes(GOLD, 'a')
    pass(90 * 24 * HOUR)
    await sync.sweep()
    expect((await sync.memberships({ limit: 10 })).items).toHaveLength(2)
    pass(1)
    await sync.sweep()
    expect((await sync.memberships({ limit: 10 })).items).toMatchObject([{ accountId: 'b' }])
  })
})

describe('an account that asks to become a member', () => {
  it('may where access says so, however new it is, and is taken back when that ends', async () => {
    const { sync, community, access, link } = await syncing()
    await link('cus_a', 'a')
    await access({ customerId: 'cus_a', active: true })
    expect(await sync.accountAsked(GOLD, 'a')).toBe('approve')
    community.staffGives(GOLD, 'a')
    await sync.run()
    await access({ customerId: 'cus_a', active: false })
    await sync.run()
    expect(community.membersOf(GOLD)).toEqual([])
  })

  it('may not without access, or in another environment', async () => {
    const { sync, access, link } = await syncing()
    await link('cus_a', 'a')
    expect(await sync.accountAsked(GOLD, 'a')).toBe('decline')
    await access({ customerId: 'cus_a', active: true })
    expect(await sync.accountAsked({ ...GOLD, environment: 'sandbox' }, 'a')).toBe('decline')
    expect(await sync.accountAsked(GOLD, 'b')).toBe('decline')
  })
})

it('a check asks about every configured target', async () => {
  const { start } = await syncing()
  const sync = await start({ products: [...PRODUCTS, { id: 'pro_group', targets: [GROUP] }] })
  expect(await sync.check()).toEqual([
    { about: 'discord:1:10', isFine: true, message: 'It is there.' },
    { about: 'discord:1:20', isFine: true, message: 'It is there.' },
  ])
  expect((await sync.status()).platforms).toMatchObject([
    { platform: 'discord', state: 'ok' },
    { platform: 'telegram', state: 'stopped', reason: { code: 'not_configured' } },
  ])
})
