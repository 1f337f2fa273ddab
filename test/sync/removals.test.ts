import { describe, expect, it } from 'vitest'
import { RetryableError } from '../../src/sync/platform.js'
import { GOLD, HOUR, PRODUCTS, SILVER, type Syncing, syncing } from './syncing.js'

const BOUND = { removals: () => ({ atMost: 2, percent: 10 }) }

/** So many members, each by a customer of their own, of whom two may be removed in an hour, or one in ten. */
async function bounded(count = 10): Promise<Syncing> {
  const world = await syncing({ deps: BOUND })
  for (const id of ids(count)) {
    await world.link(`cus_${id}`, id)
    await world.access({ customerId: `cus_${id}`, active: true })
  }
  await world.sync.run()
  return world
}

function ids(count: number, from = 10): readonly string[] {
  return Array.from({ length: count }, (_, i) => String(from + i))
}

function ended(accountIds: readonly string[]) {
  return accountIds.map((id) => ({ customerId: `cus_${id}`, active: false }))
}

describe('removals beyond the bound', () => {
  it('wait for an operator, who is told in the plan, in the status and once in the log, while gives go on', async () => {
    const { sync, community, access, link, logged } = await bounded()
    await access(...ended(ids(3)))
    await link('cus_90', '90')
    await access({ customerId: 'cus_90', active: true })
    expect(await sync.run()).toMatchObject({ given: 1, taken: 0, unconfirmed: 3 })
    await sync.run()
    expect(community.membersOf(GOLD)).toHaveLength(11)
    expect(await sync.plan()).toMatchObject({
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      calls: ids(3).map((accountId) => ({ accountId, action: 'take', needsConfirmation: true })),
    })
    const status = await sync.status()
    expect(status).toMatchObject({ unconfirmed: 3 })
    expect(status.targets[0]?.memberships).toEqual({
      settled: 8,
      due: 0,
      retrying: 0,
      waiting: 0,
      parked: 0,
      unconfirmed: 3,
    })
    const page = await sync.memberships({ state: 'unconfirmed', limit: 2 })
    expect(page.items.map(({ accountId, state }) => [accountId, state])).toEqual([
      ['10', 'unconfirmed'],
      ['11', 'unconfirmed'],
    ])
    expect(
      (await sync.memberships({ state: 'unconfirmed', limit: 2, after: page.next ?? never() })).items,
    ).toHaveLength(1)
    expect(logged.filter(({ msg }) => String(msg).includes('wait for an operator'))).toHaveLength(1)
  })

  it('are made once they are confirmed by the hash of their plan, and no others with them', async () => {
    const { sync, community, access } = await bounded()
    await access(...ended(ids(3)))
    await sync.run()
    const { hash } = await sync.plan()
    expect(await sync.run({ confirm: hash ?? '' })).toMatchObject({ taken: 3, unconfirmed: 0 })
    expect(community.membersOf(GOLD)).toEqual(ids(7, 13))
  })

  it('of one environment are confirmed by its own plan, and leave the other one’s alone', async () => {
    const sandbox = { ...GOLD, roleId: '11', environment: 'sandbox' } as const
    const world = await syncing({
      deps: { ...BOUND, products: [{ id: 'pro_gold', targets: [GOLD, sandbox] }] },
    })
    const { sync, community, access, link } = world
    for (const environment of ['live', 'sandbox'] as const) {
      for (const id of ids(10)) {
        await link(`cus_${id}`, id, environment)
        await access({ customerId: `cus_${id}`, active: true, environment })
      }
      await sync.run()
      await access(...ended(ids(3)).map((one) => ({ ...one, environment })))
      await sync.run()
    }
    const { hash, calls } = await sync.plan(['sandbox'])
    expect(calls.map(({ environment }) => environment)).toEqual(Array(3).fill('sandbox'))
    await expect(sync.run({ environments: ['live'], confirm: hash ?? '' })).rejects.toMatchObject({
      code: 'plan_changed',
    })
    expect(await sync.run({ confirm: hash ?? '' })).toMatchObject({ taken: 3, unconfirmed: 3 })
    expect(community.membersOf(sandbox)).toEqual(ids(7, 13))
    expect(community.membersOf(GOLD)).toHaveLength(10)
  })

  it.each(['', 'x', '0'.repeat(64)])('are not made for another hash, such as %j', async (confirm) => {
    const { sync, community, access } = await bounded()
    await access(...ended(ids(3)))
    await expect(sync.run({ confirm })).rejects.toMatchObject({ code: 'plan_changed' })
    expect(community.membersOf(GOLD)).toHaveLength(10)
  })

  it('are not made by a hash from before another one came to them', async () => {
    const { sync, community, access } = await bounded()
    await access(...ended(ids(3)))
    await sync.run()
    const { hash } = await sync.plan()
    await access(...ended(ids(4)))
    await expect(sync.run({ confirm: hash ?? '' })).rejects.toMatchObject({ code: 'plan_changed' })
    expect(community.membersOf(GOLD)).toHaveLength(10)
  })

  it('lose their confirmation when access comes back before they are made', async () => {
    const { sync, community, access, pass } = await bounded()
    await access(...ended(ids(3)))
    await sync.run()
    const down = new RetryableError('unreachable', 'No answer.')
    community.meet(() => ({ error: down, isMade: false }))
    await sync.run({ confirm: (await sync.plan()).hash ?? '' })
    community.meet(() => null)
    await access(...ids(3).map((id) => ({ customerId: `cus_${id}`, active: true })))
    await sync.run()
    await access(...ended(ids(3)))
    pass(HOUR)
    expect(await sync.run()).toMatchObject({ taken: 0, unconfirmed: 3 })
    expect(community.membersOf(GOLD)).toHaveLength(10)
  })

  it('count those of the last hour: an empty community does not come by trickling either', async () => {
    const { sync, community, access, pass } = await bounded()
    for (const id of ids(5)) {
      await access(...ended([id]))
      await sync.run()
      pass(HOUR / 10)
    }
    expect(community.membersOf(GOLD)).toHaveLength(8)
    pass(HOUR)
    await access(...ended(ids(1, 19)))
    await sync.run()
    expect(community.membersOf(GOLD)).toHaveLength(8)
    expect((await sync.plan()).calls).toHaveLength(4)
  })

  it('are made by themselves as soon as the hour allows it', async () => {
    const { sync, community, access, pass } = await bounded()
    await access(...ended(ids(2)))
    await sync.run()
    await access(...ended(ids(2, 12)))
    expect(await sync.run()).toMatchObject({ taken: 0, unconfirmed: 2 })
    pass(HOUR + 1)
    expect(await sync.run()).toMatchObject({ taken: 2, unconfirmed: 0 })
    expect(community.membersOf(GOLD)).toEqual(ids(6, 14))
  })

  it('are a small part of a large community', async () => {
    const { sync, access } = await bounded(30)
    await access(...ended(ids(3)))
    expect(await sync.run()).toMatchObject({ taken: 3, unconfirmed: 0 })
    await access(...ended(ids(1, 13)))
    expect(await sync.run()).toMatchObject({ taken: 0, unconfirmed: 1 })
  })

  it('of one target keep nothing of another waiting', async () => {
    const { sync, community, access, link } = await bounded()
    await link('cus_90', '90')
    await access({ customerId: 'cus_90', active: true, productId: 'pro_silver' })
    await sync.run()
    await access(...ended(ids(3)), { customerId: 'cus_90', active: false, productId: 'pro_silver' })
    expect(await sync.run()).toMatchObject({ taken: 1, unconfirmed: 3 })
    expect(community.membersOf(SILVER)).toEqual([])
  })

  it('follow from a mapping that was removed, too', async () => {
    const { sync, community } = await bounded()
    sync.reload(PRODUCTS.slice(2), [community])
    expect(await sync.run()).toMatchObject({ taken: 0, unconfirmed: 10 })
    expect(await sync.run({ confirm: (await sync.plan()).hash ?? '' })).toMatchObject({ taken: 10 })
  })
})

function never(): never {
  throw new Error('There is another page.')
}
