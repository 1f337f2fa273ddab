import type { z } from 'zod'
import { END_REASON_TEXT, STATUS_TEXT } from '../../entitlements/end-reasons.js'
import { LatchkeyError } from '../../errors.js'
import type { changeAnswer, summaryAnswer } from '../../handlers/changes.js'
import type { EventDetailJson } from '../../handlers/events.js'
import { MANUAL_ID_PREFIX } from '../../provider/ids.js'
import type { Api, Page } from '../api.js'
import {
  apiCommand,
  checkStretch,
  choice,
  flag,
  instantFrom,
  isoTime,
  LISTED,
  limitTo,
  parseId,
  parser,
  value,
} from '../command.js'
import { pathOf } from '../known.js'
import { withProgress } from '../progress.js'
import { listText, table } from '../text.js'

type ChangeJson = z.input<typeof changeAnswer>
type SummaryJson = z.input<typeof summaryAnswer>

const DAY_MS = 86_400_000

const parsePast = parser(
  'an ISO 8601 time, a duration back such as 1d, "yesterday" or "today" (in UTC)',
  (text, { now }) => {
    const today = Math.floor(now() / DAY_MS) * DAY_MS
    if (text === 'today') return today
    return text === 'yesterday' ? today - DAY_MS : instantFrom(text, now(), -1)
  },
)

/** `latchkey changes`: who gained and lost access, and why. An empty list is an answer, not a failure. */
export const changesCommand = apiCommand('changes', {
  kind: 'asks',
  about: 'show who gained and lost access, and why, oldest first',
  examples: [
    'changes --lost --from yesterday --to today',
    'changes --customer cus_1',
    'changes --summary week --from 90d',
  ],
  options: {
    from: value(
      '<time>',
      'changes at or after this time: a time, 1d for a day ago, yesterday, today (default: a day ago, unless --to, --after or a customer is given)',
      parsePast,
    ),
    to: value('<time>', 'changes before this time', parsePast),
    customer: value('<id>', 'only changes of this customer', parseId),
    product: value('<id>', 'only changes of this product', parseId),
    lost: flag('only where access was lost'),
    gained: flag('only where access was gained'),
    after: value('<cursor>', 'continue where the previous list ended'),
    limit: limitTo(1_000, 100_000),
    summary: choice(
      '<day|week>',
      'count gains and losses by day or week, in UTC, instead (default of --from: 30 days ago)',
      ['day', 'week'],
    ),
  },
  check(given) {
    checkStretch(given)
    const { summary, customer, lost, gained, after } = given.options
    if (summary !== undefined && (customer ?? lost ?? gained ?? after) !== undefined)
      throw new LatchkeyError('usage', '--summary takes --from, --to and --product alone')
  },
  async run({ api, options, context, show }) {
    if (options.summary !== undefined) {
      const { summary: by, product: productId, to } = options
      const from = isoTime(options.from ?? (to ?? context.now()) - 30 * DAY_MS)
      const asked = { environment: api.environment, from, to: isoTime(to), by, productId }
      const answer = await api.get<SummaryJson>('/changes/summary', asked)
      show(answer, (paint) => table(answer.periods.map(periodCells), paint))
      return
    }
    const { to, customer, product, lost, gained, after, limit } = options
    const isBounded = to !== undefined || after !== undefined || customer !== undefined
    const from = options.from ?? (isBounded ? undefined : context.now() - DAY_MS)
    const isAsked = (change: ChangeJson) =>
      (product === undefined || change.productId === product) &&
      ((!lost && !gained) || (lost && turnOf(change) === 'lost') || (gained && turnOf(change) === 'gained'))
    const query = { environment: api.environment, customerId: customer, from: isoTime(from), to: isoTime(to) }
    const found: ChangeJson[] = []
    let cursor = after ?? null
    await withProgress(context, async (progress) => {
      let read = 0
      do {
        const page: Page<ChangeJson> = await api.get('/changes', { ...query, limit: LISTED, cursor })
        found.push(...page.items.filter(isAsked))
        read += page.items.length
        progress.show(null, `${read} changes read`)
        cursor = page.pagination.nextCursor
      } while (cursor !== null && found.length < limit)
    })
    const items = found.slice(0, limit)
    // Of a page that had more than the limit leaves, the rest comes after the last one shown.
    const next = found.length > limit ? (items.at(-1)?.cursor ?? null) : cursor
    const acts: Acts = options.json ? new Map() : await actsBehind(items, api)
    const cells = (change: ChangeJson) => changeCells(change, acts)
    show({ items, hasMore: next !== null, next }, listText(items, cells, 'no change matches'))
    if (options.json) return
    if (api.isOverStore) context.err(NO_DAEMON)
    if (next !== null) context.err(`note: there are later changes: continue with --after ${next}\n`)
  },
})

