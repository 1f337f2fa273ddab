import { z } from 'zod'
import { environmentSchema } from './access-schema.js'

const textSchema = z.string().regex(/\S/, 'is empty')
const urlSchema = z.url({
  protocol: /^https?$/,
  error: ({ input }) => (input === undefined ? undefined : 'must be an http or https address'),
})

const targetSchema = z.discriminatedUnion(
  'adapter',
  [
    z.strictObject({
      adapter: z.literal('discord'),
      guildId: textSchema,
      roleId: textSchema,
      environment: environmentSchema.default('live'),
    }),
    z.strictObject({
      adapter: z.literal('telegram'),
      groupId: textSchema,
      environment: environmentSchema.default('live'),
    }),
  ],
  'must be an adapter that exists: discord, telegram',
)

export const productsSchema = z.record(
  z.string().min(1).max(255),
  z.strictObject({
    name: textSchema.optional(),
    targets: z
      .array(targetSchema)
      .default([])
      .describe('Roles and groups that follow access to the product.'),
  }),
)

const botSchema = z.strictObject({ botToken: textSchema, apiUrl: urlSchema.optional() })

export const syncSchema = z.strictObject({ discord: botSchema.optional(), telegram: botSchema.optional() })

export const providerSchema = z.strictObject({ baseUrl: urlSchema, apiKey: textSchema })

export const identitySchema = z.strictObject({
  ref: z
    .string()
    .regex(/^(externalRef|metadata\..+)$/, 'must be externalRef or metadata.<key>')
    .default('externalRef')
    .describe("Where events carry the merchant's own reference to a customer."),
})
