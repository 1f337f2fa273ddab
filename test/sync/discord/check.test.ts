import { describe, expect, it } from 'vitest'
import { ADMINISTRATOR, type LocalGuild } from '../../platforms/discord-guild.js'
import {
  BOT_ID,
  BOT_ROLE_ID,
  discordId,
  GOLD_ROLE_ID,
  GUILD_ID,
  SILVER_ROLE_ID,
} from '../../platforms/discord-ids.js'
import { GOLD, startSetting } from './setting.js'

const ABOUT = `discord:${GUILD_ID}:${GOLD_ROLE_ID}`
const FINE = {
  about: ABOUT,
  isFine: true,
  message: 'The bot may give and take the role "Gold" in "Community".',
}

describe('the check', () => {
  it('finds all in order, and says who the bot is', async () => {
    const { platform } = await startSetting()

    expect(await platform.check([GOLD])).toEqual([
      { about: 'discord', isFine: true, message: `The bot is "latchkey" (${BOT_ID}).` },
      FINE,
    ])
  })

  const fine: readonly [string, (guild: LocalGuild) => void][] = [
    ['an administrator', (guild) => guild.setRole({ id: BOT_ROLE_ID, permissions: ADMINISTRATOR })],
    [
      'allowed by the role of everyone',
      (guild) => {
        guild.setRole({ id: BOT_ROLE_ID, permissions: '0' })
        guild.setRole({ id: GUILD_ID, permissions: String((1n << 28n) | (1n << 50n)) })
      },
    ],
    [
      'the owner, without a role',
      (guild) => {
        guild.ownerId = BOT_ID
        guild.take(BOT_ID, BOT_ROLE_ID)
      },
    ],
    ['level with the role, and older', (guild) => guild.setRole({ id: GOLD_ROLE_ID, position: 9 })],
  ]
  it.each(fine)('is content with a bot that is %s', async (_, change) => {
    const { discord, platform } = await startSetting()
    change(discord.guild)

    expect((await platform.check([GOLD]))[1]).toEqual(FINE)
  })

  const wrong: readonly [string, string, (guild: LocalGuild) => void][] = [
    ['the bot is not in the guild', 'invite it', (guild) => guild.leave(BOT_ID)],
    ['the role is gone', 'correct the roleId', (guild) => guild.deleteRole(GOLD_ROLE_ID)],
    [
      'the bot has no permission',
      'Manage Roles',
      (guild) => guild.setRole({ id: BOT_ROLE_ID, permissions: '0' }),
    ],
    ['the bot lost its role', 'Manage Roles', (guild) => guild.take(BOT_ID, BOT_ROLE_ID)],
    [
      'the role stands above',
      'above the role "Gold"',
      (guild) => guild.setRole({ id: GOLD_ROLE_ID, position: 10 }),
    ],
    [
      'the role is level with a younger one of the bot',
      'above the role "Gold"',
      (guild) => {
        guild.take(BOT_ID, BOT_ROLE_ID)
        guild.setRole({ id: SILVER_ROLE_ID, position: 1, permissions: ADMINISTRATOR })
        guild.give(BOT_ID, SILVER_ROLE_ID)
      },
    ],
    ['the role is managed', 'integration', (guild) => guild.setRole({ id: GOLD_ROLE_ID, managed: true })],
  ]
  it.each(wrong)('says what to do where %s', async (_, remedy, change) => {
    const { discord, platform } = await startSetting()
    change(discord.guild)

    expect((await platform.check([GOLD]))[1]).toEqual({
      about: ABOUT,
      isFine: false,
      message: expect.stringContaining(remedy),
    })
  })

  it('refuses the role that everybody has', async () => {
    const { platform } = await startSetting()

    const findings = await platform.check([{ ...GOLD, roleId: GUILD_ID }])
    expect(findings[1]).toMatchObject({ isFine: false, message: expect.stringContaining('Everybody') })
  })

  it('goes on to the other targets where one is wrong', async () => {
    const { platform } = await startSetting()
    const elsewhere = { ...GOLD, guildId: discordId(99) }
    const invalid = { ...GOLD, roleId: 'gold' }

    const findings = await platform.check([elsewhere, invalid, GOLD])
    expect(findings.map(({ isFine }) => isFine)).toEqual([true, false, false, true])
    expect(findings[1]?.message).toContain('check the guildId')
  })

  it('has one finding where the token is refused, or nobody answers', async () => {
    const { discord, platform } = await startSetting()

    discord.setToken('another')
    expect(await platform.check([GOLD])).toEqual([
      { about: 'discord', isFine: false, message: expect.stringContaining('sync.discord.botToken') },
    ])
    await discord.setState('refuse')
    expect(await platform.check([GOLD])).toEqual([
      { about: 'discord', isFine: false, isUnknown: true, message: 'Discord could not be reached.' },
    ])
  })
})
