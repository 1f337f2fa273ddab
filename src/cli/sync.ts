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

const SAMPLE_SIZE = 20

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

export const syncCommands = [
  apiCommand('sync status', {
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
  }),
  apiCommand('sync plan', {
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
  }),
  apiCommand('sync run', {
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
  }),
  apiCommand('sync check', {
    kind: 'asks the daemon',
    about: 'ask the platforms whether the bots have the rights they need, through the running daemon',
    environment: null,
    async run({ api, show }) {
      const check = await api.get<SyncCheckJson>('/sync/check')
      const findings = check.findings.map(({ about: what, ok, message: detail }) => {
        return { level: ok ? 'ok' : 'fail', what, detail, todo: null } as const
      })
      show(check, (paint) => findings.map((finding) => findingLine(finding, paint)).join(''))
      const failed = findings.filter(({ level }) => level === 'fail').length
      if (failed > 0) throw new LatchkeyError('checks_failed', `${counted(failed, 'check')} failed`)
    },
  }),
  apiCommand('sync pause', {
    kind: 'changes',
    about: 'stop all calls for roles, groups and webhooks until resumed',
    environment: null,
    run: async ({ api, show }) => show(await api.send('POST', '/sync/pause'), () => 'paused\n'),
  }),
  apiCommand('sync resume', {
    kind: 'changes',
    about: 'continue after a pause, or after a restore',
    environment: null,
    run: async ({ api, show }) => show(await api.send('POST', '/sync/resume'), () => 'resumed\n'),
  }),
]

function membershipCells(one: MembershipJson): readonly string[] {
  const { environment, target, accountId, customerId, state, desired, parked, lastError } = one
  const why = (parked ?? lastError)?.message ?? ''
  return [environment, target, accountId, customerId, desired ? 'in' : 'out', state, why]
}

function planText({ paused, hash, calls }: SyncPlanJson, shown: SyncPlanJson['calls'], paint: Paint): string {
  if (calls.length === 0) return 'nothing to do\n'
  const given = calls.filter(({ action }) => action === 'give').length
  const waiting = calls.filter(({ needsConfirmation }) => needsConfirmation).length
  const rows = shown.map(({ action, environment, target, accountId, customerId, needsConfirmation }) => {
    return [
      action,
      environment,
      target,
      accountId,
      customerId,
      needsConfirmation ? 'waits for --confirm' : '',
    ]
  })
  return linesText([
    ...tableLines(rows, paint),
    `${given} to give, ${calls.length - given} to take${paused ? '; sync is paused' : ''}`,
    hash !== null &&
      `above the bound: ${counted(waiting, 'removal')}; if they are right, run \`latchkey sync run --confirm ${hash}\``,
  ])
}

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
  const later =
    options.confirm === undefined ? '' : '; confirmed removals are made after `latchkey sync resume`'
  return linesText([
    run.paused && `sync is paused: no call was made${later}`,
    ...(run.paused || isAboutMessages(options) ? [] : callLines(run)),
    retries === true && `${counted(run.messages, 'message')} to send again`,
  ])
}

const OPEN = ['failed', 'waiting', 'parked', 'unconfirmed', 'stopped', 'left'] as const

/** The memberships of each kind. */
function callLines(run: CompleteRun): readonly (string | false)[] {
  if (!run.leads) return [`another instance makes the calls: ${counted(run.left, 'call')} left to it`]
  const open = OPEN.filter((what) => run[what] > 0).map((what) => `${run[what]} ${what}`)
  return [
    `${run.given} given, ${run.taken} taken, ${run.unchanged} already correct`,
    open.length > 0 && `${open.join(', ')}: see \`latchkey sync status\``,
  ]
}

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
    targets.length === 0 && webhooks.length === 0 && 'no product has a role or group',
    ...limits,
    ...checkSync(status, now).map((finding) => findingLine(finding, paint).trimEnd()),
    sweptAt !== null && `last sweep ${durationText(Math.max(0, now - Date.parse(sweptAt)))} ago`,
  ])
}

function targetCells({ environment, target, memberships }: TargetJson): readonly string[] {
  const counts = Object.entries(memberships).filter(([state, count]) => count > 0 || state === 'settled')
  return [environment, target, counts.map(([state, count]) => `${count} ${state}`).join(', ')]
}
