import type { TelegramTarget } from '../../target.js'
import { explained, type Groups } from './groups.js'
import { isRefusal } from './refusal.js'
import type { JoinRequest } from './update.js'

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
