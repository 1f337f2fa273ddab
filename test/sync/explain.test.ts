import { describe, expect, it } from 'vitest'
import { ActionRequiredError, RetryableError } from '../../src/sync/platform.js'
import { GOLD, GROUP, NOON, PRODUCTS, type Syncing, syncing } from './syncing.js'

const TARGET = 'discord:1:10'

const explain = ({ sync }: Pick<Syncing, 'sync'>, customerId: string, productId = 'pro_gold') =>
  sync.explain({ environment: 'live', customerId, productId })

/** cus_1 with this account and access to pro_gold, of which nothing has been done yet. */
async function withMember(options: Parameters<typeof syncing>[0] = {}): Promise<Syncing> {
  const world = await syncing(options)
  await world.sync.run()
  await world.link('cus_1', '42')
  await world.access({ customerId: 'cus_1', active: true })
  return world
}

describe('why a customer has a role, or not', () => {
  it('is first of all whether an account is linked', async () => {
    const world = await syncing()
    const unlinked = {
      ...{ target: TARGET, platform: 'discord', accountId: null, state: 'unlinked' },
      ...{ desiredSince: null, applied: 'unknown', appliedAt: null, lastError: null },
    }
    expect(await explain(world, 'cus_1')).toEqual([
      {
        ...unlinked,
        desired: false,
        next: { action: null, waitsFor: null, at: null },
        sentence: 'No Discord account is linked to cus_1, and none of their access gives the role.',
      },
    ])
    await world.access({ customerId: 'cus_1', active: true })
    expect(await explain(world, 'cus_1')).toEqual([
      {
        ...unlinked,
        desired: true,
        next: { action: 'give', waitsFor: 'customer', at: null },
        sentence: 'No Discord account is linked to cus_1: link one, and it will get the role.',
      },
    ])
    expect(await explain(world, 'cus_1', 'pro_unknown')).toEqual([])
  })

  it('shows the way from the link to the role, and back', async () => {
    const world = await syncing()
    const { sync, link, access, pass } = world
    const linked = { target: TARGET, accountId: '42' }
    await link('cus_1', '42')
    expect(await explain(world, 'cus_1')).toMatchObject([
      {
        ...linked,
        ...{ state: 'settled', desired: false, desiredSince: null },
        sentence: 'Discord account 42 has no access that gives the role.',
      },
    ])
    await sync.pause()
    await access({ customerId: 'cus_1', active: true })
    expect(await explain(world, 'cus_1')).toMatchObject([
      {
        ...linked,
        ...{ state: 'due', desired: true, desiredSince: NOON },
        next: { action: 'give', waitsFor: 'operator', at: null },
        sentence:
          'Discord account 42 should get the role, because of pro_gold. Sync is paused: an operator must run `latchkey sync resume`.',
      },
    ])
    await sync.resume()
    await sync.run()
    expect(await explain(world, 'cus_1')).toMatchObject([
      {
        ...linked,
        ...{ state: 'settled', desired: true, applied: 'member', appliedAt: NOON },
        next: { action: null, waitsFor: null, at: null },
        sentence: 'Discord account 42 has the role, because of pro_gold.',
      },
    ])
    expect(await explain(world, 'cus_1', 'pro_platinum')).toMatchObject([{ ...linked, desired: true }])
    pass(1_000)
    await access({ customerId: 'cus_1', active: false })
    await sync.run()
    expect(await explain(world, 'cus_1')).toMatchObject([
      {
        ...linked,
        ...{ state: 'settled', desired: false, desiredSince: NOON + 1_000, appliedAt: NOON + 1_000 },
        sentence: 'Discord account 42 lost the role at 2026-03-01T12:00:01.000Z.',
      },
    ])
  })

  it('names the last failure, and what is waited for', async () => {
    const world = await withMember()
    const { sync, community, pass } = world
    const missing = new ActionRequiredError('not_there', 'Have them join.', { mayHeal: true })
    community.meet(() => ({ error: missing, isMade: false }))
    await sync.run()
    const lastError = { code: 'not_there', message: 'Have them join.' }
    expect(await explain(world, 'cus_1')).toMatchObject([
      {
        ...{ state: 'waiting', lastError },
        next: { action: 'give', waitsFor: 'customer', at: null },
        sentence: 'Discord account 42 should get the role, because of pro_gold. Have them join.',
      },
    ])
    const notBefore = NOON + 5_000
    const limited = new RetryableError('rate_limited', 'Slower.', { scope: 'platform', notBefore })
    community.meet(() => ({ error: limited, isMade: false }))
    await sync.run({ retry: {} })
    expect(await explain(world, 'cus_1')).toMatchObject([
      {
        state: 'retrying',
        next: { action: 'give', waitsFor: 'platform', at: notBefore },
        sentence:
          'Discord account 42 should get the role, because of pro_gold. The last call failed: Slower. The next call is at 2026-03-01T12:00:05.000Z.',
      },
    ])
    pass(5_000)
    const locked = new ActionRequiredError('locked', 'Unlock it.', { scope: 'target' })
    community.meet(() => ({ error: locked, isMade: false }))
    await sync.run()
    expect(await explain(world, 'cus_1')).toMatchObject([
      {
        next: { action: 'give', waitsFor: 'operator', at: null },
        sentence: 'Discord account 42 should get the role, because of pro_gold. Unlock it.',
      },
    ])
  })

  it('is a removal beyond the bound, which an operator must confirm', async () => {
    const world = await withMember({ deps: { removals: () => ({ atMost: 0, percent: 0 }) } })
    await world.sync.run()
    await world.access({ customerId: 'cus_1', active: false })
    await world.sync.run()
    expect(await explain(world, 'cus_1')).toMatchObject([
      {
        ...{ state: 'unconfirmed', desired: false },
        next: { action: 'take', waitsFor: 'operator', at: null },
        sentence:
          'Discord account 42 should lose the role. Too many removals are due at once, so an operator must confirm them: see `latchkey sync plan`.',
      },
    ])
  })

  it('is the access of somebody who shares the account, or another product', async () => {
    const world = await withMember()
    await world.link('cus_2', '42')
    await world.access({ customerId: 'cus_2', active: true, productId: 'pro_platinum' })
    await world.access({ customerId: 'cus_1', active: false })
    await world.sync.run()
    const [shared] = await explain(world, 'cus_1')
    expect(shared?.sentence).toBe(
      'Discord account 42 has the role, because of another customer with this account.',
    )
    const [other] = await explain(world, 'cus_2')
    expect(other?.sentence).toBe('Discord account 42 has the role, because of pro_platinum.')
  })

  it('says that somebody else gave it, or that the account could not be found', async () => {
    const world = await withMember()
    world.community.staffGives(GOLD, '42')
    await world.sync.run()
    await world.link('cus_2', '43')
    await world.access({ customerId: 'cus_2', active: true })
    await world.sync.run()
    world.community.meet(() => 'gone')
    for (const customerId of ['cus_1', 'cus_2']) await world.access({ customerId, active: false })
    await world.sync.run()
    const sentences = await Promise.all(
      ['cus_1', 'cus_2'].map(async (customerId) => (await explain(world, customerId))[0]?.sentence),
    )
    expect(sentences).toEqual([
      'Discord account 42 has the role, but not by Latchkey, which leaves it alone.',
      'Discord account 43 could not be found when it should lose the role.',
    ])
  })

  it('is the config, where it gives the role no more, or has no bot', async () => {
    const world = await withMember()
    await world.sync.run()
    const products = PRODUCTS.map(({ id }) => ({ id, targets: id === 'pro_gold' ? [GROUP] : [] }))
    const sync = await world.start({ products })
    await sync.run()
    expect(world.community.membersOf(GOLD)).toEqual([])
    expect(await explain({ sync }, 'cus_1')).toMatchObject([
      {
        target: TARGET,
        desired: false,
        sentence: expect.stringContaining('Discord account 42 lost the role at '),
      },
      {
        ...{ target: 'telegram:-100', platform: 'telegram', accountId: '42', desired: true },
        next: { action: 'give', waitsFor: 'operator', at: null },
        sentence:
          'Telegram account 42 should be let into the group, because of pro_gold. No bot is configured for this platform: add it under sync in the config.',
      },
    ])
    expect(await explain({ sync }, 'cus_1', 'pro_platinum')).toEqual([])
  })
})
