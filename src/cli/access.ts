import type { AccessJson, EntitlementJson } from '../handlers/answers.js'
import type { ExplanationJson } from '../handlers/entitlements.js'
import type { Environment } from '../provider/event.js'
import type { Api, ApiOptions } from './api.js'
import { alignColumns } from './columns.js'
import { apiCommand, parseInstant, pathOf } from './command.js'
import { otherThan } from './context.js'

interface AtOptions extends ApiOptions {
  /** Epoch milliseconds. */
  readonly at?: number
}

const timeOf = (at: number | undefined): string | null =>
  at === undefined ? null : new Date(at).toISOString()

/** `latchkey check`: what a customer may use. No access is an answer too, and no failure. */
export const checkCommand = apiCommand<AtOptions>('check <customer> [product]', {
  about: 'show what a customer may use',
  examples: ['check cus_1', 'check cus_1 pro_1 --at 2026-01-31T00:00:00Z'],
  arguments: { product: 'the product id (default: every product)' },
  options: (command) => command.option('--at <time>', 'as of that instant (default: now)', parseInstant),
  async run({ api, options, args: [customerId = '', productId], context, show }) {
    const at = timeOf(options.at)
    const path = pathOf('entitlements', customerId)
    if (options.json) {
      const asked = productId === undefined ? path : `${path}${pathOf(productId)}`
      return show(await api.get(asked, { environment: api.environment, at }), () => '')
    }
    const answer = await api.get<AccessJson>(path, { environment: api.environment, at })
    const other = await readOther(api, path, { environment: otherThan(answer.environment), at })
    context.out(productId === undefined ? allText(answer, other) : oneText(answer, other, productId))
    const isConfigured = api.config?.endpoints.some(({ environment }) => environment === answer.environment)
    if (isConfigured === false)
      context.err(`note: no endpoint of the environment ${answer.environment} is configured\n`)
  },
})

/** What they have in the other environment; null where the key may not ask, since a hint must not fail the command. */
async function readOther<Answer = AccessJson>(
  api: Api,
  path: string,
  query: { readonly environment: Environment; readonly at: string | null },
): Promise<Answer | null> {
  return api.get<Answer>(path, query).catch(() => null)
}

function allText(answer: AccessJson, other: AccessJson | null): string {
  if (answer.entitlements.length > 0) return answer.entitlements.map((one) => entitlementLine(one)).join('')
  const elsewhere = productsText(other?.entitlements ?? [])
  const hint = elsewhere === null ? '' : ` (in ${other?.environment}: ${elsewhere})`
  return `${answer.customerId} has no access in ${answer.environment}${hint}\n`
}

function oneText(answer: AccessJson, other: AccessJson | null, productId: string): string {
  const isAsked = (one: EntitlementJson) => one.productId === productId
  const entitlement = answer.entitlements.find(isAsked)
  if (entitlement !== undefined) return entitlementLine(entitlement)
  const elsewhere = other?.entitlements.find(isAsked)
  const hint = elsewhere === undefined ? '' : `  (in ${other?.environment}: ${elsewhere.status})`
  return `${productId}  none${hint}\n`
}

/** `pro_1  active  past due  since 2026-01-31T00:00:00.000Z  (payment pay_2; ended: payment pay_1)`. */
function entitlementLine({ productId, status, pastDue, since, until, sources }: EntitlementJson): string {
  const namesOf = (isActive: boolean) =>
    sources.filter(({ active }) => active === isActive).map(({ kind, id }) => `${kind} ${id}`)
  const [active, ended] = [namesOf(true), namesOf(false)]
  const grounds = [
    ...(active.length === 0 ? [] : [active.join(', ')]),
    ...(ended.length === 0 ? [] : [`ended: ${ended.join(', ')}`]),
  ]
  const parts = [
    productId,
    status,
    ...(pastDue ? ['past due'] : []),
    ...(since === null ? [] : [`since ${since}`]),
    ...(until === null ? [] : [`until ${until}`]),
    ...(grounds.length === 0 ? [] : [`(${grounds.join('; ')})`]),
  ]
  return `${parts.join('  ')}\n`
}

/** `pro_1, pro_2`: the products with access, or all with their status where none has any; null: there is none at all. */
function productsText(entitlements: readonly EntitlementJson[]): string | null {
  if (entitlements.length === 0) return null
  const active = entitlements.filter((one) => one.active)
  if (active.length > 0) return active.map(({ productId }) => productId).join(', ')
  return entitlements.map(({ productId, status }) => `${productId} ${status}`).join(', ')
}

type SourceJson = ExplanationJson['sources'][number]

/** `latchkey explain`: why a customer may use a product, or may not. Nothing known is an answer too. */
export const explainCommand = apiCommand<AtOptions>('explain <customer> <product>', {
  about: 'show why a customer may use a product, or may not, event by event',
  examples: ['explain cus_1 pro_1', 'explain cus_1 pro_1 --at 2026-01-31T00:00:00Z'],
  options: (command) => command.option('--at <time>', 'as of that instant (default: now)', parseInstant),
  async run({ api, options, args: [customerId = '', productId = ''], context, show }) {
    const at = timeOf(options.at)
    const path = pathOf('entitlements', customerId, productId, 'explanation')
    const explanation = await api.get<ExplanationJson>(path, { environment: api.environment, at })
    show(explanation, () => explanationText(explanation))
    if (options.json || explanation.entitlement.status !== 'none') return
    const environment = otherThan(explanation.environment)
    const status = (await readOther<ExplanationJson>(api, path, { environment, at }))?.entitlement.status
    if (status !== undefined && status !== 'none')
      context.out(`In ${environment}: ${productId} ${status} (--environment ${environment} explains it)\n`)
  },
})

/** An explanation for a person to read: the summary, then each source with its events in the order they count. */
function explanationText({ summary, sources, held, blocks, erasures, ends }: ExplanationJson): string {
  const sentenceOf = ({ sentence }: { readonly sentence: string }) => sentence
  const sections = [
    `${summary}\n`,
    ...sources.map(sourceText),
    listText(
      'Waiting',
      held.map(({ id, type, sentence }) => `${id}  ${type}  ${sentence}`),
    ),
    listText('Blocks', blocks.map(sentenceOf)),
    listText('Erased', erasures.map(sentenceOf)),
    listText('Coming ends', ends.map(sentenceOf)),
  ]
  return sections.filter((section) => section !== '').join('\n')
}

function sourceText({ kind, id, rail, intervals, events }: SourceJson): string {
  const paid = kind === 'manual' ? '' : ` (paid by ${rail === 'unknown' ? 'unknown means' : rail})`
  const access = intervals.map(({ productId, from, until, reason }) => {
    const end = until === null ? 'no end known' : `until ${until}  ${reason}`
    return `  access to ${productId}  from ${from}  ${end}`
  })
  const lines = [
    `${kind} ${id}${paid}`,
    ...(access.length === 0 ? ['  no access'] : access),
    ...eventLines(events),
  ]
  return `${lines.join('\n')}\n`
}

/** Two lines an event: its facts in columns, and what it did below them. */
function eventLines(events: SourceJson['events']): string[] {
  const rows = events.map(({ createdAt, id, type, disposition, row }) => {
    const rule = row === null ? 'no row' : `${row.rail}: ${row.on === 'grant' ? 'grant' : 'take back'}`
    return [createdAt, id, type, disposition, rule]
  })
  return alignColumns(rows).flatMap((line, index) => [`  ${line}`, `      ${events[index]?.sentence ?? ''}`])
}

function listText(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : `${[title, ...lines.map((line) => `  ${line}`)].join('\n')}\n`
}
