import { describe, expect, it } from 'vitest'
import { BotApiError, badRequest } from '../../platforms/telegram-errors.js'
import { BOT_ID, type MemberStatus } from '../../platforms/telegram-group.js'
import { BOT_TOKEN, startTelegram } from '../../platforms/telegram-server.js'
import { type ConnectOptions, connect, GOLD_GROUP, GROUP_ID } from './connected.js'

const USER = 4_200_001
const ACCOUNT = String(USER)

async function inGroup(options: ConnectOptions = {}, groupId = GROUP_ID) {
  const server = await startTelegram()
  const group = server.addGroup(groupId)
  const target = { ...GOLD_GROUP, groupId: String(groupId) }
  const products = [{ id: 'pro_gold', targets: [target] }]
  const telegram = await connect(server, { products, ...options })
  return { server, group, target, telegram, platform: telegram.platform }
}

const methodsOf = ({ calls }: Awaited<ReturnType<typeof startTelegram>>) =>
  calls().map(({ method }) => method)

describe('an account in a group', () => {
  it.each<[MemberStatus, string]>([
    ['member', 'member'],
    ['administrator', 'member'],
    ['creator', 'member'],
    ['left', 'absent'],
    ['kicked', 'absent'],
  ])('that is %s counts as %s', async (status, observation) => {
    const { group, platform } = await inGroup()
    group.setStatus(USER, status)
    expect(await platform.observe(GOLD_GROUP, ACCOUNT)).toBe(observation)
  })

  it.each([
    [true, 'member'],
    [false, 'absent'],
  ])('that is restricted, and %s in it, counts as %s', async (isIn, observation) => {
    const { group, platform } = await inGroup()
    group.setStatus(USER, 'restricted', isIn)
    expect(await platform.observe(GOLD_GROUP, ACCOUNT)).toBe(observation)
  })

  it.each(['PARTICIPANT_ID_INVALID', 'user not found', 'member not found'])(
    'that the bot knows nothing of (%s) counts as absent',
    async (words) => {
      const { server, platform } = await inGroup()
      server.fail({ method: 'getChatMember', answer: badRequest(words) })
      expect(await platform.observe(GOLD_GROUP, ACCOUNT)).toBe('absent')
    },
  )

  it.each(['', 'somebody', '-5', '1.5', '99999999999999999'])(
    'is not looked for under %j, which is no user id',
    async (accountId) => {
      const { server, platform } = await inGroup()
      for (const call of [platform.observe, platform.give, platform.take]) {
        await expect(call(GOLD_GROUP, accountId)).rejects.toMatchObject({
          code: 'account_invalid',
          scope: 'call',
        })
      }
      expect(server.calls()).toEqual([])
    },
  )
})

describe('giving', () => {
  it('approves that they join who have asked to', async () => {
    const { group, platform } = await inGroup()
    group.askToJoin(USER)
    await platform.give(GOLD_GROUP, ACCOUNT)
    expect(group.members()).toEqual([USER])
  })

  it('is done where they are in the group', async () => {
    const { group, platform } = await inGroup()
    group.addByStaff(USER)
    await platform.give(GOLD_GROUP, ACCOUNT)
    expect(group.members()).toEqual([USER])
  })

  it.each(['HIDE_REQUESTER_MISSING', 'USER_ID_INVALID'])(
    'waits for them to ask, which may come by itself (%s)',
    async (words) => {
      const { server, platform } = await inGroup()
      server.fail({ method: 'approveChatJoinRequest', answer: badRequest(words) })
      await expect(platform.give(GOLD_GROUP, ACCOUNT)).rejects.toMatchObject({
        code: 'awaiting_join',
        scope: 'call',
        mayHeal: true,
        message: expect.stringContaining('invite link'),
      })
    },
  )
})

