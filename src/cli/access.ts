import { counted } from '../doctor/finding.js'
import { LatchkeyError } from '../errors.js'
import type {
  AccessJson,
  EntitlementJson,
  FeatureAccessJson,
  FeatureJson,
  ProductAccessJson,
} from '../handlers/answers.js'
import type { FoundCustomerJson } from '../handlers/customers.js'
import type { ExplanationJson } from '../handlers/entitlements.js'
import type { Environment } from '../provider/event.js'
import type { Api } from './api.js'
import { apiCommand, isoTime, limitTo, parseId, parseInstant, showPage, value } from './command.js'
import { otherThan } from './context.js'
import { isUnknownIn, pathOf, unknownProductText } from './known.js'
import { linesText, type Paint, table, tableLines } from './text.js'

/** Somebody who buys again and again has hundreds. */
const SOURCES_SHOWN = 3

const AT = { at: value('<time>', 'as of this time (default: now)', parseInstant) }

export const accessCommands = [
  apiCommand('check <customer> [product]', {
    kind: 'asks',
    about: 'show what a customer may use',
    examples: [
      'check cus_1',
      'check --email ada@example.com',
      'check cus_1 pro_1 --at 2026-01-31T00:00:00Z',
      'check cus_1 --feature export',
    ],
    arguments: { product: 'the product id (default: every product)' },
    options: { ...AT, feature: value('<id>', 'a feature instead of a product', parseId) },
    check({ options, args: [, productId] }) {
      if (productId !== undefined && options.feature !== undefined)
        throw new LatchkeyError('usage', 'pass a product or --feature, not both')
    },
    async run({ api, options, args: [customerId = '', productId], context, show }) {
      const { feature, json } = options
      const at = isoTime(options.at)
      const path = pathOf('entitlements', customerId)
      const below = feature === undefined ? [productId ?? []].flat() : ['features', feature]
      const asked = `${path}${pathOf(...below)}`
      const query = { environment: api.environment, at }
      const answer = await api.get<AccessJson | ProductAccessJson | FeatureAccessJson>(asked, query)
      const { environment } = answer
      const isNothing =
        'entitlements' in answer
          ? answer.entitlements.length === 0
          : 'status' in answer && answer.status === 'none'
      const isNobody =
        'entitlements' in answer && isNothing && (await isUnknownIn(api, environment, customerId))
      const other =
        json || !isNothing ? null : await readOther<AccessJson>(api, path, otherThan(environment), at)
      show(isNobody ? { ...answer, unknown: true } : answer, (paint) => {
        if ('entitlements' in answer) return allText(answer, other, isNobody, paint)
        return 'productId' in answer ? oneText(answer, other, paint) : table([featureCells(answer)], paint)
      })
      if (json) return
      const unknown = productId === undefined ? unknownFeatureText(feature) : unknownProductText(productId)
      if ('unknown' in answer) context.err(`warning: ${unknown}\n`)
      const isConfigured = api.config?.endpoints.some((endpoint) => endpoint.environment === environment)
      if (isConfigured === false) context.err(`note: no ${environment} endpoint is configured\n`)
    },
  }),
  apiCommand('customers <text>', {
    kind: 'asks',
    about: 'find customers by the beginning of an id, reference, email, account or user name',
    examples: ['customers cus_1', 'customers ada@'],
    arguments: { text: 'what it begins with; a key without scope write finds ids and references alone' },
    options: { limit: limitTo(20) },
    run: (given) => {
      const { api, args, options } = given
      const query = { environment: api.environment, query: args[0], limit: options.limit }
      const cellsOf = ({ customerId, matched }: FoundCustomerJson) => [customerId, matched.by, matched.value]
      return showPage('/customers', query, cellsOf, 'no customer matches', given)
    },
  }),
  apiCommand('explain <customer> <product>', {
    kind: 'asks',
    about: 'show why a customer may or may not use a product, event by event',
    examples: [
      'explain cus_1 pro_1',
      'explain --payment pay_1 pro_1',
      'explain cus_1 pro_1 --at 2026-01-31T00:00:00Z',
    ],
    options: AT,
    async run({ api, options, args: [customerId = '', productId = ''], context, show }) {
      const at = isoTime(options.at)
      const path = pathOf('entitlements', customerId, productId, 'explanation')
      const explanation = await api.get<ExplanationJson>(path, { environment: api.environment, at })
      show(explanation, (paint) => explanationText(explanation, paint))
      if (options.json || explanation.entitlement.status !== 'none') return
      const environment = otherThan(explanation.environment)
      const status = (await readOther<ExplanationJson>(api, path, environment, at))?.entitlement.status
      if (status !== undefined && status !== 'none')
        context.out(`In ${environment}: ${productId} ${status} (--environment ${environment} explains it)\n`)
    },
  }),
]

