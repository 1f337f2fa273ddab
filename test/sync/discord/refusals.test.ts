import { describe, expect, it } from 'vitest'
import {
  accountId,
  BOT_ID,
  BOT_TOKEN,
  discordId,
  GOLD_ROLE_ID,
  GUILD_ID,
} from '../../platforms/discord-ids.js'
import { failure, GOLD, startSetting } from './setting.js'

const ADA = accountId(1)

describe('what Discord refuses', () => {
  it('says that the role stands too high, and what to do about it', async () => {
    const { discord, platform } = await startSetting()
    discord.guild.join(ADA)
    discord.guild.setRole({ id: GOLD_ROLE_ID, position: 20 })

    const tooHigh = {
      code: 'role_too_high',
      scope: 'target',
      message: 'Put the bot\'s own role above the role "Gold" in the list of roles of "Community".',
    }
    expect(await failure(platform.give(GOLD, ADA))).toMatchObject(tooHigh)
    expect(await failure(platform.take(GOLD, ADA))).toMatchObject(tooHigh)
  })

  it('names both possible reasons where it finds out neither', async () => {
    const { discord, platform } = await startSetting()
    discord.guild.join(ADA)
    discord.guild.setRole({ id: GOLD_ROLE_ID, position: 20 })
    discord.limit({ scope: 'user', seconds: 20, route: 'guild' })

    const error = await failure(platform.give(GOLD, ADA))
    expect(error).toMatchObject({ code: 'missing_permission', scope: 'target' })
    expect(error.message).toMatch(/Manage Roles.* above /)
  })

  it('asks for the bot to be invited where it has no access', async () => {
    const { discord, platform } = await startSetting()
    discord.guild.leave(BOT_ID)
    const noAccess = { code: 'missing_access', scope: 'target', mayHeal: false }

    expect(await failure(platform.observe(GOLD, ADA))).toMatchObject(noAccess)
    expect(await failure(platform.give(GOLD, ADA))).toMatchObject(noAccess)
    expect(await failure(platform.take(GOLD, ADA))).toMatchObject(noAccess)
  })

  it('tells a guild and a role that are not there from members that are not', async () => {
    const { discord, platform } = await startSetting()
    discord.guild.join(ADA)
    const elsewhere = { ...GOLD, guildId: discordId(99) }
    const withoutRole = { ...GOLD, roleId: discordId(98) }

    expect(await failure(platform.observe(elsewhere, ADA))).toMatchObject({
      code: 'guild_not_found',
      scope: 'target',
    })
    expect(await failure(platform.take(elsewhere, ADA))).toMatchObject({ code: 'guild_not_found' })
    expect(await failure(platform.give(withoutRole, ADA))).toMatchObject({
      code: 'role_not_found',
      scope: 'target',
      message: `The server ${GUILD_ID} has no role ${withoutRole.roleId}: correct the roleId.`,
    })
  })

  it('parks an account that Discord does not know', async () => {
    const { discord, platform } = await startSetting()
    discord.forgetAccount(ADA)

    expect(await failure(platform.observe(GOLD, ADA))).toMatchObject({
      code: 'account_not_found',
      scope: 'call',
      mayHeal: false,
    })
  })

  it.each([
    [
      'with its code and its words, on one line',
      [400, 30_005, 'Maximum number of guild roles\nreached\u001b[31m'],
      { scope: 'call', message: 'Discord refused: Maximum number of guild roles reached [31m (30005)' },
    ],
    [
      'without the bot token, where the answer repeats it',
      [400, 50_035, `Bad header: Bot ${BOT_TOKEN}`],
      { scope: 'call', message: 'Discord refused: Bad header: Bot [token] (50035)' },
    ],
    [
      'for all calls of the target, where it forbids one',
      [403, 60_003, 'Two factor is required for this operation'],
      { scope: 'target', message: 'Discord refused: Two factor is required for this operation (60003)' },
    ],
  ] as const)('is told %s', async (_how, [status, code, message], told) => {
    const { discord, platform } = await startSetting()
    const body = JSON.stringify({ code, message })
    await discord.setState({ answer: { status, headers: { 'content-type': 'application/json' }, body } })
    const refused = { name: 'ActionRequiredError', code: 'refused', ...told }
    expect(await failure(platform.give(GOLD, ADA))).toMatchObject(refused)
  })
})

describe('the bot token', () => {
  it('stops the whole platform where it is refused, and works again once it is accepted', async () => {
    const { discord, platform } = await startSetting()
    discord.guild.join(ADA)
    const rejected = { name: 'ActionRequiredError', code: 'token_rejected', scope: 'platform' }

    discord.setToken('another')
    expect(await failure(platform.give(GOLD, ADA))).toMatchObject(rejected)
    expect(await failure(platform.observe(GOLD, ADA))).toMatchObject(rejected)
    discord.setToken(BOT_TOKEN)
    await platform.give(GOLD, ADA)

    expect(discord.calls.map(({ status }) => status)).toEqual([401, 401, 204])
  })
})
