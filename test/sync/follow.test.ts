import { describe, expect, it } from 'vitest'
import { startChangeLogEpoch } from '../../src/store/changes.js'
import { forgetPerson } from '../../src/store/erasures.js'
import { RetryableError } from '../../src/sync/platform.js'
import { GOLD, HOUR, PRODUCTS, SILVER, type Syncing, syncing } from './syncing.js'

const DOWN = { error: new RetryableError('unreachable', 'It did not answer.'), isMade: false }

/** A customer who has access and an account, and so has been given the role. */
async function withMember(): Promise<Syncing> {
  const world = await syncing()
  await world.link('cus_1', 'a')
  await world.access({ customerId: 'cus_1', active: true })
  await world.sync.run()
  return world
}

describe('a role follows access:', () => {
  it('it is given where access is and an account is linked, and taken back when access ends', async () => {
    const { sync, community, access, link } = await syncing()
    await access({ customerId: 'cus_1', active: true }, { customerId: 'cus_2', active: true })
    await link('cus_1', 'a')
    expect(await sync.run()).toMatchObject({ given: 1, taken: 0, failed: 0 })
    expect(community.membersOf(GOLD)).toEqual(['a'])
    await access({ customerId: 'cus_1', active: false })
    expect(await sync.run()).toMatchObject({ given: 0, taken: 1 })
    expect(community.membersOf(GOLD)).toEqual([])
  })

  it('nothing is called where nothing changed', async () => {
    const { sync, community, access, link } = await withMember()
    const made = community.calls.length
    await access({ customerId: 'cus_1', active: true })
    await link('cus_1', 'a')
    expect(await sync.run()).toMatchObject({ given: 0, taken: 0, unchanged: 0 })
    expect(community.calls.length).toBe(made)
  })

  it('while two products stand behind one role, it stays until both have ended', async () => {
    const { sync, community, access, link } = await syncing()
    await link('cus_1', 'a')
    await access(
      { customerId: 'cus_1', active: true },
      { customerId: 'cus_1', active: true, productId: 'pro_platinum' },
    )
    await sync.run()
    await access({ customerId: 'cus_1', active: false })
    await sync.run()
    expect(community.membersOf(GOLD)).toEqual(['a'])
    await access({ customerId: 'cus_1', active: false, productId: 'pro_platinum' })
    await sync.run()
    expect(community.membersOf(GOLD)).toEqual([])
  })

  it('while two customers share one account, it stays until both have ended', async () => {
    const { sync, community, access, link } = await syncing()
    await link('cus_1', 'a')
    await link('cus_2', 'a')
    await access({ customerId: 'cus_1', active: true }, { customerId: 'cus_2', active: true })
    await sync.run()
    for (const customerId of ['cus_1', 'cus_2']) {
      const { items } = await sync.memberships({ customerId, limit: 10 })
      expect(items).toMatchObject([{ accountId: 'a', state: 'settled' }])
    }
    await access({ customerId: 'cus_1', active: false })
    await sync.run()
    expect(community.membersOf(GOLD)).toEqual(['a'])
    await link('cus_2', 'b')
    await sync.run()
    expect(community.membersOf(GOLD)).toEqual(['b'])
  })

  it('relinked to another account it moves there, and unlinked it goes', async () => {
    const { sync, community, link } = await withMember()
    await link('cus_1', 'b')
    expect(await sync.run()).toMatchObject({ given: 1, taken: 1 })
    expect(community.membersOf(GOLD)).toEqual(['b'])
    await link('cus_1', null)
    await sync.run()
    expect(community.membersOf(GOLD)).toEqual([])
  })

  it('it goes with the accounts of whoever is erased, also where another customer shares one', async () => {
    const { sync, db, community, access, link } = await withMember()
    await link('cus_2', 'a')
    await access({ customerId: 'cus_2', active: true })
    await access({ customerId: 'cus_2', active: false })
    await sync.run()
    await db.transaction().execute((trx) => forgetPerson(trx, 'live', 'cus_1'))
    await sync.run()
    expect(community.membersOf(GOLD)).toEqual([])
  })

  it('a role that staff gave is neither given again nor ever taken', async () => {
    const { sync, community, access, link } = await syncing()
    community.staffGives(GOLD, 'a')
    await link('cus_1', 'a')
    await access({ customerId: 'cus_1', active: true })
    expect(await sync.run()).toMatchObject({ given: 0, unchanged: 1 })
    await access({ customerId: 'cus_1', active: false })
    await sync.run()
    expect(community.membersOf(GOLD)).toEqual(['a'])
    expect(community.calls.map(({ call }) => call)).toEqual(['observe'])
  })

  it('given by staff after it was taken back, it is left alone too', async () => {
    const { sync, community, access } = await withMember()
    await access({ customerId: 'cus_1', active: false })
    await sync.run()
    community.staffGives(GOLD, 'a')
    await access({ customerId: 'cus_1', active: true })
    await sync.run()
    await access({ customerId: 'cus_1', active: false })
    await sync.run({ sweep: true })
    expect(community.membersOf(GOLD)).toEqual(['a'])
  })

  it('sandbox access drives no live target, and a sandbox target no live access', async () => {
    const sandbox = { ...SILVER, environment: 'sandbox' } as const
    const { start, community, access, link } = await syncing()
    const sync = await start({ products: [{ id: 'pro_gold', targets: [GOLD, sandbox] }] })
    await link('cus_1', 'a', 'sandbox')
    await access({ customerId: 'cus_1', active: true, environment: 'sandbox' })
    await link('cus_2', 'b')
    await access({ customerId: 'cus_2', active: true })
    await sync.run()
    expect(community.membersOf(GOLD)).toEqual(['b'])
    expect(community.membersOf(sandbox)).toEqual(['a'])
  })
})

