import { z } from 'zod'
import { CHANGE_TYPES } from '../entitlements/entitlement.js'
import type { DeepReadonly } from '../handlers/answers.js'
import type { Path, Problem } from '../handlers/problem.js'
import { ofEach, PLATFORM_NAMES, type PlatformName } from '../provider/accounts.js'
import type { Endpoint } from '../provider/endpoint.js'
import { isUsableId, MAX_ID_LENGTH } from '../provider/ids.js'
import type { WebhookAddress } from '../sync/outbound/message.js'
import type { Target, TargetOn } from '../sync/target.js'
import { durationSchema, environmentSchema, withFallback } from './fields.js'
import { formatPath, NAME, type Usable } from './problems.js'

const textSchema = z.string().regex(/\S/, 'is empty')
const urlSchema = z.url({
  protocol: /^https?$/,
  error: ({ input }) => (input === undefined ? undefined : 'must be an http or https address'),
})

/** A text of one form; an empty one is reported as empty. */
function textOf(form: RegExp, problemOf: (text: string) => string) {
  return z.string().regex(form, {
    error: ({ input }) => (/\S/.test(String(input)) ? problemOf(String(input)) : 'is empty'),
    abort: true,
  })
}

const NO_DISCORD_ID = 'must be a Discord id: a whole number, such as "1100000000000000010"'

/** Discord ids are 64-bit whole numbers. This checks only what is true of every id. */
const discordIdSchema = textOf(/^[1-9]\d{0,19}$/, () => NO_DISCORD_ID).refine(
  (id) => BigInt(id) < 2n ** 64n,
  NO_DISCORD_ID,
)

/** The adapter checks this too, but only after a mistyped group has replaced the right one. */
const telegramGroupSchema = textOf(
  /^-[1-9]\d{0,15}$/,
  () => 'must be the id of a Telegram group: a whole number below zero, such as "-1001234567890"',
)

/** Only these characters are valid in a token, which goes into a header or a path. */
const botTokenSchema = textOf(/^[!-~]+$/, (token) =>
  /^Bot\s/i.test(token)
    ? 'must be the token alone, without "Bot" before it'
    : 'must be the token alone: it has a space, a line break or another character that no token has',
)

const TARGETS = {
  discord: z.strictObject({
    adapter: z.literal('discord'),
    guildId: discordIdSchema,
    roleId: discordIdSchema,
    environment: environmentSchema.default('live'),
  }),
  telegram: z.strictObject({
    adapter: z.literal('telegram'),
    groupId: telegramGroupSchema,
    environment: environmentSchema.default('live'),
  }),
} satisfies { readonly [Name in PlatformName]: z.ZodType<TargetOn<Name>> }
type TargetSchema = (typeof TARGETS)[PlatformName]

const targetSchema = z.discriminatedUnion(
  'adapter',
  Object.values(TARGETS) as [TargetSchema, ...TargetSchema[]],
  `must be an adapter that exists: ${PLATFORM_NAMES.join(', ')}`,
)

/** Only such an id can be asked about. */
const idSchema = z
  .string()
  .min(1, { abort: true })
  .max(MAX_ID_LENGTH, { abort: true })
  .refine(isUsableId, 'must be an id: without control characters')

const productSchema = z.strictObject({
  name: withFallback(textSchema, null),
  features: z
    .array(idSchema)
    .default([])
    .describe('What access to the product lets a customer do in the app.'),
  targets: z.array(targetSchema).default([]).describe('Roles and groups that follow access to the product.'),
  communityGuildId: discordIdSchema.optional().describe("As the service's own COMMUNITY product has it."),
  communityRoleId: discordIdSchema.optional().describe('Likewise, and only together with the other one.'),
  messengerGroupId: telegramGroupSchema.optional().describe("As the service's own MESSENGER product has it."),
})
type ProductFile = Usable<z.input<typeof productSchema>>

export const productsSchema = z.record(idSchema, productSchema).transform((products) =>
  Object.entries(products).map(([id, product]) => {
    const { name, features } = product
    return { id, name, features, targets: targetsIn([], product).map(({ target }) => target) }
  }),
)

const botSchema = z.strictObject({
  botToken: botTokenSchema,
  apiUrl: withFallback(urlSchema, null).describe("Default: the platform's own address."),
})

const outboundIdSchema = z.string().regex(NAME, 'must be an id of 1 to 64 of a-z, 0-9 and "-"')

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
    .describe('Signs each message, as Standard Webhooks says. If there are several, each one signs.'),
  types: z
    .array(z.enum(CHANGE_TYPES))
    .min(1)
    .optional()
    .describe('Which types of messages are sent; left out: all.'),
  environments: z
    .array(environmentSchema)
    .min(1)
    .default(['live'])
    .describe('The environments whose changes of access are sent.'),
  disabled: z.boolean().default(false).describe('Queues its messages, and sends none.'),
})

/** The id of the address in `sync.webhook`. */
const ONLY_WEBHOOK = 'default'

function addressOf(id: string, address: z.output<typeof outboundSchema>): WebhookAddress {
  const { secret, types = CHANGE_TYPES, ...rest } = address
  return { id, ...rest, types, secrets: [secret].flat() }
}

