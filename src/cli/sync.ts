import { counted, durationText } from '../doctor/finding.js'
import { checkSync } from '../doctor/sync.js'
import { CHANGE_TYPES } from '../entitlements/entitlement.js'
import { LatchkeyError } from '../errors.js'
import type {
  MembershipJson,
  MessageJson,
  MessagesReplayedJson,
  SyncCheckJson,
  SyncPlanJson,
  SyncRunJson,
  SyncStatusJson,
  WebhookTestJson,
} from '../handlers/sync.js'
import type { ShownState } from '../store/membership.js'
import type { Api } from './api.js'
import {
  apiCommand,
  choice,
  flag,
  type GivenApiCommand,
  isoTime,
  parseBetween,
  parseId,
  parseInstant,
  pathOf,
  type ValuesOf,
  value,
  withDefault,
} from './command.js'
import { findingLine, linesText, type Paint, table, tableLines } from './text.js'

/** Either no daemon runs, or another instance follows access. */
const NOT_LEADING =
  'nothing is given, taken or sent from here: no daemon runs, or another instance does that. Limits and outages are not known'

const STATES: readonly ShownState[] = ['settled', 'due', 'retrying', 'waiting', 'parked', 'unconfirmed']

const BOTH = 'only this environment (default: both)'

/** The API's maximum page size. */
const LISTED = 100

/** `latchkey sync status`: the state of sync; with a filter, the memberships that match. */
const syncStatusCommand = apiCommand('sync status', {
  kind: 'asks',
  about: 'show the state of roles, groups and the outbound webhooks, with a daemon or without',
  examples: ['sync status', 'sync status --state parked', 'sync status --customer cus_1'],
  environment: BOTH,
  options: {
    state: choice('<state>', 'list the memberships in this state', STATES),
    target: value('<target>', 'list the memberships of a role or group, such as discord:1:2', parseId),
    customer: value('<id>', 'list the memberships of a customer', parseId),
  },
  async run(given) {
    const { api, options, context, show } = given
    const { state, target, customer, environment } = options
    if (state !== undefined || target !== undefined || customer !== undefined) {
      const query = { environment, state, target, customerId: customer, limit: LISTED }
      return showPage('/sync/memberships', query, membershipCells, 'there is no such membership', given)
    }
    const status = await api.get<SyncStatusJson>('/sync', { environment })
    if (!status.leads && !options.json) context.err(`note: ${NOT_LEADING}\n`)
    show(status, (paint) => statusText(status, context.now(), paint))
  },
})

function membershipCells(one: MembershipJson): readonly string[] {
  const { environment, target, accountId, customerId, state, desired, parked, lastError } = one
  const why = (parked ?? lastError)?.message ?? ''
  return [environment, target, accountId, customerId, desired ? 'in' : 'out', state, why]
}

const SAMPLE_SIZE = 20

/** `latchkey sync plan`: the calls that would be made; makes none. */
const syncPlanCommand = apiCommand('sync plan', {
  kind: 'asks',
  about: 'show the calls that would be made to the platforms; makes none',
  examples: ['sync plan', 'sync plan --all --json'],
  environment: BOTH,
  options: { all: flag(`show all of them (default: the first ${SAMPLE_SIZE})`) },
  async run({ api, options: { all, environment }, context, show }) {
    const plan = await api.get<SyncPlanJson>('/sync/plan', { environment })
    const calls = all ? plan.calls : plan.calls.slice(0, SAMPLE_SIZE)
    show({ ...plan, calls }, (paint) => planText(plan, calls, paint))
    const left = plan.calls.length - calls.length
    if (left > 0) context.err(`note: there are ${left} more: see --all\n`)
  },
})

