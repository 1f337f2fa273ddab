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