export const syncSchema = z
  .strictObject({
    ...ofEach(PLATFORM_NAMES, () => withFallback(botSchema, null)),
    webhook: outboundSchema
      .optional()
      .describe(`The same as \`webhooks.${ONLY_WEBHOOK}\`, for those who need one address only.`),
    webhooks: z
      .record(outboundIdSchema, outboundSchema)
      .default({})
      .describe("The merchant's addresses, by id, to which every change of access is posted."),
    sweepEvery: durationSchema('must be a duration, such as "1h"')
      .describe('How often the real members are compared and repaired.')
      .prefault('1h'),
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
  .transform(({ sweepEvery, webhook, webhooks, ...sync }) => {
    const all = Object.entries({ ...(webhook && { [ONLY_WEBHOOK]: webhook }), ...webhooks })
    return { ...sync, webhooks: all.map(([id, one]) => addressOf(id, one)), sweepEveryMs: sweepEvery }
  })

export type BotConfig = DeepReadonly<z.output<typeof botSchema>>
export type SyncConfig = DeepReadonly<z.output<typeof syncSchema>>

export const identitySchema = z.strictObject({
  ref: z
    .string()
    .regex(/^(externalRef|metadata\..+)$/, 'must be externalRef or metadata.<key>')
    .default('externalRef')
    .describe("Where events carry the merchant's own reference to a customer."),
})

/** A role or group of a product, and its place in the config. */
interface NamedTarget {
  readonly path: Path
  readonly target: Target
}

/** Checks that every product's platform has a bot, and that every id has one address. */
export function findSyncConflicts(
  products: Usable<z.input<typeof productsSchema>>,
  sync: Usable<z.input<typeof syncSchema>>,
): Problem[] {
  const given = Object.entries(products).map(([id, product]) => [['products', id], product ?? {}] as const)
  const named = given.flatMap(([path, product]) => targetsIn(path, product))
  return [
    ...given.flatMap(([path, product]) => findHalf(path, product)),
    ...named
      .filter(({ target }) => sync[target.adapter] === undefined)
      .map(({ path, target: { adapter } }) => ({
        path,
        message: `needs a bot: sync.${adapter}.botToken is not set`,
      })),
    ...findSharedTargets(named),
    ...(sync.webhook !== undefined && sync.webhooks?.[ONLY_WEBHOOK] !== undefined
      ? [{ path: ['sync', 'webhooks', ONLY_WEBHOOK], message: 'is also in sync.webhook: keep one of them' }]
      : []),
  ]
}

/** A community pasted from the payments service's own product counts as one more target, for live access. */
function targetsIn(path: Path, product: ProductFile): NamedTarget[] {
  const { targets, communityGuildId: guildId, communityRoleId: roleId, messengerGroupId: groupId } = product
  const environment = 'live'
  const named: NamedTarget[] = (targets ?? []).flatMap((target, index) => {
    if (target === null) return []
    return [
      { path: [...path, 'targets', index], target: { ...target, environment: target.environment ?? 'live' } },
    ]
  })
  if (guildId && roleId) {
    const target = { adapter: 'discord', guildId, roleId, environment } as const
    named.push({ path: [...path, 'communityRoleId'], target })
  }
  if (groupId) {
    const target = { adapter: 'telegram', groupId, environment } as const
    named.push({ path: [...path, 'messengerGroupId'], target })
  }
  return named
}

/** A community of the service is a guild and a role: one of them alone is incomplete. */
function findHalf(path: Path, { communityGuildId: guild, communityRoleId: role }: ProductFile): Problem[] {
  if ((guild === undefined) === (role === undefined)) return []
  const [there, missing] =
    role === undefined ? ['communityGuildId', 'communityRoleId'] : ['communityRoleId', 'communityGuildId']
  return [{ path: [...path, missing], message: `is required with ${there}` }]
}

/** A customer with access in one environment only would lose and get it in turns. */
function findSharedTargets(named: readonly NamedTarget[]): Problem[] {
  return named.flatMap(({ path, target }, position) => {
    const other = named
      .slice(0, position)
      .find((one) => keyOf(one.target) === keyOf(target) && one.target.environment !== target.environment)
    if (other === undefined) return []
    const message = `follows ${target.environment} access, and ${other.target.environment} access in ${formatPath(other.path)}: a role or group follows one environment`
    return [{ path, message }]
  })
}

function keyOf({ environment: _, ...ids }: Target): string {
  return Object.entries(ids).flat().sort().join(' ')
}

export function warnOfProducts(
  products: DeepReadonly<z.output<typeof productsSchema>>,
  endpoints: readonly Endpoint[],
): Problem[] {
  return products.flatMap(({ id, targets }) =>
    [...new Set(targets.map(({ environment }) => environment))]
      .filter((environment) => !endpoints.some((endpoint) => endpoint.environment === environment))
      .map((environment) => ({
        path: ['products', id, 'targets'],
        message: `follow ${environment} access, but no endpoint is ${environment}`,
      })),
  )
}

export function warnOfSync({ webhooks }: SyncConfig, endpoints: readonly Endpoint[]): Problem[] {
  const received = new Set(endpoints.map(({ environment }) => environment))
  const warnings: Problem[] = []
  for (const { id, url, environments } of webhooks) {
    const path = id === ONLY_WEBHOOK ? ['sync', 'webhook'] : ['sync', 'webhooks', id]
    const { protocol, hostname } = new URL(url)
    if (protocol === 'http:' && !/^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)) {
      const message = 'is not https: others can read messages on the way'
      warnings.push({ path: [...path, 'url'], message })
    }
    // With no endpoint at all, that is the warning.
    if (received.size > 0 && !environments.some((environment) => received.has(environment))) {
      const [only] = environments
      const message = `follows only ${only} access, but no endpoint is ${only}: add "${[...received].join()}"`
      warnings.push({ path: [...path, 'environments'], message })
    }
  }
  return warnings
}