function planText({ paused, hash, calls }: SyncPlanJson, shown: SyncPlanJson['calls'], paint: Paint): string {
  if (calls.length === 0) return 'there is nothing to do\n'
  const given = calls.filter(({ action }) => action === 'give').length
  const waiting = calls.filter(({ needsConfirmation }) => needsConfirmation).length
  const rows = shown.map(({ action, environment, target, accountId, customerId, needsConfirmation }) => [
    action,
    environment,
    target,
    accountId,
    customerId,
    needsConfirmation ? 'waits for --confirm' : '',
  ])
  return linesText([
    ...tableLines(rows, paint),
    `${given} to give, ${calls.length - given} to take${paused ? '; sync is paused' : ''}`,
    ...(hash === null
      ? []
      : [
          `above the bound: ${counted(waiting, 'removal')}; if that is right, \`latchkey sync run --confirm ${hash}\``,
        ]),
  ])
}

const RUN_OPTIONS = {
  confirm: value('<hash>', 'make the removals above the bound of this plan', parseId),
  sweep: flag('first compare with the real members on the platforms'),
  retry: flag('also retry what waits, is parked or has failed; limit it with:'),
  target: value(
    '<target>',
    'of a role or group, such as discord:1:2, or webhook:<id>, or webhook for all',
    parseId,
  ),
  customer: value('<id>', 'of a customer', parseId),
}

/** `latchkey sync run`: makes the daemon do all due work now. */
const syncRunCommand = apiCommand('sync run', {
  kind: 'changes',
  about: 'make the running daemon do all due work now, and try stopped platforms again',
  examples: ['sync run', 'sync run --retry --target discord:1:2', 'sync run --confirm 5f0c…'],
  environment: 'of this environment (default: both)',
  options: RUN_OPTIONS,
  check: ({ options }) => bodyOf(options),
  async run({ api, options, show }) {
    const { environment } = options
    const request = { query: { environment }, body: bodyOf(options) }
    const run = await api.send<SyncRunJson>('POST', '/sync/run', request)
    show(run, () => runText(run, options.confirm !== undefined))
    if (run.stopped)
      throw new LatchkeyError('checks_failed', 'fix the problem that stopped the calls, then run it again')
  },
})

type RunOptions = ValuesOf<typeof RUN_OPTIONS>

function bodyOf({ confirm, sweep, retry, target, customer: customerId }: RunOptions) {
  if (!retry && (target !== undefined || customerId !== undefined)) {
    throw new LatchkeyError('usage', '--target and --customer choose what to --retry')
  }
  return { confirm, sweep, ...(retry && { retry: { target, customerId } }) }
}

function runText(run: SyncRunJson, isConfirmed: boolean): string {
  if (run.left === undefined) return 'the run takes longer and continues: see `latchkey sync status`\n'
  if (run.paused) {
    const later = '; confirmed removals are made after `latchkey sync resume`'
    return `sync is paused: no call was made${isConfirmed ? later : ''}\n`
  }
  if (!run.leads) return `another instance makes the calls: ${counted(run.left, 'call')} left to it\n`
  const { done: _, paused: _paused, leads: _leads, given, taken, unchanged, ...others } = run
  const further = Object.entries(others).flatMap(([what, count]) => {
    if (count === 0) return []
    return [what === 'messages' ? counted(count, 'message') : `${count} ${what}`]
  })
  return linesText([
    `${given} given, ${taken} taken, ${unchanged} were so already`,
    ...(further.length === 0 ? [] : [`${further.join(', ')}: see \`latchkey sync status\``]),
  ])
}

/** `latchkey sync check`: asks the platforms whether the bots have the rights they need. */
const syncCheckCommand = apiCommand('sync check', {
  kind: 'asks the daemon',
  about: 'ask the platforms whether the bots have the rights they need, through the running daemon',
  examples: ['sync check'],
  environment: null,
  async run({ api, show }) {
    const check = await api.get<SyncCheckJson>('/sync/check')
    show(check, (paint) =>
      check.findings
        .map(({ about: what, ok, message: detail }) =>
          findingLine({ level: ok ? 'ok' : 'fail', what, detail, todo: null }, paint),
        )
        .join(''),
    )
    const failed = check.findings.filter(({ ok }) => !ok).length
    if (failed > 0) throw new LatchkeyError('checks_failed', `${counted(failed, 'check')} failed`)
  },
})

