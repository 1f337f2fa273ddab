import { describe, expect, it } from 'vitest'
import type { Platform } from '../../../src/sync/platform.js'
import { accountId, GOLD_ROLE_ID } from '../../platforms/discord-ids.js'
import { HOUR, syncing } from '../syncing.js'
import { GOLD, startSetting } from './setting.js'

const ADA = accountId(1)

/** A member who has paid and was given the role, on a store and a Discord of their own. */
async function paidMember() {
  const { discord, platform } = await startSetting()
  discord.guild.join(ADA)
  const world = await syncing({
    deps: { platforms: [platform as Platform], products: [{ id: 'pro_gold', targets: [GOLD] }] },
  })
  const { sync, access, link, pass } = world
  await link('cus_ada', ADA)
  await access({ customerId: 'cus_ada', active: true })
  await sync.run()
  expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([ADA])
  return {
    ...discord,
    run: async (active: boolean | null, options = {}) => {
      if (active !== null) await access({ customerId: 'cus_ada', active })
      pass(HOUR)
      return sync.run(options)
    },
    calls: () =>
      discord.calls.filter(({ route }) => route === 'role').map(({ method, status }) => [method, status]),
  }
}

function once(code: number, message: string) {
  const body = JSON.stringify({ code, message })
  return { answer: { status: 404, headers: { 'content-type': 'application/json' }, body } }
}

describe('the role of a member whose access has ended', () => {
  it('is taken from whoever left before it was, and came back with it', async () => {
    const { guild, run, calls } = await paidMember()
    guild.leave(ADA)
    await run(false)
    guild.join(ADA)
    guild.give(ADA, GOLD_ROLE_ID)
    await run(null, { sweep: true })
    expect(guild.holders(GOLD_ROLE_ID)).toEqual([])
    expect(calls()).toEqual([
      ['PUT', 204],
      ['DELETE', 404],
      ['DELETE', 204],
    ])
  })

  it.each([
    [10_007, 'Unknown Member'],
    [10_013, 'Unknown User'],
  ])('is taken after all where Discord has said %i once, %s', async (code, message) => {
    const { guild, run, setState } = await paidMember()
    await setState(once(code, message))
    expect(await run(false)).toMatchObject({ taken: 0, unchanged: 1, left: 0 })
    await setState('up')
    expect(await run(null, { sweep: true })).toMatchObject({ taken: 1 })
    expect(guild.holders(GOLD_ROLE_ID)).toEqual([])
  })

  it('is asked for once only while they stay away', async () => {
    const { guild, run, calls } = await paidMember()
    guild.leave(ADA)
    await run(false)
    for (let i = 0; i < 3; i += 1) await run(null, { sweep: true, retry: {} })
    expect(calls()).toEqual([
      ['PUT', 204],
      ['DELETE', 404],
    ])
  })

  it('stays with whom staff gave it after it was taken, gone before or not', async () => {
    const { guild, run } = await paidMember()
    guild.leave(ADA)
    await run(false)
    guild.join(ADA)
    guild.give(ADA, GOLD_ROLE_ID)
    await run(null, { sweep: true })
    guild.give(ADA, GOLD_ROLE_ID)
    expect(await run(null, { sweep: true })).toMatchObject({ taken: 0 })
    expect(guild.holders(GOLD_ROLE_ID)).toEqual([ADA])
  })

  it('is taken too from whoever came back with it, paid again, and was paid back again', async () => {
    const { guild, run } = await paidMember()
    guild.leave(ADA)
    await run(false)
    guild.join(ADA)
    guild.give(ADA, GOLD_ROLE_ID)
    await run(true)
    await run(false)
    expect(guild.holders(GOLD_ROLE_ID)).toEqual([])
  })
})
