import { describe, expect, it } from 'vitest'
import { unavailable } from '../../../src/store/engine.js'
import { LINKED, NOT_LINKED } from '../../../src/sync/telegram/handle-update.js'
import { BotApiError } from '../../platforms/telegram-errors.js'
import type { LocalGroup } from '../../platforms/telegram-group.js'
import { BOT_TOKEN, type LocalTelegram, startTelegram } from '../../platforms/telegram-server.js'
import { eventually } from '../../setup/eventually.js'
import { type ConnectOptions, connect, GROUP_ID, grantGold } from './connected.js'

const USER = 4_200_001
const OTHER = 4_200_002
const CUSTOMER = { environment: 'live', customerId: 'cus_1' } as const

/** Updates are fetched from the server; whoever is told to may join. */
async function polling(options: ConnectOptions = {}) {
  const server = await startTelegram()
  const group = server.addGroup(GROUP_ID)
  const telegram = await connect(server, options)
  telegram.start()
  return { server, group, telegram }
}

/** Everything that happened so far has been handled, and Telegram knows. */
async function caughtUp(server: LocalTelegram): Promise<void> {
  await eventually(() => expect(server.updates.waiting()).toEqual([]))
}

describe('somebody who asks to join', () => {
  it('is left to the administrators of a group that follows nothing', async () => {
    const { server, telegram } = await polling()
    const other = server.addGroup(-1009)
    other.askToJoin(USER)
    await caughtUp(server)
    expect(telegram.asked).toEqual([])
    expect(other.pending()).toEqual([USER])
  })

  it('is asked for in the group that has moved since', async () => {
    const groupId = String(-55)
    const target = { adapter: 'telegram', groupId, environment: 'live' } as const
    const { server, telegram } = await polling({ products: [{ id: 'pro_gold', targets: [target] }] })
    const group = server.addGroup(-55)
    group.upgrade()
    group.askToJoin(USER)
    await caughtUp(server)
    expect(telegram.asked).toEqual([String(USER)])
    expect(group.pending()).toEqual([])
    expect(server.calls('declineChatJoinRequest').map(({ payload }) => payload.chat_id)).toEqual([group.id])
  })

  it('waits while sync is paused, since what is known may be old', async () => {
    const { server, group, telegram } = await polling()
    await telegram.pause()
    group.askToJoin(USER)
    await caughtUp(server)
    expect(telegram.asked).toEqual([String(USER)])
    expect(group.pending()).toEqual([USER])
  })

  it('may have been let in or turned away by somebody else already', async () => {
    const { server, group, telegram } = await polling()
    server.fail({ method: 'declineChatJoinRequest', answer: 'close', isDone: true })
    group.askToJoin(USER)
    await caughtUp(server)
    expect(telegram.asked).toEqual([String(USER), String(USER)])
    expect(telegram.logged()).not.toContain('skipped a Telegram update')
  })

  it('is passed over where the bot may not decline, and the log says what to do', async () => {
    const { server, group, telegram } = await polling()
    group.botRights.can_invite_users = false
    group.askToJoin(USER)
    await caughtUp(server)
    expect(telegram.logged()).toContain('make it an administrator who may invite')
  })
})

