import { BOT_ID, BOT_ROLE_ID, GOLD_ROLE_ID, OWNER_ID, SILVER_ROLE_ID } from './discord-ids.js'

export interface LocalRole {
  readonly id: string
  readonly name: string
  readonly position: number
  /** A bit field in decimal digits. */
  readonly permissions: string
  readonly managed: boolean
}

/** A community as Discord keeps it. What tests call here is done by its people, not by the bot. */
export interface LocalGuild {
  readonly id: string
  readonly name: string
  /** Whether the bot may list members: the privileged intent. */
  isListable: boolean
  ownerId: string
  join(...accountIds: readonly string[]): void
  /** Who leaves loses all roles. */
  leave(...accountIds: readonly string[]): void
  isMember(accountId: string): boolean
  give(accountId: string, roleId: string): void
  take(accountId: string, roleId: string): void
  rolesOf(accountId: string): readonly string[]
  /** The accounts with the role, sorted. */
  holders(roleId: string): readonly string[]
  /** In the order of their ids. */
  members(): readonly string[]
  role(roleId: string): LocalRole | undefined
  roles(): readonly LocalRole[]
  /** Adds a role, or changes what it is. */
  setRole(role: Partial<LocalRole> & Pick<LocalRole, 'id'>): void
  deleteRole(roleId: string): void
}

export const MANAGE_ROLES = String(1n << 28n)
export const ADMINISTRATOR = String(1n << 3n)

/** With the roles Gold and Silver, and the bot above them, allowed to manage roles. */
export function createGuild(id: string, name = 'Community'): LocalGuild {
  const rolesOf = new Map<string, Set<string>>()
  const roles = new Map<string, LocalRole>()

  const guild: LocalGuild = {
    id,
    name,
    isListable: true,
    ownerId: OWNER_ID,
    join(...accountIds) {
      for (const accountId of accountIds) {
        if (!rolesOf.has(accountId)) rolesOf.set(accountId, new Set())
      }
    },
    leave(...accountIds) {
      for (const accountId of accountIds) rolesOf.delete(accountId)
    },
    isMember: (accountId) => rolesOf.has(accountId),
    give: (accountId, roleId) => rolesOf.get(accountId)?.add(roleId),
    take: (accountId, roleId) => rolesOf.get(accountId)?.delete(roleId),
    rolesOf: (accountId) => [...(rolesOf.get(accountId) ?? [])],
    holders: (roleId) => guild.members().filter((accountId) => rolesOf.get(accountId)?.has(roleId)),
    // Ids have one length here, so that text and number sort alike.
    members: () => [...rolesOf.keys()].sort(),
    role: (roleId) => roles.get(roleId),
    roles: () => [...roles.values()],
    setRole(role) {
      const before = { name: 'Role', position: 1, permissions: '0', managed: false, ...roles.get(role.id) }
      roles.set(role.id, { ...before, ...role })
    },
    deleteRole(roleId) {
      roles.delete(roleId)
      for (const held of rolesOf.values()) held.delete(roleId)
    },
  }
  guild.setRole({ id, name: '@everyone', position: 0 })
  guild.setRole({ id: GOLD_ROLE_ID, name: 'Gold', position: 1 })
  guild.setRole({ id: SILVER_ROLE_ID, name: 'Silver', position: 2 })
  guild.setRole({
    id: BOT_ROLE_ID,
    name: 'Latchkey',
    position: 9,
    permissions: MANAGE_ROLES,
    managed: true,
  })
  guild.join(OWNER_ID, BOT_ID)
  guild.give(BOT_ID, BOT_ROLE_ID)
  return guild
}
