import { ActionRequiredError } from '../../platform-errors.js'
import type { Groups } from './groups.js'
import { createHandleJoinRequest, type JoinRequestDeps } from './join-request.js'
import { createHandleMemberChange, createHandleOwnChange, type MemberChangeDeps } from './member-change.js'
import { createHandleStartMessage, type StartMessageDeps } from './start-message.js'
import { type Message, type Update, updateSchema } from './update.js'

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