describe('an invite', () => {
  async function invited(options: ConnectOptions = {}) {
    const { server, group, telegram } = await polling({ accountAsked: async () => 'approve', ...options })
    await grantGold(telegram, 'cus_1')
    const invites = await telegram.invite({ ...CUSTOMER, productId: null, groupId: null })
    return { server, group, telegram, invites, url: invites[0]?.url ?? '' }
  }

  async function join(server: LocalTelegram, group: LocalGroup, userId: number, url: string): Promise<void> {
    group.askToJoin(userId, url)
    await caughtUp(server)
    group.asBot.approve(userId)
    await caughtUp(server)
  }

  it('is a link by which one asks, for a day', async () => {
    const now = Date.parse('2030-03-01T12:00:00.000Z')
    const { server, invites } = await invited({ clock: () => now })
    expect(invites).toMatchObject([{ groupId: String(GROUP_ID), expiresAt: now + 86_400_000 }])
    expect(server.calls('createChatInviteLink')[0]?.payload).toEqual({
      chat_id: GROUP_ID,
      name: 'Latchkey',
      creates_join_request: true,
      expire_date: (now + 86_400_000) / 1_000,
    })
  })

  it('links nobody else, used once', async () => {
    const { server, group, telegram, url } = await invited()
    group.askToJoin(USER, url)
    await caughtUp(server)
    group.askToJoin(OTHER, url)
    await caughtUp(server)
    expect(await telegram.accountOf('cus_1')).toBe(String(USER))
    expect(telegram.asked).toEqual([String(USER), String(OTHER)])
  })

  it('links nobody to a customer who has an account', async () => {
    const { server, group, telegram, url } = await invited()
    const { token } = await telegram.linkToken(CUSTOMER)
    server.say(OTHER, `/start ${token}`)
    await caughtUp(server)
    group.askToJoin(USER, url)
    await caughtUp(server)
    expect(await telegram.accountOf('cus_1')).toBe(String(OTHER))
  })

  it('that somebody else made is not revoked, and links nobody', async () => {
    const { server, group, telegram } = await invited()
    const link = { name: undefined, creates_join_request: true, expire_date: undefined }
    const { invite_link: url } = group.asBot.createLink(link)
    await join(server, group, USER, url)
    expect(await telegram.accountOf('cus_1')).toBeUndefined()
    expect(group.links.get(url)?.is_revoked).toBe(false)
  })

  it('of an erased customer leads to nobody', async () => {
    const { server, group, telegram, url } = await invited()
    await telegram.forget('cus_1')
    group.askToJoin(USER, url)
    await caughtUp(server)
    expect(await telegram.accountOf('cus_1')).toBeUndefined()
  })

  it('is made only for access that opens a group', async () => {
    const { server, telegram } = await invited()
    const ask = (asked: { customerId?: string; productId?: string; groupId?: string }) =>
      telegram.invite({ ...CUSTOMER, productId: null, groupId: null, ...asked })
    await expect(ask({ customerId: 'cus_2' })).rejects.toMatchObject({ code: 'not_entitled' })
    await expect(ask({ productId: 'pro_other' })).rejects.toMatchObject({ code: 'group_not_found' })
    await expect(ask({ groupId: '-1009' })).rejects.toMatchObject({ code: 'group_not_found' })
    await expect(
      telegram.invite({ environment: 'sandbox', customerId: 'cus_1', productId: null, groupId: null }),
    ).rejects.toMatchObject({ code: 'group_not_found' })
    expect(await ask({ productId: 'pro_gold' })).toHaveLength(1)
    expect(await ask({ groupId: String(GROUP_ID) })).toHaveLength(1)
    expect(server.calls('createChatInviteLink')).toHaveLength(3)
  })

  it('is refused with what somebody has to do', async () => {
    const { server, group, telegram } = await invited()
    const ask = () => telegram.invite({ ...CUSTOMER, productId: null, groupId: null })
    group.botRights.can_invite_users = false
    await expect(ask()).rejects.toMatchObject({ code: 'platform_refused' })
    server.fail({ method: 'createChatInviteLink', answer: 'close' })
    await expect(ask()).rejects.toMatchObject({ code: 'platform_unavailable' })
  })
})

/** A token that somebody sends in some chat. */
const sentIn = (chat: object, from: object, token: string) => ({
  message: { message_id: 1, date: 0, chat, from, text: `/start ${token}` },
})