/** `latchkey sync pause`: starts no more calls, even after a restart. */
const syncPauseCommand = apiCommand('sync pause', {
  kind: 'changes',
  about: 'stop giving, taking and sending until it is resumed',
  examples: ['sync pause'],
  environment: null,
  run: async ({ api, show }) => show(await api.send('POST', '/sync/pause'), () => 'paused\n'),
})

/** `latchkey sync resume`: does the work that has gathered meanwhile. */
const syncResumeCommand = apiCommand('sync resume', {
  kind: 'changes',
  about: 'continue after a pause, or after a restore',
  examples: ['sync resume'],
  environment: null,
  run: async ({ api, show }) => show(await api.send('POST', '/sync/resume'), () => 'resumed\n'),
})

/** `latchkey sync messages`: the log of the outbound webhooks. */
const syncMessagesCommand = apiCommand('sync messages', {
  kind: 'asks',
  about: 'show the messages of the outbound webhooks and the last attempt of each, newest first',
  examples: [
    'sync messages',
    'sync messages --webhook crm --status failed',
    'sync messages --id msg_1f0c_7 --json',
  ],
  environment: BOTH,
  options: {
    webhook: value('<id>', 'only to this address', parseId),
    status: choice('<status>', 'only with this status', ['pending', 'delivered', 'failed']),
    type: choice('<type>', 'only of this type', CHANGE_TYPES),
    customer: value('<id>', 'only about this customer', parseId),
    id: value('<message>', 'only with this webhook-id', parseId),
    limit: withDefault(value('<number>', 'how many, up to 100', parseBetween(1, LISTED)), 20),
  },
  run(given) {
    const { webhook, status, type, customer: customerId, id, limit, environment } = given.options
    const query = { environment, webhook, status, type, customerId, id, limit }
    return showPage('/sync/messages', query, messageCells, 'there is no such message', given)
  },
})

/** Shows the first page of a list, and says if there is more. */
async function showPage<Item>(
  path: string,
  query: Parameters<Api['get']>[1] & { readonly limit: number },
  cellsOf: (item: Item) => readonly string[],
  none: string,
  { api, options, context, show }: GivenApiCommand<Record<never, never>>,
): Promise<void> {
  const { items, pagination } = await api.get<{
    readonly items: readonly Item[]
    readonly pagination: { readonly hasMore: boolean }
  }>(path, query)
  show({ items, hasMore: pagination.hasMore }, (paint) =>
    items.length === 0 ? `${none}\n` : table(items.map(cellsOf), paint),
  )
  if (pagination.hasMore && !options.json) context.err(`note: there are more than these ${query.limit}\n`)
}

function messageCells(one: MessageJson): readonly string[] {
  const { id, webhook, type, customerId, productId, status, nextAttemptAt, attempts } = one
  const last = attempts.at(-1)
  const result = last === undefined ? '' : `${last.at} ${last.status ?? last.error} in ${last.ms} ms`
  const next = last === undefined || nextAttemptAt === null ? '' : `again at ${nextAttemptAt}`
  return [id, webhook, type, customerId, productId, status, result, next]
}