const NO_DAEMON =
  'note: no daemon answers here: if none runs, access that has ended by the clock since it stopped is not listed yet\n'

/** `2026-01-30  1 gained  2 lost  (1 refunded, 1 expired)  7 active`. */
function periodCells({ from, gained, lost, lostBy, active }: SummaryJson['periods'][number]): string[] {
  const reasons = Object.entries(lostBy).map(([reason, count]) => `${count} ${reason}`)
  const why = reasons.length === 0 ? '' : `(${reasons.join(', ')})`
  return [from.slice(0, 10), `${gained} gained`, `${lost} lost`, why, `${active} active`]
}

/** The changes by hand that caused others, by event id. */
type Acts = ReadonlyMap<string, Act>

type Act = NonNullable<EventDetailJson['normalized']>

/** Those behind these changes, as far as the API shows them: their reasons must not fail the command. */
async function actsBehind(changes: readonly ChangeJson[], api: Api): Promise<Acts> {
  const acts = new Map<string, Act>()
  for (const { cause } of changes) {
    const id = cause.eventId
    if (id === null || !id.startsWith(MANUAL_ID_PREFIX) || acts.has(id)) continue
    const path = pathOf('events', id)
    const event = await api.get<EventDetailJson>(path, { environment: api.environment }).catch(() => null)
    // A key that may not read one event may read none.
    if (event === null) break
    if (event.normalized !== null) acts.set(id, event.normalized)
  }
  return acts
}

function turnOf({ before, after }: ChangeJson) {
  if (before.active === after.active) return 'changed'
  return after.active ? 'gained' : 'lost'
}

/** `2026-01-31T12:00:00.000Z  cus_1  pro_1  lost  the payment was refunded  evt_1`. */
function changeCells(change: ChangeJson, acts: Acts): string[] {
  const { at, customerId, productId, cause } = change
  const by = { event: cause.eventId ?? '', clock: 'by the clock', rebuild: 'by a rebuild' }[cause.kind]
  const act = acts.get(cause.eventId ?? '')
  const reason = [reasonOf(change, act?.type), byHandText(act), endText(change)].filter((text) => text !== '')
  return [at, customerId, productId, turnOf(change), reason.join(' '), by]
}

/** `(by ada: chargeback under review)`. */
function byHandText(act: Act | undefined): string {
  if (typeof act?.actor !== 'string') return ''
  const { actor, reason } = act
  return typeof reason === 'string' ? `(by ${actor}: ${reason})` : `(by ${actor})`
}

/** The clock ends access when its time has come, but the row is written when a daemon runs. */
function endText({ before, after, cause }: ChangeJson): string {
  const isEnd = cause.kind === 'clock' && before.active && !after.active
  return isEnd && before.until !== null ? `(ended at ${before.until})` : ''
}

/** @param act the type of the change by hand that caused it, if one did and is known */
function reasonOf({ before, after }: ChangeJson, act: string | undefined): string {
  if (!after.active)
    return act === 'manual.erased' ? 'the customer was erased' : statusText(after.status, act)
  if (!before.active) {
    const end = after.until === null ? '' : `until ${after.until}`
    return before.status === 'blocked' ? `unblocked ${end}`.trimEnd() : end
  }
  if (after.until !== before.until)
    return after.until === null ? 'its end is removed' : `ends at ${after.until}`
  return after.status === 'ending' ? 'will be canceled when its period ends' : after.status
}

/** Why there is no access. */
function statusText(status: ChangeJson['after']['status'], act: string | undefined): string {
  return status === 'revoked' && act !== undefined ? END_REASON_TEXT.revoked : STATUS_TEXT[status]
}