describe('a one-time link', () => {
  it('links the account of whoever follows it, and tells them', async () => {
    const { server, telegram } = await polling()
    const { token, url, expiresAt } = await telegram.linkToken(CUSTOMER)
    expect(url).toBe(`https://t.me/latchkey_test_bot?start=${token}`)
    expect(token).toMatch(/^[\w-]{32}$/)
    expect(expiresAt).toBeGreaterThan(Date.now())
    server.say(USER, `/start ${token}`)
    await caughtUp(server)
    expect(await telegram.accountOf('cus_1')).toBe(String(USER))
    expect(server.sent).toEqual([{ chatId: USER, text: LINKED }])
  })

  it('is of no use to a second account', async () => {
    const { server, telegram } = await polling()
    const { token } = await telegram.linkToken(CUSTOMER)
    server.say(USER, `/start ${token}`)
    server.say(OTHER, `/start ${token}`)
    await caughtUp(server)
    expect(await telegram.accountOf('cus_1')).toBe(String(USER))
    expect(server.sent).toEqual([
      { chatId: USER, text: LINKED },
      { chatId: OTHER, text: NOT_LINKED },
    ])
  })

  it('does not link again when it is told again, once another account was linked', async () => {
    const { server, telegram } = await polling()
    const [first, second] = [await telegram.linkToken(CUSTOMER), await telegram.linkToken(CUSTOMER)]
    server.say(USER, `/start ${first.token}`)
    server.say(OTHER, `/start ${second.token}`)
    server.say(USER, `/start ${first.token}`)
    await caughtUp(server)
    expect(await telegram.accountOf('cus_1')).toBe(String(OTHER))
  })

  it('is of no use after an hour, nor after its customer was erased', async () => {
    let now = Date.parse('2026-03-01T12:00:00.000Z')
    const { server, telegram } = await polling({ clock: () => now })
    const erased = await telegram.linkToken({ ...CUSTOMER, customerId: 'cus_2' })
    await telegram.forget('cus_2')
    server.say(USER, `/start ${erased.token}`)
    await caughtUp(server)
    const late = await telegram.linkToken(CUSTOMER)
    now = late.expiresAt
    server.say(USER, `/start ${late.token}`)
    server.say(USER, '/start neverMadeByAnybody')
    await caughtUp(server)
    expect(server.sent.map(({ text }) => text)).toEqual([NOT_LINKED, NOT_LINKED, NOT_LINKED])
    expect(await telegram.accountOf('cus_1')).toBeUndefined()
  })

  it('links nobody to a customer who is erased as it is followed', async () => {
    let erase = async (): Promise<unknown> => null
    const { server, telegram } = await polling({
      writing: (own) => (name, change) =>
        own(name, change).finally(() => (name === 'takeJoinLink' ? erase() : null)),
    })
    const { token } = await telegram.linkToken(CUSTOMER)
    erase = () => telegram.erase('cus_1')
    server.say(USER, `/start ${token}`)
    await caughtUp(server)
    expect(server.sent).toEqual([{ chatId: USER, text: NOT_LINKED }])
    expect(await telegram.accountOf('cus_1')).toBeUndefined()
    expect(telegram.logged()).not.toContain('skipped a Telegram update')
  })

  it('may be guessed at five times a minute, and no more', async () => {
    const { server, telegram } = await polling()
    const { token } = await telegram.linkToken(CUSTOMER)
    for (let n = 1; n <= 5; n += 1) server.say(USER, `/start guess${n}`)
    server.say(USER, `/start ${token}`)
    server.say(OTHER, `/start ${token}`)
    await caughtUp(server)
    expect(server.sent.filter(({ chatId }) => chatId === USER)).toHaveLength(5)
    expect(await telegram.accountOf('cus_1')).toBe(String(OTHER))
  })

  it('waits for a store that can’t be written, however long, and counts as one guess', async () => {
    let failures = 0
    const { server, telegram } = await polling({
      writing: (own) => (name, change) => {
        failures -= 1
        const full = Object.assign(new Error('disk full'), { code: 'SQLITE_FULL' })
        return failures < 0 ? own(name, change) : Promise.reject(unavailable('written', full))
      },
    })
    const { token } = await telegram.linkToken(CUSTOMER)
    failures = 8
    server.say(USER, `/start ${token}`)
    await caughtUp(server)
    expect(server.sent).toEqual([{ chatId: USER, text: LINKED }])
    expect(await telegram.accountOf('cus_1')).toBe(String(USER))
    expect(telegram.logged().match(/waits for the store/g)).toHaveLength(1)
    expect(telegram.logged()).not.toContain('skipped a Telegram update')
  })

  it('is followed in a chat with the bot only', async () => {
    const { server, telegram } = await polling()
    const { token } = await telegram.linkToken(CUSTOMER)
    server.updates.emit(sentIn({ id: GROUP_ID, type: 'supergroup' }, { id: USER }, token))
    for (const text of ['hello', '/start', `/start ${'x'.repeat(65)}`]) server.say(USER, text)
    await caughtUp(server)
    expect(server.sent).toEqual([])
    expect(await telegram.accountOf('cus_1')).toBeUndefined()
  })

  it('is of no use to another bot', async () => {
    const { server, telegram } = await polling()
    const { token } = await telegram.linkToken(CUSTOMER)
    server.updates.emit(sentIn({ id: OTHER, type: 'private' }, { id: OTHER, is_bot: true }, token))
    server.say(USER, `/start ${token}`)
    await caughtUp(server)
    expect(server.sent).toEqual([{ chatId: USER, text: LINKED }])
    expect(await telegram.accountOf('cus_1')).toBe(String(USER))
  })

  it('has done its work where the person cannot be answered', async () => {
    const { server, telegram } = await polling()
    const { token } = await telegram.linkToken(CUSTOMER)
    const blocked = new BotApiError(403, 'Forbidden: bot was blocked by the user')
    server.fail({ method: 'sendMessage', answer: blocked })
    server.say(USER, `/start ${token}`)
    await caughtUp(server)
    expect(await telegram.accountOf('cus_1')).toBe(String(USER))
  })
})

