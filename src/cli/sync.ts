import { Option } from 'commander'
import { counted, durationText, findingLine } from '../doctor/finding.js'
import { LatchkeyError } from '../errors.js'
import type {
  MembershipJson,
  SyncCheckJson,
  SyncPlanJson,
  SyncRunJson,
  SyncStatusJson,
} from '../handlers/sync.js'
import type { ShownState } from '../store/membership.js'
import type { Api, ApiOptions } from './api.js'
import { alignColumns } from './columns.js'
import { apiCommand, parseId } from './command.js'

const STATES: readonly ShownState[] = ['settled', 'due', 'retrying', 'waiting', 'parked', 'unconfirmed']

const BOTH = 'only this environment (default: both)'

/** As many as the API lists at once. */
const LISTED = 100

interface StatusOptions extends ApiOptions {
  readonly state?: ShownState
  readonly target?: string
  readonly customer?: string
}

export const syncStatusCommand = apiCommand<StatusOptions>('sync status', {
  about: 'show how roles, groups and the outbound webhook stand, with a daemon or without',
  examples: ['sync status', 'sync status --state parked', 'sync status --customer cus_1'],
  environment: BOTH,
  options: (command) =>
    command
      .addOption(new Option('--state <state>', 'list the memberships that are so').choices(STATES))
      .option('--target <target>', 'list the memberships of a role or group, such as discord:1:2', parseId)
      .option('--customer <id>', 'list the memberships of a customer', parseId),
  async run({ api, options, context, show }) {
    const { state, target, customer, environment } = options
    if (state !== undefined || target !== undefined || customer !== undefined) {
      const found = await readMemberships(api, options)
      show(found, () => listText(found))
      if (found.hasMore && !options.json) context.err(`note: there are more than these ${LISTED}\n`)
      return
    }
    if (api.isWithin) context.err('note: no daemon runs, so that nothing is given, taken or sent now\n')
    const status = await api.get<SyncStatusJson>('/sync', { environment })
    show(status, () => statusText(status, context.now()))
  },
})

async function readMemberships(api: Api, options: StatusOptions): Promise<MembershipsJson> {
  const { state, target, customer: customerId, environment } = options
  const query = { environment, state, target, customerId, limit: LISTED }
  const { items, pagination } = await api.get<MembershipPageJson>('/sync/memberships', query)
  return { items, hasMore: pagination.hasMore }
}

interface MembershipsJson {
  readonly items: readonly MembershipJson[]
  readonly hasMore: boolean
}
type MembershipPageJson = Pick<MembershipsJson, 'items'> & {
  readonly pagination: { readonly hasMore: boolean }
}

function listText({ items }: MembershipsJson): string {
  if (items.length === 0) return 'there is no such membership\n'
  const rows = items.map(({ desired, parked, lastError, ...one }) => [
    ...[one.environment, one.target, one.accountId, one.customerId],
    ...[desired ? 'in' : 'out', one.state, (parked ?? lastError)?.message ?? ''],
  ])
  return linesText(alignColumns(rows))
}

/** A line for each text; a note only where it is about something. */
function linesText(lines: readonly (string | readonly [boolean | number, string])[]): string {
  const shown = lines.flatMap((line) => (typeof line === 'string' ? [line] : line[0] ? [line[1]] : []))
  return `${shown.join('\n')}\n`
}

const SAMPLE_SIZE = 20

interface PlanOptions extends ApiOptions {
  readonly all?: true
}

export const syncPlanCommand = apiCommand<PlanOptions>('sync plan', {
  about: 'show the calls that are to be made to the platforms; makes none',
  examples: ['sync plan', 'sync plan --all --json'],
  environment: BOTH,
  options: (command) => command.option('--all', `show all of them (default: the first ${SAMPLE_SIZE})`),
  async run({ api, options: { all, environment }, context, show }) {
    const plan = await api.get<SyncPlanJson>('/sync/plan', { environment })
    const calls = all ? plan.calls : plan.calls.slice(0, SAMPLE_SIZE)
    show({ ...plan, calls }, () => planText(plan, calls))
    const left = plan.calls.length - calls.length
    if (left > 0) context.err(`note: there are ${left} more: see --all\n`)
  },
})

