import { describe, expect, it } from 'vitest'
import { accountId, discordId, GOLD_ROLE_ID } from '../../platforms/discord-ids.js'
import { failure, GOLD, startSetting } from './setting.js'

const ADA = accountId(1)
const NOW = Date.UTC(2026, 0, 5)
const ELSEWHERE = { ...GOLD, guildId: discordId(20) }

/** Accounts in the guild, as many as given. */
async function withMembers(count: number, options: Parameters<typeof startSetting>[0] = {}) {
  const setting = await startSetting(options)
  const accounts = Array.from({ length: count }, (_, n) => accountId(n))
  setting.discord.guild.join(...accounts)
  return { ...setting, accounts }
}

describe('a limit', () => {
  it.each(['user', 'shared'] as const)('of scope %s is of that kind of call in that guild', async (scope) => {
    const { discord, platform } = await withMembers(2, { clock: () => NOW })
    discord.addGuild(ELSEWHERE.guildId).join(ADA)
    discord.limit({ scope, seconds: 5.5, route: 'role' })

    const error = await failure(platform.give(GOLD, ADA))
    expect(error).toMatchObject({
      name: 'RetryableError',
      code: 'rate_limited',
      scope: 'target',
      isRefused: true,
    })
    expect('notBefore' in error && error.notBefore).toBeGreaterThanOrEqual(NOW + 5_500)
    await platform.give(ELSEWHERE, ADA)
    expect(await platform.observe(GOLD, ADA)).toBe('absent')
    expect(discord.calls.map(({ status }) => status)).toEqual([429, 204, 200])
    expect(discord.invalidRequests()).toBe(scope === 'shared' ? 0 : 1)
  })

  it('on all calls holds the whole platform', async () => {
    const { discord, platform } = await withMembers(2)
    discord.addGuild(ELSEWHERE.guildId).join(ADA)
    discord.limit({ scope: 'global', seconds: 60 })

    const limited = { name: 'RetryableError', code: 'rate_limited', scope: 'platform' }
    expect(await failure(platform.observe(GOLD, ADA))).toMatchObject(limited)
    expect(await failure(platform.give(ELSEWHERE, ADA))).toMatchObject(limited)
    expect(discord.calls).toHaveLength(1)
  })

  it('that is over soon is waited for by all calls of its kind, none of them early', async () => {
    const { discord, platform, accounts } = await withMembers(8)
    discord.limit({ scope: 'shared', seconds: 0.3, route: 'role' })

    await Promise.all(accounts.map((account) => platform.give(GOLD, account)))

    expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual(accounts)
    expect(discord.calls.filter(({ isEarly }) => isEarly)).toEqual([])
    expect(discord.calls.map(({ status }) => status)).toEqual([429, ...accounts.map(() => 204)])
  })

  it('that the headers announce is kept by many calls at once', async () => {
    const { discord, platform, accounts } = await withMembers(20, {
      buckets: { role: { limit: 5, perMs: 200 } },
    })

    await Promise.all(accounts.map((account) => platform.give(GOLD, account)))

    expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual(accounts)
    expect(discord.calls.filter(({ isEarly }) => isEarly)).toEqual([])
    expect(discord.invalidRequests()).toBeLessThanOrEqual(1)
  })

  it('of the network before Discord holds the whole platform for a minute', async () => {
    const { discord, platform } = await startSetting({ clock: () => NOW })
    discord.limit({ scope: 'network', seconds: 1 })

    expect(await failure(platform.give(GOLD, ADA))).toMatchObject({
      code: 'rate_limited',
      scope: 'platform',
      notBefore: NOW + 60_000,
    })
  })

  it('of an age is taken for a day', async () => {
    const { discord, platform } = await startSetting({ clock: () => NOW })
    await discord.setState({ answer: { status: 429, headers: { 'retry-after': '1e300' } } })
    expect(await failure(platform.give(GOLD, ADA))).toMatchObject({
      code: 'rate_limited',
      notBefore: Date.UTC(2026, 0, 6),
    })
  })
})
