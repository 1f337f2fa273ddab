import type { Logger } from 'pino'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { z } from 'zod'
import { ActionRequiredError } from '../platform.js'
import { type TelegramTarget, targetKey } from '../target.js'
import { type Call, isRefusal } from './calls.js'
import { explained, type Groups } from './groups.js'

/** A poll or a webhook asks for these, and gets no others. */
export const HANDLED_UPDATES = ['message', 'chat_join_request', 'chat_member', 'my_chat_member'] as const

const userSchema = z.object({ id: z.int(), is_bot: z.boolean().default(false) })
const chatSchema = z.object({ id: z.int(), type: z.string() })
const inviteLinkSchema = z.object({ invite_link: z.string() })

const messageSchema = z.object({
  chat: chatSchema,
  from: userSchema.optional(),
  text: z.string().optional(),
  migrate_to_chat_id: z.int().optional(),
})
export type Message = z.infer<typeof messageSchema>

const joinRequestSchema = z.object({
  chat: chatSchema,
  from: userSchema,
  /** Unix seconds. */
  date: z.int(),
  invite_link: inviteLinkSchema.optional(),
})
export type JoinRequest = z.infer<typeof joinRequestSchema>

const memberChangeSchema = z.object({
  chat: chatSchema,
  from: userSchema,
  new_chat_member: z.object({ status: z.string(), user: userSchema, is_member: z.boolean().optional() }),
  invite_link: inviteLinkSchema.optional(),
})
export type MemberChange = z.infer<typeof memberChangeSchema>

/** What is read of an update; at most one of the optional fields is there. */
export const updateSchema = z.object({
  update_id: z.int(),
  message: messageSchema.optional(),
  chat_join_request: joinRequestSchema.optional(),
  chat_member: memberChangeSchema.optional(),
  my_chat_member: memberChangeSchema.optional(),
})
export type Update = z.infer<typeof updateSchema>

export type HandleUpdateDeps = JoinRequestDeps & MemberChangeDeps & StartMessageDeps

/**
 * Takes one update as it came. May be called again with the same one. Rejects where that may help; what will never
 * succeed is logged, and done.
 */
export type HandleUpdate = (update: unknown) => Promise<void>

export function createHandleUpdate(deps: HandleUpdateDeps): HandleUpdate {
  const { groups, targets, log } = deps
  const joinRequest = createHandleJoinRequest(deps)
  const memberChange = createHandleMemberChange(deps)
  const ownChange = createHandleOwnChange(deps)
  const startMessage = createHandleStartMessage(deps)

  async function handle(update: Update): Promise<void> {
    if (update.chat_join_request !== undefined) await joinRequest(update.chat_join_request)
    if (update.chat_member !== undefined) await memberChange(update.chat_member)
    if (update.my_chat_member !== undefined) await ownChange(update.my_chat_member)
    if (update.message !== undefined) {
      await followMove(
        update.message,
        groups,
        targets().map(({ groupId }) => groupId),
      )
      await startMessage(update.message)
    }
  }

  return async (raw) => {
    const parsed = updateSchema.safeParse(raw)
    if (!parsed.success) {
      log.warn(
        { issues: parsed.error.issues.map(({ path }) => path.join('.')) },
        'a Telegram update is not usable',
      )
      return
    }
    try {
      await handle(parsed.data)
    } catch (error) {
      if (!(error instanceof ActionRequiredError)) throw error
      log.warn(
        { updateId: parsed.data.update_id, reason: error.message },
        'a Telegram update could not be followed',
      )
    }
  }
}

/** The group that this was said in goes on under another id. */
async function followMove(
  { chat, migrate_to_chat_id: movedTo }: Message,
  groups: Groups,
  groupIds: readonly string[],
): Promise<void> {
  if (movedTo !== undefined) await groups.follow(chat.id, movedTo, groupIds)
}

export interface JoinRequestDeps {
  readonly groups: Groups
  readonly targets: () => readonly TelegramTarget[]
  /** Links the account to the customer whom the link was made for, if it is the first by it and they have none. */
  readonly inviteUsed: (used: {
    readonly url: string
    readonly accountId: string
    /** Epoch milliseconds. */
    readonly askedAt: number
  }) => Promise<void>
  readonly accountAsked: (target: TelegramTarget, accountId: string) => Promise<'approve' | 'decline'>
  readonly isPaused: () => Promise<boolean>
}

/**
 * Somebody asks to join. Whoever may is let in by the reconciler, like every membership that is given; whoever may not
 * is declined here, unless sync is paused: what is known may be old then, and the request waits. A group that is in no
 * target is left to its administrators.
 */