describe('while the platform is down', () => {
  it('a call that was made though nobody answered is made again, and not forgotten', async () => {
    const { sync, community, access, link, pass } = await syncing()
    await link('cus_1', 'a')
    await access({ customerId: 'cus_1', active: true })
    community.meet(({ call }) => (call === 'give' ? { ...DOWN, isMade: true } : null))
    expect(await sync.run()).toMatchObject({ given: 0, failed: 1 })
    await access({ customerId: 'cus_1', active: false })
    community.meet(() => null)
    await sync.run()
    pass(HOUR)
    expect(await sync.run()).toMatchObject({ taken: 1 })
    expect(community.membersOf(GOLD)).toEqual([])
  })

  it('what is carried out only after nobody had answered is taken back all the same', async () => {
    const { sync, community, access, link, pass } = await syncing()
    await link('cus_1', 'a')
    await access({ customerId: 'cus_1', active: true })
    community.meet(({ call }) => (call === 'give' ? { ...DOWN, isMade: false } : null))
    await sync.run()
    await access({ customerId: 'cus_1', active: false })
    community.meet(() => null)
    await sync.run()
    pass(29_999)
    expect(await sync.run()).toMatchObject({ taken: 0 })
    // The call is carried out only now, which looks as if staff had given it.
    community.staffGives(GOLD, 'a')
    pass(1)
    expect(await sync.run()).toMatchObject({ taken: 1 })
    expect(community.membersOf(GOLD)).toEqual([])
  })
})

describe('another configuration', () => {
  it('takes back what no product is mapped to any more, and gives what is', async () => {
    const { sync, community } = await withMember()
    sync.reload([{ id: 'pro_gold', targets: [SILVER] }], [community])
    await sync.run()
    expect(community.membersOf(GOLD)).toEqual([])
    expect(community.membersOf(SILVER)).toEqual(['a'])
  })

  it('is noticed after a restart, and the same one is not', async () => {
    const { start, community } = await withMember()
    const made = community.calls.length
    await (await start()).run()
    expect(community.calls.length).toBe(made)
    await (await start({ products: PRODUCTS.slice(1) })).run()
    expect(community.membersOf(GOLD)).toEqual([])
  })

  it('or another change log, as after a restore, has everybody looked at, and nothing given that is there', async () => {
    const { start, db, community } = await withMember()
    await db.deleteFrom('memberships').execute()
    await db.transaction().execute(startChangeLogEpoch)
    expect(await (await start()).run()).toMatchObject({ given: 0, unchanged: 1 })
    expect(community.membersOf(GOLD)).toEqual(['a'])
  })
})
