import fc from 'fast-check'
import { expect, it } from 'vitest'
import { guildSchema, roleProblem } from '../../../src/sync/discord/permissions.js'
import { ADMINISTRATOR, createGuild, MANAGE_ROLES } from '../../platforms/discord-guild.js'
import { accountId, BOT_ID, discordId, GUILD_ID, OWNER_ID } from '../../platforms/discord-ids.js'
import { answerCall } from '../../platforms/discord-routes.js'
import { GOLD } from './setting.js'

const ADA = accountId(1)
const ROLE_IDS = [GUILD_ID, ...[11, 12, 13, 14].map(discordId)]

const guilds = fc.record({
  ownerId: fc.constantFrom(OWNER_ID, BOT_ID),
  held: fc.subarray(ROLE_IDS.slice(1)),
  roles: fc.tuple(
    ...ROLE_IDS.map((id) =>
      fc.record({
        id: fc.constant(id),
        position: id === GUILD_ID ? fc.constant(0) : fc.integer({ min: 1, max: 3 }),
        permissions: fc.constantFrom('0', '0', MANAGE_ROLES, ADMINISTRATOR, String(1n << 40n)),
        managed: fc.boolean(),
      }),
    ),
  ),
})

it('finds a problem exactly where Discord would refuse', () => {
  fc.assert(
    fc.property(guilds, fc.constantFrom(...ROLE_IDS, discordId(77)), ({ ownerId, held, roles }, roleId) => {
      const guild = createGuild(GUILD_ID)
      guild.ownerId = ownerId
      guild.leave(BOT_ID)
      guild.join(BOT_ID, ADA)
      for (const role of roles) guild.setRole(role)
      for (const id of held) guild.give(BOT_ID, id)

      const request = { path: '', query: new URLSearchParams(), reason: null }
      const world = { guilds: new Map([[GUILD_ID, guild]]), unknownAccounts: new Set<string>(), auditLog: [] }
      const ask = (name: 'guild' | 'role', method: string, ...ids: readonly string[]) =>
        answerCall({ ...request, method }, { name, ids }, world)
      const shown = guildSchema.parse(ask('guild', 'GET', GUILD_ID).body)
      const problem = roleProblem(shown, { id: BOT_ID, roleIds: guild.rolesOf(BOT_ID) }, { ...GOLD, roleId })

      expect(problem === null).toBe(ask('role', 'PUT', GUILD_ID, ADA, roleId).status === 204)
    }),
    { seed: 20_260_105, numRuns: 500 },
  )
})
