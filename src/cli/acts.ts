import { type Command, InvalidArgumentError } from 'commander'
import type { z } from 'zod'
import { DURATION_PATTERN, parseDuration } from '../config/duration.js'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import type { ActJson, CustomerJson, ErasureJson } from '../handlers/customers.js'
import type { Environment } from '../provider/event.js'
import type { Api, ApiOptions } from './api.js'
import { type ApiCommand, apiCommand, type GivenCommand, instantIn, parseId, pathOf } from './command.js'
import { type CliContext, otherThan } from './context.js'

interface ActOptions extends ApiOptions {
  readonly reason?: string
}

/** An act by hand: a request below the customer, whose path and body follow from what was given. */
interface Act<Options>
  extends Pick<ApiCommand<Options>, 'about' | 'examples' | 'arguments' | 'options' | 'check'> {
  readonly method: 'POST' | 'PUT' | 'DELETE'
  readonly path: (productId: string | undefined) => readonly string[]
  readonly body?: (options: Options, productId: string) => object
  /** What to do where it is refused, and in which environment it was. */
  readonly refused?: (error: unknown, given: GivenCommand<Options>) => Promise<void>
}

/** Acts, shows what the customer may use since, and notes where they are known in the other environment alone. */
function actCommand<Options extends ActOptions>(words: string, act: Act<Options>) {
  const { method, path, body, refused, ...declared } = act
  return apiCommand<Options>(words, {
    ...declared,
    whereNone: 'new database',
    async check(given) {
      await checkReason(given.options)
      await declared.check?.(given)
    },
    async run(given) {
      const { api, options, args, context, show } = given
      const [customerId = '', productId] = args
      const { environment, reason } = options
      const sent = { query: { environment }, body: { reason, ...body?.(options, productId ?? '') } }
      const answer = await api
        .send<ActJson>(method, pathOf('customers', customerId, ...path(productId)), sent)
        .catch(async (error: unknown) => {
          await refused?.(error, given)
          throw error
        })
      show(answer, () => actText(answer))
      if (refused === undefined) await noteOtherEnvironment(answer, api, options, context)
    },
  })
}

function actText({ eventId, customerId, environment, entitlements }: ActJson): string {
  const lines = entitlements.map(({ productId, status, until }) =>
    [productId, status, ...(until === null ? [] : [`until ${until}`])].join('  '),
  )
  if (lines.length === 0) lines.push(`${customerId} has no access in ${environment}`)
  return `${[`done in ${environment}: ${eventId}`, ...lines].join('\n')}\n`
}

const withReason = (command: Command) => command.option('--reason <text>', 'why, for whoever asks later')
const needsReason = (command: Command) =>
  command.requiredOption('--reason <text>', 'why, for whoever asks later')

interface GrantOptions extends ActOptions {
  /** Epoch milliseconds. */
  readonly until?: number
}

const NO_END = 'It is no ISO 8601 time, such as 2026-01-31T00:00:00Z, and no duration, such as 30d.'

/** `latchkey grant`: gives a product by hand, until a time or for good. */
export const grantCommand = actCommand<GrantOptions>('grant <customer> <product>', {
  about: 'grant a product to a customer by hand',
  examples: ['grant cus_1 pro_1 --until 30d --reason "support case 17"'],
  options(command, { now }) {
    const parseUntil = (text: string): number => {
      const until = DURATION_PATTERN.test(text) ? now() + parseDuration(text) : instantIn(text)
      if (until === null) throw new InvalidArgumentError(NO_END)
      return until
    }
    const about = 'an instant, or a duration such as 30d (default: for good)'
    return needsReason(command.option('--until <time>', about, parseUntil))
  },
  method: 'POST',
  path: () => ['grants'],
  body: ({ until }, productId) => ({
    productId,
    ...(until === undefined ? {} : { until: new Date(until).toISOString() }),
  }),
})

/** `latchkey revoke`: takes back what was granted by hand; what was paid for stays. */
export const revokeCommand = actCommand('revoke <customer> <product>', {
  about: 'revoke what was granted by hand',
  examples: ['revoke cus_1 pro_1 --reason "trial is over"'],
  options: withReason,
  method: 'DELETE',
  path: (productId = '') => ['grants', productId],
  async refused(error, { api, options, args: [customerId = '', productId = ''], context }) {
    if (isLatchkeyError(error, 'grant_not_found'))
      await noteOtherGrant(customerId, productId, api, options, context)
  },
})

const blockPath = (productId: string | undefined) => [
  'blocks',
  ...(productId === undefined ? [] : [productId]),
]

/** `latchkey block`: no access, whatever is paid for or granted, until unblocked. */
export const blockCommand = actCommand('block <customer> [product]', {
  about: 'block a customer, for one product or for all',
  examples: ['block cus_1 --reason "chargeback under review"'],
  arguments: { product: 'the product id (default: every product)' },
  options: needsReason,
  method: 'PUT',
  path: blockPath,
})

/** `latchkey unblock`: lifts the block on one product, or every block. */
export const unblockCommand = actCommand('unblock <customer> [product]', {
  about: 'lift the block on one product, or every block on a customer',
  examples: ['unblock cus_1 --reason "review is over"'],
  arguments: { product: 'the product id (default: every block)' },
  options: withReason,
  method: 'DELETE',
  path: blockPath,
})

