import { z } from 'zod'

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