export function createHandleJoinRequest(deps: JoinRequestDeps) {
  const { groups, targets, inviteUsed, accountAsked, isPaused } = deps

  return async ({ chat, from, date, invite_link: link }: JoinRequest): Promise<void> => {
    const asked = await targetsOf(chat.id, groups, targets())
    const [first] = asked
    if (first === undefined) return
    const accountId = String(from.id)
    if (link !== undefined) {
      await inviteUsed({ url: link.invite_link, accountId, askedAt: date * 1_000 })
    }
    const answers = []
    for (const target of asked) answers.push(await accountAsked(target, accountId))
    if (answers.includes('approve') || (await isPaused())) return
    await explained(first.groupId, decline(groups, first.groupId, from.id))
  }
}

/** The targets, of those given, which are this chat: one in each environment, if any. */
export async function targetsOf(
  chatId: number,
  groups: Groups,
  targets: readonly TelegramTarget[],
): Promise<readonly TelegramTarget[]> {
  const groupIds = await groups.configuredAs(
    chatId,
    targets.map(({ groupId }) => groupId),
  )
  return targets.filter(({ groupId }) => groupIds.includes(groupId))
}

async function decline(groups: Groups, groupId: string, userId: number): Promise<void> {
  try {
    await groups.within(groupId, (api, chatId) => api.declineChatJoinRequest(chatId, userId))
  } catch (error) {
    // Taken back, or decided by an administrator.
    if (!isRefusal(error, 'no_request', 'not_in_group', 'not_recognised', 'in_group_already')) throw error
  }
}

export interface MemberChangeDeps {
  readonly groups: Groups
  readonly targets: () => readonly TelegramTarget[]
  /** Whether it is a link of Latchkey's own that has been used. */
  readonly isInviteUsed: (url: string) => Promise<boolean>
  readonly log: Logger
}

/** Somebody joined by an invite link of Latchkey's own: it has done its work, and is revoked. */
export function createHandleMemberChange({ groups, targets, isInviteUsed }: MemberChangeDeps) {
  return async ({ chat, new_chat_member: member, invite_link: link }: MemberChange): Promise<void> => {
    if (link === undefined || !isIn(member)) return
    const [joined] = await targetsOf(chat.id, groups, targets())
    if (joined === undefined || !(await isInviteUsed(link.invite_link))) return
    const { groupId } = joined
    const revoked = groups.within(groupId, (api, chatId) =>
      api.revokeChatInviteLink(chatId, link.invite_link),
    )
    await explained(groupId, revoked)
  }
}

/** The bot's own standing in a group has changed: it is told, since nothing works there without its rights. */
export function createHandleOwnChange({ groups, targets, log }: MemberChangeDeps) {
  return async ({ chat, new_chat_member: { status } }: MemberChange): Promise<void> => {
    for (const target of await targetsOf(chat.id, groups, targets())) {
      const about = { target: targetKey(target), status }
      if (status === 'administrator') log.info(about, 'the bot is an administrator of the Telegram group')
      else log.warn(about, 'the bot is no administrator of the Telegram group: make it one')
    }
  }
}

function isIn({ status, is_member: isMember }: MemberChange['new_chat_member']): boolean {
  return (
    ['creator', 'administrator', 'member'].includes(status) || (status === 'restricted' && isMember === true)
  )
}

const START = /^\/start ([\w-]{1,64})$/

/** What one account may try in a minute; more is neither looked up nor answered. */
const TRIES_PER_MINUTE = 5

export const LINKED = 'Your account is linked.'
/** The same whatever is wrong with a token: whoever guesses learns nothing. */
export const NOT_LINKED = 'This link has been used or has expired: please ask for a new one.'

export interface StartMessageDeps {
  readonly call: Call
  /** Links the account to the customer whom the token was made for; false: it is of no use, or not any more. */
  readonly linkByToken: (token: string, accountId: string) => Promise<boolean>
  readonly log: Logger
}

/** Somebody followed a one-time link to the bot: `/start <token>`, in a chat with the bot alone. */
export function createHandleStartMessage({ call, linkByToken, log }: StartMessageDeps) {
  const limiter = new RateLimiterMemory({ points: TRIES_PER_MINUTE, duration: 60 })

  async function answer(chatId: number, text: string): Promise<void> {
    try {
      await call((api) => api.sendMessage(chatId, text))
    } catch (error) {
      // What was asked for is done; they may have blocked the bot.
      log.info(
        { reason: error instanceof Error ? error.message : '' },
        'a Telegram user could not be answered',
      )
    }
  }

  return async ({ chat, from, text }: Message): Promise<void> => {
    const [, token] = START.exec(text ?? '') ?? []
    if (token === undefined || from === undefined || chat.type !== 'private') return
    // Only people have access.
    if (from.is_bot) return
    const accountId = String(from.id)
    const { consumedPoints } = await limiter.penalty(accountId)
    if (consumedPoints > TRIES_PER_MINUTE) return
    await answer(chat.id, (await linkByToken(token, accountId)) ? LINKED : NOT_LINKED)
  }
}