interface LinkOptions extends ActOptions {
  readonly community?: string
  readonly messenger?: string
}

/** `latchkey link`: says which platform accounts are a customer's. */
export const linkCommand = actCommand<LinkOptions>('link <customer>', {
  about: "link a customer's platform accounts; what is left out stays as it is",
  examples: ['link cus_1 --community 80351110224678912'],
  options: (command) =>
    withReason(
      command
        .option('--community <id>', "the account's id in the community", parseId)
        .option('--messenger <id>', "the account's id in the messenger", parseId),
    ),
  async check({ options: { community, messenger } }) {
    const { communityIdText, messengerIdText } = await import('../handlers/customers.js')
    checkOption('--community', communityIdText, community)
    checkOption('--messenger', messengerIdText, messenger)
    if (community === undefined && messenger === undefined)
      throw new LatchkeyError('usage', 'name an account: --community, --messenger or both')
  },
  method: 'PUT',
  path: () => ['identities'],
  body: ({ community, messenger }) => ({ communityId: community, messengerId: messenger }),
})

interface EraseOptions extends ActOptions {
  readonly yes?: true
}

/** `latchkey erase`: ends what a customer has, and removes from all that is stored who they are. */
export const eraseCommand = apiCommand<EraseOptions>('erase <customer>', {
  about: 'erase a customer: access ends, and nothing that is stored says who they are',
  examples: ['erase cus_1 --reason "asked for it on 3 March" --yes'],
  options: (command) =>
    command
      .option('--reason <text>', 'why, without anything personal: it is kept')
      .option('--yes', 'do it: it can not be undone'),
  check({ options, args: [customerId] }) {
    if (options.yes) return checkReason(options)
    const what = `it ends what ${customerId} has, and removes who they are from all that is stored`
    throw new LatchkeyError('usage', `erase needs --yes: ${what}, which can not be undone`)
  },
  whereNone: 'new database',
  async run({ api, options, args: [customerId = ''], context, show }) {
    const { environment, reason } = options
    const sent = { query: { environment }, body: { reason } }
    const erased = await api.send<ErasureJson>('DELETE', pathOf('customers', customerId), sent)
    show(erased, () => erasureText(erased))
    if (!erased.wasKnown) await noteOtherEnvironment(erased, api, options, context)
  },
})

function erasureText({ customerId, environment, eventId, erasedAt, wasKnown }: ErasureJson): string {
  const erased = `erased ${customerId} in ${environment} at ${erasedAt} (${eventId})\n`
  if (wasKnown) return erased
  return `${erased}No purchase and no detail of theirs was stored: check that the id and the environment are right.\n`
}

/** @throws {LatchkeyError} `usage` by the rule that holds over HTTP too */
async function checkReason({ reason }: ActOptions): Promise<void> {
  if (reason === undefined) return
  const { reasonText } = await import('../handlers/customers.js')
  checkOption('--reason', reasonText, reason)
}

function checkOption(name: string, rule: z.ZodType<string>, text: string | undefined): void {
  const parsed = rule.safeParse(text ?? null)
  if (text !== undefined && !parsed.success)
    throw new LatchkeyError('usage', `${name} ${parsed.error.issues[0]?.message}`)
}

/** Null where nothing is known of a customer, and where the key may not ask: a hint must not fail the command. */
function readKnown(api: Api, customerId: string, environment: Environment): Promise<CustomerJson | null> {
  return api.get<CustomerJson>(pathOf('customers', customerId), { environment }).catch(() => null)
}

/**
 * Notes after an act that the customer is known in the other environment alone, unless the environment was named.
 * `eventId`: the act's own, which makes nobody known.
 */
async function noteOtherEnvironment(
  { customerId, environment, eventId }: Pick<ActJson, 'customerId' | 'environment' | 'eventId'>,
  api: Api,
  options: ApiOptions,
  { err }: CliContext,
): Promise<void> {
  if (options.environment !== undefined || options.json) return
  const here = await readKnown(api, customerId, environment)
  if (here?.sources.some((source) => source.eventId !== eventId)) return
  const other = otherThan(environment)
  const there = await readKnown(api, customerId, other)
  if (there === null) return
  const active = there.sources.filter((source) => source.active).map(({ productId }) => productId)
  const what = active.length === 0 ? 'is known' : `has ${[...new Set(active)].join(', ')}`
  err(
    `note: ${customerId} ${what} in ${other}, and has nothing else in ${environment}: to act there, add --environment ${other}\n`,
  )
}

/** Notes after a refusal to revoke in which environment there is such a grant, unless the environment was named. */
async function noteOtherGrant(
  customerId: string,
  productId: string,
  api: Api,
  options: ApiOptions,
  { err }: CliContext,
): Promise<void> {
  if (options.environment !== undefined || options.json) return
  for (const environment of ['live', 'sandbox'] as const) {
    const known = await readKnown(api, customerId, environment)
    const isGranted = known?.sources.some(
      (source) => source.kind === 'manual' && source.active && source.productId === productId,
    )
    if (isGranted)
      err(
        `note: ${productId} was granted to ${customerId} in ${environment}: add --environment ${environment}\n`,
      )
  }
}
