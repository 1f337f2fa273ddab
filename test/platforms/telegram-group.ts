import { BotApiError, badRequest } from './telegram-errors.js'

export type MemberStatus = 'creator' | 'administrator' | 'member' | 'restricted' | 'left' | 'kicked'

export const BOT_ID = 7_000_001
export const BOT_USERNAME = 'latchkey_test_bot'

interface InviteLink {
  readonly invite_link: string
  readonly name: string | undefined
  readonly creates_join_request: boolean
  /** Unix seconds. */
  readonly expire_date: number | undefined
  is_revoked: boolean
}

type Emit = (update: Readonly<Record<string, unknown>>) => void

/** A group as Telegram keeps it. What tests call on it is done by its people, what `asBot` holds by the bot. */
export interface LocalGroup {
  readonly id: number
  readonly type: 'group' | 'supergroup'
  readonly title: string
  /** The bot's own; a group's administrators may change them. */
  readonly botRights: { can_invite_users: boolean; can_restrict_members: boolean }
  readonly links: ReadonlyMap<string, InviteLink>
  statusOf(userId: number): MemberStatus
  /** Whoever is in the group now, but for the bot, sorted. */
  members(): readonly number[]
  /** Banned now, sorted. */
  banned(): readonly number[]
  pending(): readonly number[]
  /** Who is restricted may have left. */
  setStatus(userId: number, status: MemberStatus, isIn?: boolean): void
  /** As if by a person with rights: members learn of it, and so does the bot. */
  addByStaff(userId: number): void
  /** By an invite link, or by the group's own address. */
  askToJoin(userId: number, url?: string): void
  /** Becomes a supergroup, under an id that it did not have before. */
  upgrade(): void
  readonly asBot: {
    status(userId: number): Readonly<Record<string, unknown>>
    approve(userId: number): true
    decline(userId: number): true
    ban(userId: number): true
    unban(userId: number, onlyIfBanned: boolean): true
    createLink(link: Pick<InviteLink, 'name' | 'creates_join_request' | 'expire_date'>): InviteLink
    revokeLink(url: string): InviteLink
  }
}

const STAFF_ID = 7_000_002
const IN_GROUP: readonly MemberStatus[] = ['creator', 'administrator', 'member', 'restricted']

