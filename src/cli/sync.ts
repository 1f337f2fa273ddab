import { counted, durationText } from '../doctor/finding.js'
import { checkSync } from '../doctor/sync.js'
import { LatchkeyError } from '../errors.js'
import type { MembershipJson } from '../handlers/sync/memberships.js'
import type { SyncCheckJson, SyncPlanJson, SyncRunJson, SyncStatusJson } from '../handlers/sync.js'
import type { ShownState } from '../sync/membership.js'
import { apiCommand, choice, flag, LISTED, parseId, showPage, type ValuesOf, value } from './command.js'
import { findingLine, linesText, type Paint, tableLines } from './text.js'

/** Either no daemon runs, or another instance follows access. */
const NOT_LEADING =
  'no calls are made from here: no daemon is running, or another instance makes them. Limits and outages are not known'

const STATES: readonly ShownState[] = ['settled', 'due', 'retrying', 'waiting', 'parked', 'unconfirmed']

const BOTH = 'only this environment (default: both)'

/** `latchkey sync status`: the state of sync; with a filter, the memberships that match. */
const syncStatusCommand = apiCommand('sync status', {
  kind: 'asks',
  about: 'show the state of roles, groups and the outbound webhooks, with a daemon or without',
  examples: ['sync status', 'sync status --state parked', 'sync status --customer cus_1'],
  environment: BOTH,
  options: {
    state: choice('<state>', 'list the memberships in this state', STATES),
    target: value('<target>', 'list the memberships of this role or group, such as discord:1:2', parseId),
    customer: value('<id>', 'list the memberships of this customer', parseId),
  },
  async run(given) {
    const { api, options, context, show } = given
    const { state, target, customer, environment } = options
    if (state !== undefined || target !== undefined || customer !== undefined) {
      const query = { environment, state, target, customerId: customer, limit: LISTED }
      return showPage('/sync/memberships', query, membershipCells, 'no membership matches', given)
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
  if (calls.length === 0) return 'nothing to do\n'
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
          `above the bound: ${counted(waiting, 'removal')}; if they are right, run \`latchkey sync run --confirm ${hash}\``,
        ]),
  ])
}

const RUN_OPTIONS = {
  confirm: value('<hash>', 'approve the held removals of this plan', parseId),
  sweep: flag('first compare with the real members on the platforms'),
  retry: flag('also retry what is waiting, parked or failed; to narrow it, add:'),
  target: value(
    '<target>',
    'only this role or group, such as discord:1:2, or webhook:<id>, or webhook for all webhooks',
    parseId,
  ),
  customer: value('<id>', 'only this customer', parseId),
}

/** `latchkey sync run`: makes the daemon do all due work now. */
const syncRunCommand = apiCommand('sync run', {
  kind: 'changes',
  about: 'make the running daemon do all due work now, and try stopped platforms again',
  examples: ['sync run', 'sync run --retry --target discord:1:2', 'sync run --confirm 5f0c…'],
  environment: 'only this environment (default: both)',
  options: RUN_OPTIONS,
  check: ({ options }) => bodyOf(options),
  async run({ api, options, show }) {
    const { environment } = options
    const request = { query: { environment }, body: bodyOf(options) }
    const run = await api.send<SyncRunJson>('POST', '/sync/run', request)
    show(run, () => runText(run, options))
    if (run.stopped && !isAboutMessages(options))
      throw new LatchkeyError('checks_failed', 'fix the problem that stopped the calls, then run it again')
  },
})

type RunOptions = ValuesOf<typeof RUN_OPTIONS>
type CompleteRun = Exclude<SyncRunJson, { readonly left?: never }>

function bodyOf({ confirm, sweep, retry, target, customer: customerId }: RunOptions) {
  if (!retry && (target !== undefined || customerId !== undefined)) {
    throw new LatchkeyError('usage', '--target and --customer choose what to --retry')
  }
  return { confirm, sweep, ...(retry && { retry: { target, customerId } }) }
}

/** Whether messages of the outbound webhooks are all that was asked for. */
function isAboutMessages({ confirm, sweep, target }: RunOptions): boolean {
  return confirm === undefined && !sweep && target !== undefined && /^webhook(:|$)/.test(target)
}

function runText(run: SyncRunJson, options: RunOptions): string {
  if (run.left === undefined) return 'the run is still going: see `latchkey sync status`\n'
  const { retry, target } = options
  const retries = retry && (target === undefined || /^webhook(:|$)/.test(target))
  const resent = retries ? [`${counted(run.messages, 'message')} to send again`] : []
  return linesText([
    ...(isAboutMessages(options) ? pausedText(run, options) : callsText(run, options)),
    ...resent,
  ])
}

function pausedText({ paused }: CompleteRun, { confirm }: RunOptions): readonly string[] {
  const later = '; confirmed removals are made after `latchkey sync resume`'
  return paused ? [`sync is paused: no call was made${confirm === undefined ? '' : later}`] : []
}

/** The memberships of each kind. */
function callsText(run: CompleteRun, options: RunOptions): readonly string[] {
  if (run.paused) return pausedText(run, options)
  if (!run.leads) return [`another instance makes the calls: ${counted(run.left, 'call')} left to it`]
  const {
    done: _,
    paused: _paused,
    leads: _leads,
    messages: _messages,
    given,
    taken,
    unchanged,
    ...others
  } = run
  const further = Object.entries(others).flatMap(([what, count]) => (count === 0 ? [] : [`${count} ${what}`]))
  return [
    `${given} given, ${taken} taken, ${unchanged} already correct`,
    ...(further.length === 0 ? [] : [`${further.join(', ')}: see \`latchkey sync status\``]),
  ]
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
  about: 'stop all calls for roles, groups and webhooks until resumed',
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
]
