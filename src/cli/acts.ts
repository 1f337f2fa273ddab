import { InvalidArgumentError } from 'commander'
import { LatchkeyError } from '../errors.js'
import type { ActJson, ErasureJson } from '../handlers/customers.js'
import { ACCOUNT_FACTS, type AccountFact, ofEach, PLATFORMS } from '../provider/accounts.js'
import {
  apiCommand,
  flag,
  type GivenApiCommand,
  instantFrom,
  isoTime,
  parser,
  required,
  value,
} from './command.js'
import { type CliContext, otherThan } from './context.js'
import { isUnknownIn, isUnknownProduct, pathOf, unknownProductText } from './known.js'
import { withProgress } from './progress.js'
import { type Paint, table } from './text.js'

const reason = value('<text>', 'the reason, stored with the change', parseReason)

/** Checked before a database is made for it, like the other options of acts; the API checks the rest. */
function parseReason(text: string): string {
  if (text.trim() !== '') return text
  throw new InvalidArgumentError('It must not be empty.')
}

const ACCOUNTS = Object.values(PLATFORMS)
const ACCOUNT_FORMS = [...new Set(ACCOUNTS.map(({ idForm }) => idForm))].join(', or ')
const parseAccount = parser(`an account id: ${ACCOUNT_FORMS}`, (text) =>
  ACCOUNTS.some(({ id }) => id.test(text)) ? text : null,
)

type OptionOf<Fact extends string> = Fact extends `${infer Name}Id` ? Name : never
type AccountOption = OptionOf<AccountFact>

/** `--community` for `communityId`, and so on. */
export const ACCOUNT_OPTIONS = ACCOUNT_FACTS.map((fact) => fact.slice(0, -'Id'.length)) as AccountOption[]

export function accountsNamed(options: Readonly<Partial<Record<AccountOption, string | undefined>>>) {
  const named = ACCOUNT_OPTIONS.map((option) => [`${option}Id`, options[option]] as const)
  return Object.fromEntries(named.filter(([, id]) => id !== undefined))
}

type GivenAct = GivenApiCommand<{ readonly reason: typeof reason }>

/**
 * What makes the ids of an act look like mistakes: a customer of whom nothing is known here, or only in the other
 * environment; a product that nobody knows. Asked before the act, which makes them known.
 */
async function doubtsAbout({ api, options }: GivenAct, customerId: string, productId?: string) {
  const { environment } = api
  if (options.json || environment === undefined) return []
  const other = otherThan(environment)
  const doubts: string[] = []
  if (await isUnknownIn(api, environment, customerId)) {
    if (!(await isUnknownIn(api, other, customerId)))
      return [`note: ${customerId} was known only in ${other}: add --environment ${other} to change it there`]
    doubts.push(`warning: nothing was known about ${customerId} in ${environment}: check the id`)
  }
  if (productId !== undefined && (await isUnknownProduct(api, environment, productId)))
    doubts.push(`warning: ${unknownProductText(productId)}: check the id`)
  return doubts
}

function warn(doubts: readonly string[], { err }: CliContext): void {
  for (const doubt of doubts) err(`${doubt}\n`)
}

/** Posts a change to a customer, and shows what the customer may use afterwards. */
async function act(
  given: GivenAct,
  method: 'POST' | 'PUT' | 'DELETE',
  below: readonly string[],
  body: object = {},
): Promise<void> {
  const { api, options, args, context, show } = given
  const { environment, reason: why } = options
  const [customerId = '', productId] = args
  // A grant or block that is not there is an error anyway.
  const doubts = await doubtsAbout(given, customerId, method === 'DELETE' ? undefined : productId)
  const sent = { query: { environment }, body: { reason: why, ...body } }
  const answer = await api.send<ActJson>(method, pathOf('customers', customerId, ...below), sent)
  show(answer, (paint) => actText(answer, paint))
  warn(doubts, context)
}

function actText({ eventId, customerId, environment, entitlements }: ActJson, paint: Paint): string {
  const end = (until: string | null) => (until === null ? '' : `until ${until}`)
  const rows = entitlements.map(({ productId, status, until }) => [productId, status, end(until)])
  const access = rows.length === 0 ? `${customerId} has no access in ${environment}\n` : table(rows, paint)
  return `done in ${environment}: ${eventId}\n${access}`
}