describe('taking', () => {
  it('removes them, and lets them come back', async () => {
    const { server, group, platform } = await inGroup()
    group.addByStaff(USER)
    await platform.take(GOLD_GROUP, ACCOUNT)
    expect(group.statusOf(USER)).toBe('left')
    expect(server.calls('banChatMember')[0]?.payload).toEqual({ chat_id: GROUP_ID, user_id: USER })
    expect(server.calls('unbanChatMember')[0]?.payload).toMatchObject({ only_if_banned: true })
    group.askToJoin(USER)
    expect(group.pending()).toEqual([USER])
  })

  it.each([GROUP_ID, -55])('is done where they have left, recognised or not (group %d)', async (groupId) => {
    const { server, group, target, platform } = await inGroup({}, groupId)
    group.setStatus(USER, 'left')
    await platform.take(target, ACCOUNT)
    server.fail({ method: 'banChatMember', answer: badRequest('PARTICIPANT_ID_INVALID') })
    await platform.take(target, ACCOUNT)
    expect(group.banned()).toEqual([])
  })

  it.each(['PARTICIPANT_ID_INVALID', 'USER_ID_INVALID', 'user not found'])(
    'is not done where Telegram does not recognise a member (%s), and is done by another try',
    async (words) => {
      const { server, group, platform } = await inGroup()
      group.addByStaff(USER)
      server.fail({ method: 'banChatMember', answer: badRequest(words) })
      await expect(platform.take(GOLD_GROUP, ACCOUNT)).rejects.toMatchObject({
        code: 'account_not_recognised',
        scope: 'call',
        mayHeal: true,
      })
      await platform.take(GOLD_GROUP, ACCOUNT)
      expect(group.statusOf(USER)).toBe('left')
    },
  )

  it('is not done where Telegram recognises nobody, asked in two ways', async () => {
    const { server, group, platform } = await inGroup()
    group.addByStaff(USER)
    for (const method of ['banChatMember', 'getChatMember']) {
      server.fail({ method, answer: badRequest('PARTICIPANT_ID_INVALID') })
    }
    await expect(platform.take(GOLD_GROUP, ACCOUNT)).rejects.toMatchObject({ code: 'account_not_recognised' })
  })

  it('removes from a basic group, where there are no bans to lift', async () => {
    const { group, target, platform } = await inGroup({}, -55)
    group.addByStaff(USER)
    await platform.take(target, ACCOUNT)
    expect(group.members()).toEqual([])
  })

  it.each<MemberStatus>(['administrator', 'creator'])('leaves whoever is %s, and says so', async (status) => {
    const { server, group, platform } = await inGroup()
    group.setStatus(USER, status)
    await expect(platform.take(GOLD_GROUP, ACCOUNT)).rejects.toMatchObject({
      code: 'member_is_admin',
      scope: 'call',
    })
    expect(methodsOf(server)).toEqual(['banChatMember'])
  })

  it.each(['close', 500] as const)(
    'that was interrupted between the ban and its end (%s) leaves nobody banned who is given it anew',
    async (fault) => {
      const { server, group, telegram, platform } = await inGroup()
      group.addByStaff(USER)
      const answer = fault === 'close' ? fault : new BotApiError(fault, 'Internal Server Error')
      server.fail({ method: 'unbanChatMember', answer })
      await expect(platform.take(GOLD_GROUP, ACCOUNT)).rejects.toMatchObject({ name: 'RetryableError' })
      expect(group.banned()).toEqual([USER])
      await telegram.close()

      const restarted = await connect(server, { file: telegram.file })
      await expect(restarted.platform.give(GOLD_GROUP, ACCOUNT)).rejects.toMatchObject({
        code: 'awaiting_join',
      })
      expect(group.banned()).toEqual([])
    },
  )

  it('whose answer was lost may be repeated', async () => {
    const { server, group, platform } = await inGroup()
    group.addByStaff(USER)
    server.fail({ method: 'banChatMember', answer: 'close', isDone: true })
    await expect(platform.take(GOLD_GROUP, ACCOUNT)).rejects.toMatchObject({ name: 'RetryableError' })
    await platform.take(GOLD_GROUP, ACCOUNT)
    expect(group.statusOf(USER)).toBe('left')
  })

  it('never lifts a ban that staff gave', async () => {
    const { group, platform } = await inGroup()
    group.addByStaff(USER)
    await platform.take(GOLD_GROUP, ACCOUNT)
    group.setStatus(USER, 'kicked')
    await expect(platform.give(GOLD_GROUP, ACCOUNT)).rejects.toMatchObject({ code: 'awaiting_join' })
    expect(group.banned()).toEqual([USER])
  })

  it('whose repetition is refused still owes the end of its ban', async () => {
    const { server, group, platform } = await inGroup()
    group.addByStaff(USER)
    server.fail({ method: 'unbanChatMember', answer: 'close' })
    await expect(platform.take(GOLD_GROUP, ACCOUNT)).rejects.toMatchObject({ name: 'RetryableError' })
    server.fail({ method: 'banChatMember', answer: badRequest('CHAT_ADMIN_REQUIRED') })
    await expect(platform.take(GOLD_GROUP, ACCOUNT)).rejects.toMatchObject({ code: 'missing_permission' })
    await expect(platform.give(GOLD_GROUP, ACCOUNT)).rejects.toMatchObject({ code: 'awaiting_join' })
    expect(group.banned()).toEqual([])
  })

  it('that was refused owes nobody an end of a ban', async () => {
    const { group, platform } = await inGroup()
    group.setStatus(USER, 'administrator')
    await expect(platform.take(GOLD_GROUP, ACCOUNT)).rejects.toMatchObject({ code: 'member_is_admin' })
    group.setStatus(USER, 'kicked')
    await expect(platform.give(GOLD_GROUP, ACCOUNT)).rejects.toMatchObject({ code: 'awaiting_join' })
    expect(group.banned()).toEqual([USER])
  })
})

