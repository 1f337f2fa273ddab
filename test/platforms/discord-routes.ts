import { ADMINISTRATOR, type LocalGuild, type LocalRole, MANAGE_ROLES } from './discord-guild.js'
import { BOT_ID } from './discord-ids.js'

export interface DiscordRequest {
  readonly method: string
  /** Below the version. */
  readonly path: string
  readonly query: URLSearchParams
  /** For the audit log. */
  readonly reason: string | null
}

export interface DiscordAnswer {
  readonly status: number
  readonly body?: unknown
}

/** A change that the bot made. Discord writes none where nothing changes. */
export interface AuditEntry {
  readonly action: 'give' | 'take'
  readonly guildId: string
  readonly roleId: string
  readonly accountId: string
  readonly reason: string | null
}

export interface DiscordWorld {
  readonly guilds: ReadonlyMap<string, LocalGuild>
  /** Accounts that Discord does not know at all. */
  readonly unknownAccounts: ReadonlySet<string>
  readonly auditLog: AuditEntry[]
  /** Hears each entry as it is made. */
  readonly onEntry?: (entry: AuditEntry) => void
}

/** The calls that limits tell apart. */
export type DiscordRouteName = 'self' | 'guild' | 'members' | 'member' | 'role'

interface Route {
  readonly name: DiscordRouteName
  readonly methods: readonly string[]
  readonly pattern: RegExp
}

const ROUTES: readonly Route[] = [
  { name: 'self', methods: ['GET'], pattern: /^\/users\/@me$/ },
  { name: 'guild', methods: ['GET'], pattern: /^\/guilds\/(\d+)$/ },
  { name: 'members', methods: ['GET'], pattern: /^\/guilds\/(\d+)\/members$/ },
  { name: 'member', methods: ['GET'], pattern: /^\/guilds\/(\d+)\/members\/(\d+)$/ },
  { name: 'role', methods: ['PUT', 'DELETE'], pattern: /^\/guilds\/(\d+)\/members\/(\d+)\/roles\/(\d+)$/ },
]

const UNKNOWN_GUILD = refusal(404, 10_004, 'Unknown Guild')
const UNKNOWN_MEMBER = refusal(404, 10_007, 'Unknown Member')
const UNKNOWN_ROLE = refusal(404, 10_011, 'Unknown Role')
const UNKNOWN_USER = refusal(404, 10_013, 'Unknown User')
const MISSING_ACCESS = refusal(403, 50_001, 'Missing Access')
const MISSING_PERMISSIONS = refusal(403, 50_013, 'Missing Permissions')

export function refusal(status: number, code: number, message: string): DiscordAnswer {
  return { status, body: { message, code } }
}

export interface RoutedRequest {
  readonly name: DiscordRouteName
  readonly ids: readonly string[]
}

/** Which call it is; null: none that there is. */
export function routeOf({ method, path }: Pick<DiscordRequest, 'method' | 'path'>): RoutedRequest | null {
  for (const { name, methods, pattern } of ROUTES) {
    const match = pattern.exec(path)
    if (match && methods.includes(method)) return { name, ids: match.slice(1) }
  }
  return null
}

/** Does what a call asks, and answers as Discord would. */
export function answerCall(
  request: DiscordRequest,
  { name, ids }: RoutedRequest,
  world: DiscordWorld,
): DiscordAnswer {
  if (name === 'self') return { status: 200, body: { id: BOT_ID, username: 'latchkey', bot: true } }
  const [guildId = '', accountId = '', roleId = ''] = ids
  const guild = world.guilds.get(guildId)
  if (guild === undefined) return UNKNOWN_GUILD
  if (!guild.isMember(BOT_ID)) return MISSING_ACCESS
  switch (name) {
    case 'guild':
      return {
        status: 200,
        body: { id: guild.id, name: guild.name, owner_id: guild.ownerId, roles: guild.roles() },
      }
    case 'members':
      return listMembers(guild, request.query)
    case 'member':
      if (world.unknownAccounts.has(accountId)) return UNKNOWN_USER
      return guild.isMember(accountId) ? { status: 200, body: memberOf(guild, accountId) } : UNKNOWN_MEMBER
    case 'role':
      return changeRole(request, guild, accountId, roleId, world)
    default:
      return name satisfies never
  }
}

function memberOf(guild: LocalGuild, accountId: string): unknown {
  return { user: { id: accountId, username: `u${accountId}` }, nick: null, roles: guild.rolesOf(accountId) }
}

function listMembers(guild: LocalGuild, query: URLSearchParams): DiscordAnswer {
  if (!guild.isListable) return MISSING_ACCESS
  const limit = Number(query.get('limit') ?? 1)
  if (!(limit >= 1 && limit <= 1_000)) return refusal(400, 50_035, 'Invalid Form Body')
  const after = BigInt(query.get('after') ?? 0)
  const page = guild
    .members()
    .filter((accountId) => BigInt(accountId) > after)
    .slice(0, limit)
  return { status: 200, body: page.map((accountId) => memberOf(guild, accountId)) }
}

function changeRole(
  { method, reason }: DiscordRequest,
  guild: LocalGuild,
  accountId: string,
  roleId: string,
  { unknownAccounts, auditLog, onEntry }: DiscordWorld,
): DiscordAnswer {
  const role = guild.role(roleId)
  if (role === undefined) return UNKNOWN_ROLE
  if (!mayGive(guild, role)) return MISSING_PERMISSIONS
  if (unknownAccounts.has(accountId)) return UNKNOWN_USER
  if (!guild.isMember(accountId)) return UNKNOWN_MEMBER
  const action = method === 'PUT' ? 'give' : 'take'
  if (guild.rolesOf(accountId).includes(roleId) !== (action === 'give')) {
    guild[action](accountId, roleId)
    const entry = { action, guildId: guild.id, roleId, accountId, reason } as const
    auditLog.push(entry)
    onEntry?.(entry)
  }
  return { status: 204 }
}

function mayGive(guild: LocalGuild, role: LocalRole): boolean {
  if (role.managed || role.id === guild.id) return false
  if (guild.ownerId === BOT_ID) return true
  const held = guild.roles().filter(({ id }) => id === guild.id || guild.rolesOf(BOT_ID).includes(id))
  const bits = BigInt(ADMINISTRATOR) | BigInt(MANAGE_ROLES)
  const isAllowed = held.some(({ permissions }) => (BigInt(permissions) & bits) !== 0n)
  return isAllowed && held.some((own) => compareRoles(own, role) > 0)
}

/** By position; of two with the same, the older one stands higher. */
function compareRoles(one: LocalRole, other: LocalRole): number {
  return one.position - other.position || Number(BigInt(other.id) - BigInt(one.id))
}