describe('long polling', () => {
  it('takes the place of a webhook', async () => {
    const server = await startTelegram()
    server.updates.setWebhook()
    const telegram = await connect(server)
    telegram.start()
    server.addGroup(GROUP_ID).askToJoin(USER)
    await caughtUp(server)
    expect(telegram.asked).toEqual([String(USER)])
  })

  it('confirms an update only once it is handled: interrupted, it comes again', async () => {
    const server = await startTelegram()
    const group = server.addGroup(GROUP_ID)
    let isStuck = true
    const accountAsked = async () => {
      if (isStuck) throw new Error('the store cannot be read')
      return 'decline' as const
    }
    const telegram = await connect(server, { accountAsked })
    telegram.start()
    group.askToJoin(USER)
    await eventually(() => expect(telegram.asked).toHaveLength(1))
    await telegram.close()
    expect(server.updates.waiting()).toHaveLength(1)

    isStuck = false
    const restarted = await connect(server, { file: telegram.file, accountAsked })
    restarted.start()
    await caughtUp(server)
    expect(restarted.asked).toEqual([String(USER)])
  })

  it('answers nobody once another instance receives the updates, and leaves the update to that one', async () => {
    let leads = true
    const { server, group, telegram } = await polling({
      isLeader: () => leads,
      accountAsked: async () => {
        leads = false
        return 'decline'
      },
    })
    group.askToJoin(USER)
    await eventually(() => expect(telegram.asked).toHaveLength(1))
    await telegram.stop()
    expect(group.pending()).toEqual([USER])
    expect(server.calls('declineChatJoinRequest')).toEqual([])
    expect(server.updates.waiting()).toHaveLength(1)
  })

  it('leaves what can never be handled, for the sake of the rest', async () => {
    const { server, group, telegram } = await polling({
      accountAsked: async (_, accountId) => {
        if (accountId === String(USER)) throw new Error('a bug')
        return 'decline'
      },
    })
    group.askToJoin(USER)
    server.updates.emit({ chat_join_request: 'nonsense' })
    group.askToJoin(OTHER)
    await caughtUp(server)
    expect(telegram.asked).toEqual([String(USER), String(USER), String(USER), String(OTHER)])
    expect(telegram.logged()).toContain('skipped a Telegram update that failed repeatedly')
    expect(telegram.logged()).toContain('ignored an unusable Telegram update')
  })

  it('waits where another one polls, says so once, and goes on after it', async () => {
    const { server, group, telegram } = await polling()
    const conflict = new BotApiError(409, 'Conflict: terminated by other getUpdates request')
    server.fail({ method: 'getUpdates', answer: conflict, times: 3 })
    group.askToJoin(USER)
    await caughtUp(server)
    expect(telegram.asked).toEqual([String(USER)])
    expect(telegram.logged().match(/do not arrive at the moment/g)).toHaveLength(1)
    expect(telegram.logged()).toContain('received again')
  })

  it('makes no call before a wait is over that Telegram asked for', async () => {
    const { server, group } = await polling()
    await eventually(() => expect(server.updates.isPolled()).toBe(true))
    server.limit(1)
    group.askToJoin(USER)
    await caughtUp(server)
    expect(group.pending()).toEqual([])
    expect(server.calls('declineChatJoinRequest').map(({ status }) => status)).toEqual([429, 200])
    expect(server.calls().filter(({ isEarly }) => isEarly)).toEqual([])
    expect(server.calls('getUpdates').filter(({ isEarly }) => isEarly)).toEqual([])
  })

  it('skips nothing because of waits that Telegram asks for, however many', async () => {
    const { server, group, telegram } = await polling()
    const limited = new BotApiError(429, 'Too Many Requests: retry after 0', { retry_after: 0 })
    server.fail({ method: 'declineChatJoinRequest', answer: limited, times: 4 })
    group.askToJoin(USER)
    await caughtUp(server)
    expect(group.pending()).toEqual([])
    expect(telegram.logged()).not.toContain('skipped a Telegram update')
  })

  it('stops at once, while a poll is held open', async () => {
    const { server, telegram } = await polling()
    await eventually(() => expect(server.updates.isPolled()).toBe(true))
    await telegram.stop()
    // It has not been answered.
    expect(server.calls('getUpdates')).toEqual([])
  })

  it('stops all the same while Telegram does not answer', async () => {
    const { server, group, telegram } = await polling()
    server.fail({ method: 'declineChatJoinRequest', answer: 'silence' })
    group.askToJoin(USER)
    await eventually(() => expect(server.calls('declineChatJoinRequest')).toHaveLength(1))
    await telegram.stop()
    expect(server.updates.waiting()).toHaveLength(1)
  })

  it('tells once of a token that does not count, and never of the token', async () => {
    const server = await startTelegram()
    server.revokeToken()
    const telegram = await connect(server)
    telegram.start()
    await eventually(() => expect(telegram.logged()).toContain('sync.telegram.botToken'))
    expect(server.calls()).toHaveLength(1)
    expect(telegram.logged()).not.toContain(BOT_TOKEN.split(':')[1])
  })
})
