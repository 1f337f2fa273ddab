import { z } from 'zod'
import { environmentSchema } from './access-schema.js'
import { DURATION_PATTERN } from './duration.js'
import { botTokenSchema, discordIdSchema, telegramGroupSchema } from './platform-schema.js'

const textSchema = z.string().regex(/\S/, 'is empty')
const urlSchema = z.url({
  protocol: /^https?$/,
  error: ({ input }) => (input === undefined ? undefined : 'must be an http or https address'),
})

export const targetSchema = z.discriminatedUnion(
  'adapter',
  [
    z.strictObject({
      adapter: z.literal('discord'),
      guildId: discordIdSchema,
      roleId: discordIdSchema,
      environment: environmentSchema.default('live'),
    }),
    z.strictObject({
      adapter: z.literal('telegram'),
      groupId: telegramGroupSchema,
      environment: environmentSchema.default('live'),
    }),
  ],
  'must be an adapter that exists: discord, telegram',
)

export type TargetFile = z.infer<typeof targetSchema>

export const productsSchema = z.record(
  z.string().min(1).max(255),
  z.strictObject({
    name: textSchema.optional(),
    targets: z
      .array(targetSchema)
      .default([])
      .describe('Roles and groups that follow access to the product.'),
    communityGuildId: discordIdSchema.optional().describe("As the service's own COMMUNITY product has it."),
    communityRoleId: discordIdSchema.optional().describe('Likewise, and never without that.'),
    messengerGroupId: telegramGroupSchema
      .optional()
      .describe("As the service's own MESSENGER product has it."),
  }),
)

const botSchema = z.strictObject({
  botToken: botTokenSchema,
  apiUrl: urlSchema.optional().describe("Left out: the platform's own."),
})

const telegramSchema = botSchema.extend({
  updates: z
    .strictObject({
      url: urlSchema.describe('Where the messenger reaches `POST /platforms/telegram/updates`.'),
      secret: z
        .string()
        .regex(/^[\w-]{16,256}$/, 'must be 16 to 256 of A-Z a-z 0-9 _ -')
        .describe('Proves that an update comes from the messenger.'),
    })
    .optional()
    .describe('Has updates delivered. Left out: they are fetched by long polling.'),
})

const outboundSecretSchema = z
  .string()
  .regex(
    /^whsec_([A-Za-z0-9+/]{4}){8,}([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/,
    'must be whsec_ and at least 24 bytes in base64',
  )

const outboundSchema = z.strictObject({
  url: urlSchema,
  secret: z
    .union(
      [outboundSecretSchema, z.array(outboundSecretSchema).min(1).max(4)],
      'must be whsec_ and at least 24 bytes in base64, or a list of such',
    )
    .describe('Signs what is sent, by the Standard Webhooks scheme. Of several, each signs.'),
  environments: z
    .array(environmentSchema)
    .min(1)
    .default(['live'])
    .describe('Whose changes of access are told.'),
})

export const syncSchema = z.strictObject({
  discord: botSchema.optional(),
  telegram: telegramSchema.optional(),
  webhook: outboundSchema
    .optional()
    .describe("Every change of access, posted to the merchant's own address."),
  sweepEvery: z
    .string()
    .regex(DURATION_PATTERN, 'must be a duration, such as "1h"')
    .default('1h')
    .describe('How often the real members are read and repaired.'),
  removals: z
    .strictObject({
      atMost: z.int().min(0).default(20),
      percent: z.number().min(0).max(100).default(10),
    })
    .prefault({})
    .describe(
      "More removals than both, within an hour, wait for an operator: `percent` is of a target's members.",
    ),
})

export const providerSchema = z.strictObject({ baseUrl: urlSchema, apiKey: textSchema })

export const identitySchema = z.strictObject({
  ref: z
    .string()
    .regex(/^(externalRef|metadata\..+)$/, 'must be externalRef or metadata.<key>')
    .default('externalRef')
    .describe("Where events carry the merchant's own reference to a customer."),
})
