import { z } from 'zod'
import { createFailureLimit } from '../../failure-limit.js'
import { isSyncPaused } from '../../store/sync-state.js'
import { ActionRequiredError } from '../platform.js'
import { unlessRefused } from './calls.js'
import type { TelegramContext } from './context.js'
import { isIn } from './groups.js'
import type { JoinLinks } from './join-links.js'

/** The only updates that a poll or webhook receives. */
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
type Message = z.infer<typeof messageSchema>

const joinRequestSchema = z.object({
  chat: chatSchema,
  from: userSchema,
  /** Unix seconds. */
  date: z.int(),
  invite_link: inviteLinkSchema.optional(),
})
type JoinRequest = z.infer<typeof joinRequestSchema>

const memberChangeSchema = z.object({
  chat: chatSchema,
  from: userSchema,
  new_chat_member: z.object({ status: z.string(), user: userSchema, is_member: z.boolean().optional() }),
  invite_link: inviteLinkSchema.optional(),
})
type MemberChange = z.infer<typeof memberChangeSchema>

/** The fields that are read; an update has at most one of the optional ones. */
const updateSchema = z.object({
  update_id: z.int(),
  message: messageSchema.optional(),
  chat_join_request: joinRequestSchema.optional(),
  chat_member: memberChangeSchema.optional(),
  my_chat_member: memberChangeSchema.optional(),
})
type Update = z.infer<typeof updateSchema>

const START = /^\/start ([\w-]{1,64})$/

/** Attempts per account and minute; more are neither looked up nor answered. */
const TRIES_PER_MINUTE = 5

export const LINKED = 'Your account is linked.'
/** The same text for every problem with a token, so that guessing reveals nothing. */
export const NOT_LINKED = 'This link has been used or has expired: please ask for a new one.'

/**
 * Handles one raw update, and may be called again at once with the same one. Rejects if a retry may help; logs and drops an
 * update that can never succeed.
 */
export type HandleUpdate = (update: unknown) => Promise<void>

export function createHandleUpdate(context: TelegramContext, joinLinks: JoinLinks): HandleUpdate {
  const { call, groups, accountAsked, recheck, db, log } = context
  const tries = createFailureLimit({ failures: TRIES_PER_MINUTE })
  let lastId: number | null = null

  /**
   * Handles a request to join. The reconciler admits those with access, as for any membership; others are declined
   * here, unless sync is paused: access may be outdated then, so the request waits. Groups in no target are left to
   * their administrators.
   */
  async function joinRequest({ chat, from, date, invite_link: link }: JoinRequest): Promise<void> {
    const asked = await groups.targetsOf(chat.id)
    const [first] = asked
    if (first === undefined) return
    const accountId = String(from.id)
    if (link !== undefined) await joinLinks.inviteUsed(link.invite_link, accountId, date * 1_000)
    const answers = []
    for (const target of asked) answers.push(await accountAsked(target, accountId))
    if (answers.includes('approve') || (await isSyncPaused(db))) return
    await groups
      .within(first.groupId, (api, chatId) => api.declineChatJoinRequest(chatId, from.id))
      // Withdrawn, or decided by an administrator.
      .catch(unlessRefused('no_request', 'not_in_group', 'not_recognised', 'in_group_already'))
  }

  /** Revokes an invite link of Latchkey's after somebody has joined by it. */
  async function memberChange({ chat, new_chat_member: member, invite_link: link }: MemberChange) {
    if (link === undefined || !isIn(member)) return
    const url = link.invite_link
    const [joined] = await groups.targetsOf(chat.id)
    if (joined === undefined || !(await joinLinks.isInviteUsed(url))) return
    await groups.within(joined.groupId, (api, chatId) => api.revokeChatInviteLink(chatId, url))
  }

  /** Handles `/start <token>` in a private chat: somebody followed a one-time link to the bot. */
  async function startMessage({ chat, from, text }: Message, isAgain: boolean): Promise<void> {
    const [, token] = START.exec(text ?? '') ?? []
    if (token === undefined || from === undefined || chat.type !== 'private') return
    // Only people have access.
    if (from.is_bot) return
    const accountId = String(from.id)
    if (!isAgain && tries(accountId).limited) return
    const answer = (await joinLinks.linkByToken(token, accountId)) ? LINKED : NOT_LINKED
    try {
      await call((api) => api.sendMessage(chat.id, answer))
    } catch (error) {
      // The account is linked; the user may have blocked the bot.
      const reason = error instanceof Error ? error.message : ''
      log.info({ reason }, 'could not answer a Telegram user')
    }
  }

  async function handle(update: Update, isAgain: boolean): Promise<void> {
    const { chat_join_request: asked, chat_member: changed, my_chat_member: own, message } = update
    if (asked !== undefined) await joinRequest(asked)
    if (changed !== undefined) await memberChange(changed)
    // The bot's rights in a group have changed: it needs them to manage members.
    if (own !== undefined) recheck()
    if (message === undefined) return
    const { chat, migrate_to_chat_id: movedTo } = message
    if (movedTo !== undefined) await groups.follow(chat.id, movedTo)
    await startMessage(message, isAgain)
  }

  return async (raw) => {
    const parsed = updateSchema.safeParse(raw)
    if (!parsed.success) {
      const issues = parsed.error.issues.map(({ path }) => path.join('.'))
      log.warn({ issues }, 'ignored an unusable Telegram update')
      return
    }
    const { update_id: updateId } = parsed.data
    const isAgain = updateId === lastId
    lastId = updateId
    try {
      await handle(parsed.data, isAgain)
    } catch (error) {
      if (!(error instanceof ActionRequiredError)) throw error
      log.warn({ updateId, reason: error.message }, 'could not handle a Telegram update')
    }
  }
}