const parseUntil = parser(
  'an ISO 8601 time, such as 2026-01-31T00:00:00Z, or a duration, such as 30d',
  (text, { now }) => instantFrom(text, now(), 1),
)

export const actsCommands = [
  apiCommand('grant <customer> <product>', {
    kind: 'changes',
    about: 'grant a product to a customer by hand',
    examples: ['grant cus_1 pro_1 --until 30d --reason "support case 17"'],
    options: {
      until: value('<time>', 'a time, or a duration such as 30d (default: no end)', parseUntil),
      reason: required(reason),
    },
    run: (given) =>
      act(given, 'POST', ['grants'], { productId: given.args[1], until: isoTime(given.options.until) }),
  }),
  apiCommand('revoke <customer> <product>', {
    kind: 'changes',
    about: 'revoke a manual grant',
    examples: ['revoke cus_1 pro_1 --reason "trial is over"'],
    options: { reason },
    run: (given) => act(given, 'DELETE', ['grants', given.args[1] ?? '']),
  }),
  apiCommand('block <customer> [product]', {
    kind: 'changes',
    about: 'block a customer, for one product or for all',
    examples: ['block cus_1 --reason "chargeback under review"'],
    arguments: { product: 'the product id (default: every product)' },
    options: { reason: required(reason) },
    run: (given) => act(given, 'PUT', blockPath(given.args[1])),
  }),
  apiCommand('unblock <customer> [product]', {
    kind: 'changes',
    about: 'lift the block on one product, or every block on a customer',
    examples: ['unblock cus_1 --reason "review is over"'],
    arguments: { product: 'the product id (default: every block)' },
    options: { reason },
    run: (given) => act(given, 'DELETE', blockPath(given.args[1])),
  }),
  apiCommand('link <customer>', {
    kind: 'changes',
    about: "link a customer's platform accounts; those you leave out stay as they are",
    examples: ['link cus_1 --community 80351110224678912'],
    options: {
      ...ofEach(ACCOUNT_OPTIONS, (option) => value('<id>', `the id of the ${option} account`, parseAccount)),
      reason,
    },
    check({ options }) {
      if (Object.keys(accountsNamed(options)).length > 0) return
      const names = ACCOUNT_OPTIONS.map((option) => `--${option}`)
      throw new LatchkeyError('usage', `pass ${names.join(' or ')}`)
    },
    run: (given) => act(given, 'PUT', ['identities'], accountsNamed(given.options)),
  }),
  apiCommand('erase <customer>', {
    kind: 'changes',
    about: 'erase a customer: end their access and remove their personal data',
    examples: ['erase cus_1 --reason "asked for it on 3 March" --yes'],
    options: {
      reason: value('<text>', 'the reason, without personal data: it is stored', parseReason),
      yes: flag('confirm: this cannot be undone'),
    },
    check({ options, args: [customerId] }) {
      if (options.yes) return
      const what = `it ends the access of ${customerId || 'the customer'} and removes their personal data from everything stored`
      throw new LatchkeyError('usage', `erase needs --yes: ${what}, which cannot be undone`)
    },
    async run(given) {
      const { api, options, args, context, show } = given
      const { environment, reason: why } = options
      const [customerId = ''] = args
      const doubts = await doubtsAbout(given, customerId)
      const sent = { query: { environment }, body: { reason: why } }
      const erased = await withProgress(context, (progress) => {
        progress.show(null, `erasing ${customerId} …`)
        return api.send<ErasureJson>('DELETE', pathOf('customers', customerId), sent)
      })
      show(erased, () => erasureText(erased))
      // The answer itself says that nothing was known.
      warn(
        doubts.filter((doubt) => doubt.startsWith('note')),
        context,
      )
    },
  }),
]

const blockPath = (productId: string | undefined) => ['blocks', productId ?? []].flat()

function erasureText({ customerId, environment, eventId, erasedAt, wasKnown }: ErasureJson): string {
  const erased = `erased ${customerId} in ${environment} at ${erasedAt} (${eventId})\n`
  if (wasKnown) return erased
  return `${erased}Nothing was stored about this customer: check the id and the environment.\n`
}