const unknownFeatureText = (id = '') => `no product in the config gives the feature ${id}`

/** What they have in the other environment; null if the key may not ask, since a hint must not fail the command. */
function readOther<Answer>(api: Api, path: string, environment: Environment, at: string | undefined) {
  return api.get<Answer>(path, { environment, at }).catch(() => null)
}

function allText(
  { customerId, environment, entitlements, features }: AccessJson,
  other: AccessJson | null,
  isUnknown: boolean,
  paint: Paint,
) {
  if (entitlements.length > 0) {
    const gated = section('Features', tableLines(features.map(featureCells), paint))
    return `${table(entitlements.map(entitlementCells), paint)}${gated === '' ? '' : `\n${gated}`}`
  }
  const elsewhere = productsText(other?.entitlements ?? [])
  const hint = elsewhere === null ? '' : ` (in ${other?.environment}: ${elsewhere})`
  const said = isUnknown ? `nothing is known about ${customerId}` : `${customerId} has no access`
  return `${said} in ${environment}${hint}\n`
}

function oneText(entitlement: EntitlementJson, other: AccessJson | null, paint: Paint): string {
  const { productId, status } = entitlement
  if (status !== 'none') return table([entitlementCells(entitlement)], paint)
  const elsewhere = other?.entitlements.find((one) => one.productId === productId)
  const hint = elsewhere === undefined ? '' : `(in ${other?.environment}: ${elsewhere.status})`
  return table([[productId, status, hint]], paint)
}

/** `export  active  (by pro_1)`, or `export  inactive  until 2026-01-31T00:00:00.000Z  (pro_1 or pro_2 would give it)`. */
function featureCells({ id, active, until, productIds }: FeatureJson): string[] {
  const given = active ? `(by ${productIds.join(', ')})` : `(${productIds.join(' or ')} would give it)`
  const end = until === null ? '' : `until ${until}`
  return [id, active ? 'active' : 'inactive', end, productIds.length === 0 ? '' : given]
}

/** `pro_1  active  past due  since 2026-01-31T00:00:00.000Z  (payment pay_2; ended: payment pay_1)`. */
function entitlementCells({ productId, status, pastDue, since, until, sources }: EntitlementJson): string[] {
  const namesOf = (isActive: boolean) =>
    firstFew(sources.flatMap(({ active, kind, id }) => (active === isActive ? [`${kind} ${id}`] : [])))
  const [active, ended] = [namesOf(true), namesOf(false)]
  const reasons = [active, ended && `ended: ${ended}`].filter((text) => text !== '').join('; ')
  // An announced cancellation has no known end until it takes effect.
  const paid = status === 'ending' && until === null ? paidUntil(sources) : null
  const times = Object.entries({ since, until, 'paid until': paid })
  const known = times.flatMap(([name, time]) => (time === null ? [] : [`${name} ${time}`])).join('  ')
  return [productId, status, pastDue ? 'past due' : '', known, reasons && `(${reasons})`]
}