function planText({ paused, hash, calls }: SyncPlanJson, shown: SyncPlanJson['calls']): string {
  if (calls.length === 0) return 'there is nothing to do\n'
  const given = calls.filter(({ action }) => action === 'give').length
  const waiting = calls.filter(({ needsConfirmation }) => needsConfirmation).length
  const rows = shown.map(({ needsConfirmation, ...one }) => [
    ...[one.action, one.environment, one.target, one.accountId, one.customerId],
    needsConfirmation ? 'waits for --confirm' : '',
  ])
  return linesText([
    ...alignColumns(rows),
    `${given} to give, ${calls.length - given} to take${paused ? '; sync is paused' : ''}`,
    [
      waiting,
      `beyond the bound: ${counted(waiting, 'removal')}; if that is right, \`latchkey sync run --confirm ${hash}\``,
    ],
  ])
}

interface RunOptions extends ApiOptions {
  readonly confirm?: string
  readonly sweep?: true
  readonly retry?: true
  readonly target?: string
  readonly customer?: string
}

export const syncRunCommand = apiCommand<RunOptions>('sync run', {
  about: 'have the running daemon do now what is due, and try stopped platforms again',
  examples: ['sync run', 'sync run --retry --target discord:1:2', 'sync run --confirm 5f0c…'],
  environment: 'of this environment (default: both)',
  options: (command) =>
    command
      .addOption(
        new Option('--confirm <hash>', 'make the removals beyond the bound of this plan').argParser(parseId),
      )
      .option('--sweep', 'compare with the platforms’ real members first')
      .option('--retry', 'also try again what waits, is parked or has failed; with these, only that:')
      .option('--target <target>', 'of a role or group, such as discord:1:2, or webhook', parseId)
      .option('--customer <id>', 'of a customer', parseId),
  check: ({ options }) => bodyOf(options),
  // What a platform limits, and what it has answered, a running daemon alone keeps in mind.
  whereNone: { needsDaemon: 'no daemon runs: start it, which does what is due by itself' },
  async run({ api, options, show }) {
    const { environment } = options
    const request = { query: { environment }, body: bodyOf(options) }
    const run = await api.send<SyncRunJson>('POST', '/sync/run', request)
    show(run, () => runText(run, options.confirm !== undefined))
    if (run.stopped) throw new LatchkeyError('checks_failed', 'somebody has to act, and then run it again')
  },
})

function bodyOf({ confirm, sweep, retry, target, customer: customerId }: RunOptions) {
  if (!retry && (target !== undefined || customerId !== undefined)) {
    throw new LatchkeyError('usage', '--target and --customer choose what to --retry')
  }
  return { confirm, sweep, ...(retry && { retry: { target, customerId } }) }
}

function runText(run: SyncRunJson, isConfirmed: boolean): string {
  if (run.left === undefined) return 'it takes longer and goes on: see `latchkey sync status`\n'
  const { given, taken, unchanged, failed, waiting, parked, unconfirmed, stopped, left, messages } = run
  const confirmed = isConfirmed ? '; what was confirmed is done after `latchkey sync resume`' : ''
  return linesText([
    run.paused
      ? `sync is paused: no call was made${confirmed}`
      : `${given} given, ${taken} taken, ${unchanged} were so already`,
    [failed, `${failed} failed: to be tried again by itself`],
    [waiting, `${waiting} wait for the customer: see \`latchkey sync status --state waiting\``],
    [parked, `${parked} wait for somebody: see \`latchkey sync status --state parked\``],
    [unconfirmed, `${counted(unconfirmed, 'removal')} beyond the bound: see \`latchkey sync plan\``],
    [stopped, `${counted(stopped, 'call')} stopped until somebody acts: see \`latchkey sync status\``],
    [left, `${counted(left, 'call')} still to be made: it goes on by itself`],
    [messages, `${counted(messages, 'message')} of the outbound webhook tried again`],
  ])
}

export const syncCheckCommand = apiCommand('sync check', {
  about: 'ask the platforms whether the bots may do what they have to, through the running daemon',
  examples: ['sync check'],
  environment: null,
  whereNone: { needsDaemon: 'no daemon runs: start it, which asks the platforms' },
  async run({ api, show }) {
    const check = await api.get<SyncCheckJson>('/sync/check')
    show(check, () =>
      check.findings
        .map(({ about: what, ok, message: detail }) =>
          findingLine({ level: ok ? 'ok' : 'fail', what, detail, todo: null }),
        )
        .join(''),
    )
    const failed = check.findings.filter(({ ok }) => !ok).length
    if (failed > 0) throw new LatchkeyError('checks_failed', `${counted(failed, 'check')} failed`)
  },
})