describe('a failure', () => {
  it.each([
    [badRequest('chat not found'), 'group_not_found', 'target'],
    [
      new BotApiError(403, 'Forbidden: bot was kicked from the supergroup chat'),
      'bot_not_in_group',
      'target',
    ],
    [
      new BotApiError(403, 'Forbidden: bot is not a member of the supergroup chat'),
      'bot_not_in_group',
      'target',
    ],
    [badRequest('CHAT_ADMIN_REQUIRED'), 'missing_permission', 'target'],
    [badRequest('not enough rights to restrict/unrestrict chat member'), 'missing_permission', 'target'],
    [badRequest('CHANNELS_TOO_MUCH'), 'too_many_groups', 'call'],
    [badRequest('SOMETHING_NEW'), 'refused', 'call'],
    [new BotApiError(401, 'Unauthorized'), 'token_rejected', 'platform'],
    [new BotApiError(404, 'Not Found'), 'token_rejected', 'platform'],
  ] as const)('that somebody must act on: %s', async (answer, code, scope) => {
    const { server, platform } = await inGroup()
    server.fail({ answer, times: 3 })
    for (const call of [platform.observe, platform.give, platform.take]) {
      await expect(call(GOLD_GROUP, ACCOUNT)).rejects.toMatchObject({
        name: 'ActionRequiredError',
        code,
        scope,
      })
    }
  })

  it.each([
    [new BotApiError(500, 'Internal Server Error'), 'telegram_failed'],
    [new BotApiError(502, 'Bad Gateway'), 'telegram_failed'],
    ['close', 'telegram_unreachable'],
    ['redirect', 'telegram_unreachable'],
    ['foreign', 'telegram_unreachable'],
  ] as const)('that may pass: %s', async (answer, code) => {
    const { server, platform } = await inGroup()
    server.fail({ answer, times: 3 })
    for (const call of [platform.observe, platform.give, platform.take]) {
      await expect(call(GOLD_GROUP, ACCOUNT)).rejects.toMatchObject({ name: 'RetryableError', code })
    }
    // No redirect is followed, which would carry the token along.
    expect(server.calls()).toHaveLength(3)
  })

  it('is told where nobody listens', async () => {
    const { server, platform } = await inGroup()
    await server.stop()
    await expect(platform.observe(GOLD_GROUP, ACCOUNT)).rejects.toMatchObject({
      name: 'RetryableError',
      code: 'telegram_unreachable',
    })
  })

  it('never shows the token, whatever is answered', async () => {
    const { server, platform } = await inGroup()
    const answers = [
      'close',
      'redirect',
      badRequest(`no such thing: /bot${BOT_TOKEN}/getChatMember`),
      new BotApiError(500, `failed at /bot${BOT_TOKEN}/getChatMember`),
      new BotApiError(401, 'Unauthorized'),
    ] as const
    for (const answer of answers) {
      server.fail({ answer })
      const error: unknown = await platform.observe(GOLD_GROUP, ACCOUNT).catch((failure: unknown) => failure)
      expect(error).toBeInstanceOf(Error)
      const { name, message, stack, ...fields } = error as Error
      const told = JSON.stringify({ name, message, stack, ...fields, cause: String((error as Error).cause) })
      expect(told).not.toContain(BOT_TOKEN.split(':')[1])
    }
  })
})

describe('a limit', () => {
  it('keeps every call back until it has passed', async () => {
    let now = Date.parse('2026-03-01T12:00:00.000Z')
    const { server, group, platform } = await inGroup({ clock: () => now })
    group.addByStaff(USER)
    server.fail({ answer: new BotApiError(429, 'Too Many Requests: retry after 7', { retry_after: 7 }) })
    const limited = {
      name: 'RetryableError',
      code: 'rate_limited',
      scope: 'platform',
      notBefore: now + 7_000,
    }
    await expect(platform.observe(GOLD_GROUP, ACCOUNT)).rejects.toMatchObject(limited)
    now += 6_999
    await expect(platform.observe(GOLD_GROUP, ACCOUNT)).rejects.toMatchObject(limited)
    expect(server.calls()).toHaveLength(1)
    now += 1
    expect(await platform.observe(GOLD_GROUP, ACCOUNT)).toBe('member')
    expect(server.calls()).toHaveLength(2)
  })
})

