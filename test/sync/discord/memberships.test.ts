import { describe, expect, it } from 'vitest'
import { ActionRequiredError } from '../../../src/sync/platform.js'
import { accountId, GOLD_ROLE_ID, GUILD_ID, SILVER_ROLE_ID } from '../../platforms/discord-ids.js'
import { failure, GOLD, startSetting } from './setting.js'

const ADA = accountId(1)
const BEN = accountId(2)

describe('a role of the community', () => {
  it('is given, seen and taken, with a reason in the audit log', async () => {
    const { discord, platform } = await startSetting()
    discord.guild.join(ADA)

    expect(await platform.observe(GOLD, ADA)).toBe('absent')
    await platform.give(GOLD, ADA)
    expect(await platform.observe(GOLD, ADA)).toBe('member')
    expect(discord.guild.rolesOf(ADA)).toEqual([GOLD_ROLE_ID])
    await platform.take(GOLD, ADA)
    expect(await platform.observe(GOLD, ADA)).toBe('absent')

    const change = { guildId: GUILD_ID, roleId: GOLD_ROLE_ID, accountId: ADA }
    expect(discord.auditLog).toEqual([
      { action: 'give', ...change, reason: 'Latchkey: access began' },
      { action: 'take', ...change, reason: 'Latchkey: access ended' },
    ])
  })

  it('leaves the other roles of the account, and the other accounts, alone', async () => {
    const { discord, platform } = await startSetting()
    discord.guild.join(ADA, BEN)
    discord.guild.give(ADA, SILVER_ROLE_ID)
    discord.guild.give(BEN, GOLD_ROLE_ID)

    await platform.give(GOLD, ADA)
    await platform.take(GOLD, ADA)

    expect(discord.guild.rolesOf(ADA)).toEqual([SILVER_ROLE_ID])
    expect(discord.guild.rolesOf(BEN)).toEqual([GOLD_ROLE_ID])
  })

  it('may be given and taken again and again', async () => {
    const { discord, platform } = await startSetting()
    discord.guild.join(ADA)

    await platform.give(GOLD, ADA)
    await platform.give(GOLD, ADA)
    expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([ADA])
    await platform.take(GOLD, ADA)
    await platform.take(GOLD, ADA)
    expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([])
    expect(discord.auditLog).toHaveLength(2)
  })

  it('may be given again after an answer was lost, whatever became of the call', async () => {
    const { discord, platform } = await startSetting()
    discord.guild.join(ADA)

    await discord.setState('lose-answers')
    expect(await failure(platform.give(GOLD, ADA))).toMatchObject({ code: 'discord_unreachable' })
    expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([ADA])
    await discord.setState('up')
    await platform.give(GOLD, ADA)

    expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([ADA])
    expect(discord.auditLog).toHaveLength(1)
  })

  it('waits for an account to join, and again after it has left', async () => {
    const { discord, platform } = await startSetting()
    const waits = { code: 'member_not_in_guild', scope: 'call', mayHeal: true }

    expect(await failure(platform.observe(GOLD, ADA))).toMatchObject(waits)
    expect(await failure(platform.give(GOLD, ADA))).toMatchObject(waits)
    discord.guild.join(ADA)
    await platform.give(GOLD, ADA)
    discord.guild.leave(ADA)
    expect(await failure(platform.observe(GOLD, ADA))).toMatchObject(waits)
    discord.guild.join(ADA)
    expect(await platform.observe(GOLD, ADA)).toBe('absent')
    await platform.give(GOLD, ADA)

    expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([ADA])
  })

  it('is not there to be taken once the account has left the guild, or Discord', async () => {
    const { discord, platform } = await startSetting()
    discord.guild.join(ADA)
    await platform.give(GOLD, ADA)
    discord.guild.leave(ADA)
    discord.forgetAccount(BEN)

    expect(await platform.take(GOLD, ADA)).toBe('gone')
    expect(await platform.take(GOLD, BEN)).toBe('gone')

    expect(discord.calls.slice(1).map(({ status }) => status)).toEqual([404, 404])
  })

  it('is held by nobody once it was deleted, so that taking it is done', async () => {
    const { discord, platform } = await startSetting()
    discord.guild.join(ADA)
    discord.guild.deleteRole(GOLD_ROLE_ID)

    expect(await platform.take(GOLD, ADA)).toBeUndefined()

    expect(discord.calls).toMatchObject([{ method: 'DELETE', status: 404 }])
  })
})

describe('what is no id', () => {
  it.each([
    '',
    'ada@example.com',
    '../..',
    '1/roles/2',
    '@me',
    '12345',
    '１２３４５６７８９０１２３４５６７８',
    '1'.repeat(21),
  ])('makes no call where %j is linked as the account', async (account) => {
    const { discord, platform } = await startSetting()
    const invalid = { code: 'account_invalid', scope: 'call', mayHeal: false }

    expect(await failure(platform.observe(GOLD, account))).toMatchObject(invalid)
    expect(await failure(platform.give(GOLD, account))).toMatchObject(invalid)
    expect(await failure(platform.take(GOLD, account))).toMatchObject(invalid)
    expect(discord.calls).toEqual([])
  })

  it('does not repeat what was linked, which may be personal', async () => {
    const { platform } = await startSetting()
    const error = await failure(platform.give(GOLD, 'ada@example.com'))
    expect(error).toBeInstanceOf(ActionRequiredError)
    expect(error.message).not.toContain('ada')
  })
})