export const syncPauseCommand = apiCommand('sync pause', {
  about: 'give, take and send nothing any more, until it is resumed',
  examples: ['sync pause'],
  environment: null,
  run: async ({ api, show }) => show(await api.send('POST', '/sync/pause'), () => 'paused\n'),
})

export const syncResumeCommand = apiCommand('sync resume', {
  about: 'go on after a pause, or after a restore',
  examples: ['sync resume'],
  environment: null,
  run: async ({ api, show }) => show(await api.send('POST', '/sync/resume'), () => 'resumed\n'),
})

type TargetJson = SyncStatusJson['targets'][number]
type WebhookJson = NonNullable<SyncStatusJson['webhook']>

/** How roles, groups and the outbound webhook stand, and what an operator can do about it. */
export function statusText(status: SyncStatusJson, now: number): string {
  const { paused, unconfirmed, sweptAt, checked, platforms, targets, webhook, unreachable } = status
  const named = [
    ...platforms.map(({ platform, ...one }) => ({ name: platform as string, ...one })),
    ...targets.map(({ target, ...one }) => ({ name: target, ...one })),
  ]
  const stopped = named.filter(({ state }) => state === 'stopped').map(({ name }) => name)
  const has = (state: ShownState) => targets.some(({ memberships }) => memberships[state] > 0)
  return linesText([
    [paused, 'paused: no call is made until `latchkey sync resume`'],
    ...alignColumns(targets.map(targetCells)),
    [targets.length === 0, 'no product has a role or group that follows it'],
    ...unreachable.map(({ platform, since, reason }) => `${platform}: unreachable since ${since}: ${reason}`),
    ...named.flatMap((one) => callLines(one, now)),
    ...(checked === null ? [] : checkLines(checked, stopped, now)),
    [
      has('waiting'),
      'what is waiting comes by itself once the customer joins: see `latchkey sync status --state waiting`',
    ],
    [has('parked'), 'what is parked waits for somebody: see `latchkey sync status --state parked`'],
    [unconfirmed, `${counted(unconfirmed, 'removal')} beyond the bound: see \`latchkey sync plan\``],
    ...(sweptAt === null ? [] : [`last sweep ${ago(sweptAt, now)}`]),
    ...(webhook === null ? [] : webhookLines(webhook, now)),
  ])
}

function targetCells({ environment, target, memberships }: TargetJson): readonly string[] {
  const counts = Object.entries(memberships).filter(([state, count]) => count > 0 || state === 'settled')
  return [environment, target, counts.map(([state, count]) => `${count} ${state}`).join(', ')]
}

/** A limit whose time is over stays known until an answer comes to the next call. */
function callLines(
  { name, state, until, reason }: { readonly name: string } & Pick<TargetJson, 'state' | 'until' | 'reason'>,
  now: number,
): readonly string[] {
  if (state === 'ok') return []
  const isOver = until === null || Date.parse(until) <= now
  const limited = isOver ? 'tried again with the next call' : `no call before ${until}`
  return [
    `${name}: ${state === 'stopped' ? 'stopped until `latchkey sync run`' : limited}: ${reason?.message}`,
  ]
}

/** What is stopped has told why. */
function checkLines(
  { at, problems }: NonNullable<SyncStatusJson['checked']>,
  stopped: readonly string[],
  now: number,
): readonly string[] {
  return problems
    .filter(({ about }) => !stopped.includes(about))
    .map(({ about, message }) => `${about}: ${message} (checked ${ago(at, now)})`)
}

function webhookLines({ origin, messages }: WebhookJson, now: number): readonly string[] {
  const parts = messages.map(
    ({ state, count, oldestAt, lastError }) =>
      `${count} ${state}, the oldest ${ago(oldestAt, now)}${lastError === null ? '' : ` (${lastError})`}`,
  )
  const isParked = messages.some(({ state }) => state === 'parked')
  return [
    `webhook to ${origin}: ${parts.length === 0 ? 'nothing to send' : parts.join('; ')}`,
    ...(isParked ? ['send what is parked again: `latchkey sync run --retry --target webhook`'] : []),
  ]
}

function ago(instant: string, now: number): string {
  return `${durationText(Math.max(0, now - Date.parse(instant)))} ago`
}
