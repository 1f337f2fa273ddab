import { z } from 'zod'
import { DISCORD_ID } from './ids.js'

const idSchema = z.string().regex(DISCORD_ID)

export const userSchema = z.object({ id: idSchema, username: z.string() })

export const memberSchema = z.object({ roles: z.array(z.string()) })

export const memberPageSchema = z.array(memberSchema.extend({ user: z.object({ id: idSchema }) }))

const roleSchema = z.object({
  id: idSchema,
  name: z.string(),
  position: z.int(),
  /** A bit field of up to 64 bits. */
  permissions: z.string().regex(/^\d+$/).transform(BigInt),
  /** Given and taken by an integration or by Discord alone. */
  managed: z.boolean(),
})
export type Role = z.infer<typeof roleSchema>

export const guildSchema = z.object({
  id: idSchema,
  name: z.string(),
  owner_id: idSchema,
  roles: z.array(roleSchema),
})
export type Guild = z.infer<typeof guildSchema>
