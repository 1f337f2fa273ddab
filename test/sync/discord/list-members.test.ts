import { describe, expect, it } from 'vitest'
import { accountId, BOT_ID, discordId, GOLD_ROLE_ID, SILVER_ROLE_ID } from '../../platforms/discord-ids.js'
import { collect, failure, GOLD, startSetting } from './setting.js'

describe('the listing of members', () => {
  it('names everybody with the role, whoever gave it, over all pages', async () => {
    const { discord, platform } = await startSetting()
    const accounts = Array.from({ length: 2_400 }, (_, n) => accountId(n))
    discord.guild.join(...accounts)
    const holders = accounts.filter((_, n) => n % 3 === 0)
    for (const account of holders) discord.guild.give(account, GOLD_ROLE_ID)
    for (const account of accounts) discord.guild.give(account, SILVER_ROLE_ID)

    expect(await collect(platform.listMembers?.(GOLD))).toEqual(holders)
    expect(discord.calls.map(({ route }) => route)).toEqual(['members', 'members', 'members'])
  })

  it.each([998, 1_998])(
    'ends behind a page that was just full, with %i accounts and the first two',
    async (count) => {
      const { discord, platform } = await startSetting()
      const accounts = Array.from({ length: count }, (_, n) => accountId(n))
      discord.guild.join(...accounts)
      for (const account of accounts) discord.guild.give(account, GOLD_ROLE_ID)

      expect(await collect(platform.listMembers?.(GOLD))).toEqual(accounts)
    },
  )

  it('waits out a limit, instead of starting again', async () => {
    const { discord, platform } = await startSetting({ buckets: { members: { limit: 1, perMs: 150 } } })
    const accounts = Array.from({ length: 2_500 }, (_, n) => accountId(n))
    discord.guild.join(...accounts)
    discord.limit({ scope: 'shared', seconds: 0.2, route: 'members' })

    expect(await collect(platform.listMembers?.(GOLD))).toEqual([])
    expect(discord.calls.filter(({ isEarly }) => isEarly)).toEqual([])
    expect(discord.calls.filter(({ status }) => status === 200)).toHaveLength(3)
    // The one that was set, and the first that the library meets before it knows the bucket.
    expect(discord.invalidRequests()).toBeLessThanOrEqual(1)
  })

  it('does not wait out a limit that lasts, nor keep roles from being given meanwhile', async () => {
    const { discord, platform } = await startSetting({ buckets: { members: { limit: 1, perMs: 60_000 } } })
    discord.guild.join(...Array.from({ length: 1_500 }, (_, n) => accountId(n)))

    expect(await failure(collect(platform.listMembers?.(GOLD)))).toMatchObject({
      code: 'rate_limited',
      scope: 'target',
    })
    await platform.give(GOLD, accountId(2))
    expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([accountId(2)])
  })

  it('fails where a page does, instead of ending early', async () => {
    const { discord, platform } = await startSetting()
    const accounts = Array.from({ length: 1_500 }, (_, n) => accountId(n))
    discord.guild.join(...accounts)
    for (const account of accounts) discord.guild.give(account, GOLD_ROLE_ID)
    const seen: string[] = []

    async function list(): Promise<void> {
      for await (const account of platform.listMembers?.(GOLD) ?? []) {
        seen.push(account)
        await discord.setState({ status: 502 })
      }
    }
    expect(await failure(list())).toMatchObject({ name: 'RetryableError', code: 'discord_failed' })
    expect(seen).toHaveLength(998)
  })

  it('asks for the intent where the bot may not list, which concerns nothing else', async () => {
    const { discord, platform } = await startSetting()
    discord.guild.join(accountId(1))
    discord.guild.isListable = false

    const error = await failure(collect(platform.listMembers?.(GOLD)))
    expect(error).toMatchObject({ code: 'members_not_listable', scope: 'call' })
    expect(error.message).toContain('Server Members Intent')
    expect(await platform.observe(GOLD, accountId(1))).toBe('absent')
  })

  it('tells of a guild that is not there', async () => {
    const { platform } = await startSetting()
    const elsewhere = { ...GOLD, guildId: discordId(99) }

    expect(await failure(collect(platform.listMembers?.(elsewhere)))).toMatchObject({
      code: 'guild_not_found',
      scope: 'target',
    })
  })

  it('ends where a page leads no further', async () => {
    const { discord, platform } = await startSetting()
    const page = Array.from({ length: 1_000 }, () => ({ user: { id: BOT_ID }, roles: [] }))
    const headers = { 'content-type': 'application/json' }
    await discord.setState({ answer: { status: 200, headers, body: JSON.stringify(page) } })

    expect(await collect(platform.listMembers?.(GOLD))).toEqual([])
    expect(discord.calls).toHaveLength(2)
  })
})