describe('a wait', () => {
  it.each([
    [1e300, 86_400],
    [86_401, 86_400],
    [-5, 5],
    ['soon', 5],
    [0.5, 1],
  ])('of %j seconds is taken for one of %d', async (told, taken) => {
    const now = Date.parse('2026-03-01T12:00:00.000Z')
    const { server, platform } = await inGroup({ clock: () => now })
    const parameters = { retry_after: told as number }
    server.fail({ answer: new BotApiError(429, 'Too Many Requests', parameters) })
    await expect(platform.observe(GOLD_GROUP, ACCOUNT)).rejects.toMatchObject({
      code: 'rate_limited',
      notBefore: now + taken * 1_000,
    })
  })
})

describe('a group that becomes a supergroup', () => {
  it('is followed, and still after a restart', async () => {
    const { server, group, target, telegram, platform } = await inGroup({}, -55)
    group.addByStaff(USER)
    group.upgrade()
    expect(await platform.observe(target, ACCOUNT)).toBe('member')
    await telegram.close()

    const restarted = await connect(server, { file: telegram.file })
    await restarted.platform.take(target, ACCOUNT)
    expect(group.members()).toEqual([])
    expect(server.calls('getChatMember').map(({ payload }) => payload.chat_id)).toEqual([-55, group.id])
    expect(server.calls('banChatMember').map(({ payload }) => payload.chat_id)).toEqual([group.id])
  })

  it('is followed once more if it moves again', async () => {
    const { group, target, platform } = await inGroup({}, -55)
    group.addByStaff(USER)
    group.upgrade()
    await platform.observe(target, ACCOUNT)
    group.upgrade()
    expect(await platform.observe(target, ACCOUNT)).toBe('member')
  })
})

describe('a check', () => {
  const GOLD = 'telegram:-1001234567890'

  it('finds in order what is', async () => {
    const { platform } = await inGroup()
    expect(await platform.check([GOLD_GROUP])).toEqual([
      { about: 'telegram', isFine: true, message: 'The bot is @latchkey_test_bot.' },
      { about: GOLD, isFine: true, message: 'The bot may let people into Gold, and remove them.' },
      { about: 'telegram:updates', isFine: true, message: 'Updates are fetched.' },
    ])
  })

  it.each([
    [{ can_invite_users: false }, 'Allow the bot, as an administrator, to invite users.'],
    [{ can_restrict_members: false }, 'Allow the bot, as an administrator, to ban users.'],
    [
      { can_invite_users: false, can_restrict_members: false },
      'Allow the bot, as an administrator, to invite users and to ban users.',
    ],
  ])('tells which rights are missing: %j', async (rights, message) => {
    const { group, platform } = await inGroup()
    Object.assign(group.botRights, rights)
    expect((await platform.check([GOLD_GROUP]))[1]).toEqual({ about: GOLD, isFine: false, message })
  })

  it.each([
    ['member', 'The bot is not an administrator of the group: make it one.'],
    ['kicked', 'The bot is not in the group -1001234567890: add it, as an administrator.'],
  ] as const)('tells that the bot is %s', async (status, message) => {
    const { group, platform } = await inGroup()
    group.setStatus(BOT_ID, status)
    expect((await platform.check([GOLD_GROUP]))[1]).toEqual({ about: GOLD, isFine: false, message })
  })

  it('tells what is no group, or not known', async () => {
    const { server, platform } = await inGroup()
    const unknown = { ...GOLD_GROUP, groupId: '-1009' }
    expect((await platform.check([unknown, GOLD_GROUP])).map(({ isFine }) => isFine)).toEqual([
      true,
      false,
      true,
      true,
    ])
    server.fail({ method: 'getChat', answer: badRequest('CHANNEL_PRIVATE') })
    expect((await platform.check([GOLD_GROUP]))[1]).toMatchObject({ isFine: false })
  })

  it('tells of a token that does not count, and asks no further', async () => {
    const { server, platform } = await inGroup()
    server.revokeToken()
    expect(await platform.check([GOLD_GROUP])).toMatchObject([{ about: 'telegram', isFine: false }])
    expect(methodsOf(server)).toEqual(['getMe'])
  })
})