/** `latchkey sync replay`: sends messages of the log again. */
const syncReplayCommand = apiCommand('sync replay [message]', {
  kind: 'changes',
  about:
    'send messages of the outbound webhooks and the later ones of the same customers again, under the same ids',
  arguments: { message: 'the webhook-id of one message' },
  examples: ['sync replay msg_1f0c_7', 'sync replay --webhook crm --from 2026-03-01T00:00:00Z'],
  environment: 'of this environment (default: both)',
  options: {
    from: value('<time>', 'all about changes from this time on', parseInstant),
    to: value('<time>', '... and before this time (default: now)', parseInstant),
    webhook: value('<id>', 'only to this address (default: all)', parseId),
  },
  check({ args: [id], options: { from, webhook } }) {
    if (id !== undefined && from !== undefined)
      throw new LatchkeyError('usage', 'name a message or --from, not both')
    if (id === undefined && from === undefined) {
      const todo = webhook === undefined ? 'name a message, or say from when' : 'say from when'
      throw new LatchkeyError('usage', `${todo}: --from <time>`)
    }
  },
  async run({ api, args: [id], options: { from, to, webhook, environment }, show }) {
    const ids = id === undefined ? undefined : [id]
    const body = { ids, from: isoTime(from), to: isoTime(to), webhook }
    const request = { query: { environment }, body }
    const { messages } = await api.send<MessagesReplayedJson>('POST', '/sync/messages/replay', request)
    show({ messages }, () => `${counted(messages, 'message')} to send again\n`)
  },
})

/** `latchkey sync test`: sends a test message to one address. */
const syncTestCommand = apiCommand('sync test <webhook>', {
  kind: 'changes',
  about: 'send a test message to an outbound webhook, and show the answer',
  arguments: { webhook: 'the id of the address; default, if it is in sync.webhook' },
  examples: ['sync test default', 'sync test crm --type entitlement.revoked'],
  environment: 'the environment that the message names (default: the first of the address)',
  options: {
    type: choice('<type>', 'the type of the message (default: entitlement.granted)', CHANGE_TYPES),
  },
  async run({ api, args: [webhook = ''], options: { type, environment }, show }) {
    const path = pathOf('sync', 'webhooks', webhook, 'test')
    const result = await api.send<WebhookTestJson>('POST', path, { body: { type, environment } })
    const { id, delivered, status, error, ms } = result
    show(result, () => `${id}: ${status === null ? error : `answered ${status}`} in ${ms} ms\n`)
    if (!delivered) throw new LatchkeyError('checks_failed', 'the receiver did not take the message')
  },
})

type TargetJson = SyncStatusJson['targets'][number]

/** Each target with its memberships, the limits in force, and the findings that `latchkey doctor` shows too. */
export function statusText(status: SyncStatusJson, now: number, paint: Paint): string {
  const { platforms, targets, webhooks } = status
  // A sweep is of roles and groups alone.
  const sweptAt = targets.length === 0 ? null : status.sweptAt
  const limits = [
    ...platforms.map(({ platform: name, ...one }) => ({ name, ...one })),
    ...targets.map(({ target: name, ...one }) => ({ name, ...one })),
  ].flatMap(({ name, state, until, reason }) =>
    // A limit that has ended stays known until the next call is answered.
    state === 'limited' && until !== null && Date.parse(until) > now
      ? [`${name}: no call before ${until}: ${reason?.message}`]
      : [],
  )
  return linesText([
    ...tableLines(targets.map(targetCells), paint),
    ...(targets.length === 0 && webhooks.length === 0 ? ['no product has a role or group'] : []),
    ...limits,
    ...checkSync(status, now).map((finding) => findingLine(finding, paint).trimEnd()),
    ...(sweptAt === null ? [] : [`last sweep ${durationText(Math.max(0, now - Date.parse(sweptAt)))} ago`]),
  ])
}

function targetCells({ environment, target, memberships }: TargetJson): readonly string[] {
  const counts = Object.entries(memberships).filter(([state, count]) => count > 0 || state === 'settled')
  return [environment, target, counts.map(([state, count]) => `${count} ${state}`).join(', ')]
}

export const syncCommands = [
  syncStatusCommand,
  syncPlanCommand,
  syncRunCommand,
  syncCheckCommand,
  syncPauseCommand,
  syncResumeCommand,
  syncMessagesCommand,
  syncReplayCommand,
  syncTestCommand,
]