export function createGroup(firstId: number, emit: Emit, now: () => number): LocalGroup {
  let id = firstId
  const statuses = new Map<number, MemberStatus>([
    [BOT_ID, 'administrator'],
    [STAFF_ID, 'creator'],
  ])
  const requests = new Map<number, string | null>()
  const restrictedOutside = new Set<number>()
  const links = new Map<string, InviteLink>()
  const rights = { can_invite_users: true, can_restrict_members: true }

  const isIn = (userId: number) =>
    IN_GROUP.includes(statuses.get(userId) ?? 'left') && !restrictedOutside.has(userId)
  const isBasic = () => !String(id).startsWith('-100')
  const chat = () => ({ id, title: 'Gold', type: isBasic() ? 'group' : 'supergroup' })
  const sorted = (userIds: Iterable<number>) => [...userIds].sort((a, b) => a - b)
  const withStatus = (...wanted: readonly MemberStatus[]) =>
    sorted([...statuses].flatMap(([userId, status]) => (wanted.includes(status) ? [userId] : [])))

  function change(userId: number, status: MemberStatus, by: number, link?: InviteLink): void {
    const before = statuses.get(userId) ?? 'left'
    statuses.set(userId, status)
    const user = { id: userId, is_bot: userId === BOT_ID, first_name: 'Somebody' }
    emit({
      [userId === BOT_ID ? 'my_chat_member' : 'chat_member']: {
        chat: chat(),
        from: { id: by, is_bot: by === BOT_ID, first_name: 'Somebody' },
        date: Math.floor(now() / 1_000),
        old_chat_member: { user, status: before },
        new_chat_member: { user, status },
        ...(link === undefined ? {} : { invite_link: link }),
      },
    })
  }

  function requireBot(right: keyof typeof rights): void {
    const status = statuses.get(BOT_ID)
    if (status === 'kicked') throw new BotApiError(403, 'Forbidden: bot was kicked from the group chat')
    if (status !== 'administrator') throw badRequest('CHAT_ADMIN_REQUIRED')
    if (!rights[right]) throw badRequest('not enough rights to restrict/unrestrict chat member')
  }

  function requestOf(userId: number): InviteLink | undefined {
    requireBot('can_invite_users')
    if (isIn(userId)) throw badRequest('USER_ALREADY_PARTICIPANT')
    const url = requests.get(userId)
    if (url === undefined) throw badRequest('HIDE_REQUESTER_MISSING')
    requests.delete(userId)
    return url === null ? undefined : links.get(url)
  }

  return {
    get id() {
      return id
    },
    get type() {
      return isBasic() ? 'group' : 'supergroup'
    },
    title: 'Gold',
    botRights: rights,
    links,
    statusOf: (userId) => statuses.get(userId) ?? 'left',
    members: () =>
      withStatus('creator', 'administrator', 'member', 'restricted').filter(
        (userId) => userId !== BOT_ID && userId !== STAFF_ID,
      ),
    banned: () => withStatus('kicked'),
    pending: () => sorted(requests.keys()),
    setStatus(userId, status, isMember = true) {
      if (isMember) restrictedOutside.delete(userId)
      else restrictedOutside.add(userId)
      change(userId, status, STAFF_ID)
    },
    addByStaff: (userId) => {
      requests.delete(userId)
      change(userId, 'member', STAFF_ID)
    },
    askToJoin(userId, url) {
      const link = url === undefined ? undefined : links.get(url)
      if (isIn(userId)) throw new Error(`${userId} is in the group`)
      if (statuses.get(userId) === 'kicked') throw new Error(`${userId} is banned, and can't ask`)
      if (url !== undefined && !isUsable(link, now())) throw new Error('the link is of no use')
      requests.set(userId, url ?? null)
      emit({
        chat_join_request: {
          chat: chat(),
          from: { id: userId, is_bot: false, first_name: 'Somebody' },
          user_chat_id: userId,
          date: Math.floor(now() / 1_000),
          ...(link === undefined ? {} : { invite_link: link }),
        },
      })
    },
    upgrade() {
      const before = chat()
      id = -(1_000_000_000_000 + Math.abs(id))
      emit({ message: { message_id: 1, date: 0, chat: before, migrate_to_chat_id: id } })
    },
    asBot: {
      status(userId) {
        if (statuses.get(BOT_ID) === 'kicked') {
          throw new BotApiError(403, 'Forbidden: bot was kicked from the group chat')
        }
        const status = statuses.get(userId)
        if (status === undefined) throw badRequest('PARTICIPANT_ID_INVALID')
        const user = { id: userId, is_bot: userId === BOT_ID, first_name: 'Somebody' }
        return { status, user, ...(userId === BOT_ID ? rights : {}), is_member: isIn(userId) }
      },
      approve(userId) {
        change(userId, 'member', BOT_ID, requestOf(userId))
        return true
      },
      decline(userId) {
        requestOf(userId)
        return true
      },
      ban(userId) {
        requireBot('can_restrict_members')
        const status = statuses.get(userId)
        if (status === 'creator') throw badRequest("can't remove chat owner")
        if (status === 'administrator') throw badRequest('user is an administrator of the chat')
        if (isBasic() && !isIn(userId)) throw badRequest('USER_NOT_PARTICIPANT')
        if (status === undefined) throw badRequest('PARTICIPANT_ID_INVALID')
        requests.delete(userId)
        change(userId, isBasic() ? 'left' : 'kicked', BOT_ID)
        return true
      },
      unban(userId, onlyIfBanned) {
        if (isBasic()) throw badRequest('method is available for supergroup and channel chats only')
        requireBot('can_restrict_members')
        const isBanned = statuses.get(userId) === 'kicked'
        // Without the option it removes a member, as documented.
        if (isBanned || (!onlyIfBanned && isIn(userId))) change(userId, 'left', BOT_ID)
        return true
      },
      createLink(link) {
        requireBot('can_invite_users')
        const made: InviteLink = {
          ...link,
          invite_link: `https://t.me/+${'x'.repeat(12)}${links.size}`,
          is_revoked: false,
        }
        links.set(made.invite_link, made)
        return made
      },
      revokeLink(url) {
        requireBot('can_invite_users')
        const link = links.get(url)
        if (link === undefined) throw badRequest('INVITE_HASH_EXPIRED')
        link.is_revoked = true
        return link
      },
    },
  }
}

function isUsable(link: InviteLink | undefined, now: number): boolean {
  if (link === undefined || link.is_revoked) return false
  return link.expire_date === undefined || now < link.expire_date * 1_000
}