/** `payment pay_1, payment pay_2, payment pay_3 and 105 more`: the rest is in the answer as JSON. */
function firstFew(names: readonly string[]): string {
  const shown = names.slice(0, SOURCES_SHOWN).join(', ')
  return names.length > SOURCES_SHOWN ? `${shown} and ${names.length - SOURCES_SHOWN} more` : shown
}

/** The last end of a paid period; null if one is not known. */
function paidUntil(sources: EntitlementJson['sources']): string | null {
  const ends = sources.filter(({ active }) => active).map(({ until, periodEnd }) => until ?? periodEnd)
  return ends.includes(null) ? null : (ends.sort().at(-1) ?? null)
}

/** `pro_1, pro_2`: the products with access, or else all products with their status; null: there are none. */
function productsText(entitlements: readonly EntitlementJson[]): string | null {
  if (entitlements.length === 0) return null
  const active = entitlements.filter((one) => one.active)
  if (active.length > 0) return active.map(({ productId }) => productId).join(', ')
  return entitlements.map(({ productId, status }) => `${productId} ${status}`).join(', ')
}

type SourceJson = ExplanationJson['sources'][number]

/** An explanation as text: the summary, then each source with its events in the order in which they count. */
function explanationText(explanation: ExplanationJson, paint: Paint): string {
  const { summary, sources, held, blocks, erasures, ends, memberships } = explanation
  const sentences = (list: readonly { readonly sentence: string }[]) => list.map(({ sentence }) => sentence)
  const own = held.filter(({ customerId }) => customerId !== null)
  const waiting = own.map(({ id, type, sentence }) => `${id}  ${type}  ${sentence}`)
  const sections = [
    `${summary}\n`,
    ...sources.map((source) => sourceText(source, paint)),
    section('Waiting', [...waiting, ...anybodysLine(held.length - own.length, explanation)]),
    section('Blocks', sentences(blocks)),
    section('Erased', sentences(erasures)),
    section('Upcoming ends', sentences(ends)),
    section('Roles and groups', tableLines(memberships.map(membershipCells), paint)),
  ]
  return sections.filter((text) => text !== '').join('\n')
}

/** `discord:1:2  42  waiting  Discord account 42 should get the role, …`. */
function membershipCells({ target, accountId, state, sentence }: ExplanationJson['memberships'][number]) {
  return [target, accountId ?? '', state, sentence]
}

/** Held events that may be anybody's are many in some stores, and the same for every customer. */
function anybodysLine(count: number, { productId, environment }: ExplanationJson): readonly string[] {
  if (count === 0) return []
  const name = count === 1 ? 'names no customer' : 'name no customer'
  const list = `latchkey events list --disposition held --environment ${environment}`
  return [`${counted(count, 'held event')} of ${productId} ${name}: ${list}`]
}

/** A heading and its lines; nothing if there are none. */
function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : linesText([title, ...lines.map((line) => `  ${line}`)])
}

function sourceText({ kind, id, rail, intervals, events }: SourceJson, paint: Paint): string {
  const paid =
    kind === 'manual' ? '' : rail === 'unknown' ? ' (payment method unknown)' : ` (paid by ${rail})`
  const access = intervals.map(({ productId, from, until, reason }) => {
    const end = until === null ? 'no known end' : `until ${until}  ${reason}`
    return `access to ${productId}  from ${from}  ${end}`
  })
  // Two lines per event: its facts in columns, and its effect below them.
  const facts = events.map(({ createdAt, id: eventId, type, disposition, row }) => {
    const rule = row === null ? 'no policy rule' : `${row.rail}: ${row.on === 'grant' ? 'grants' : 'revokes'}`
    return [createdAt, eventId, type, disposition, rule]
  })
  const eventLines = tableLines(facts, paint).flatMap((line, index) => [
    line,
    `    ${events[index]?.sentence ?? ''}`,
  ])
  return section(`${kind} ${id}${paid}`, [...(access.length === 0 ? ['no access'] : access), ...eventLines])
}
