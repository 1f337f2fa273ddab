import { isDeepStrictEqual } from 'node:util'
import type { PolicyText } from '../config/policy.js'
import { counted } from '../doctor/finding.js'
import type { Policy } from '../entitlements/policy.js'
import { LatchkeyError } from '../errors.js'
import type { JobJson, PolicyJson, SummaryJson } from '../handlers/rebuilds.js'
import type { ReplayJson, ReplaySummaryJson } from '../handlers/replays.js'
import type { Environment } from '../provider/event.js'
import type { RecomputeReport } from '../recompute/run.js'
import type { Api, ApiOptions, ApiRequest } from './api.js'
import { apiCommand, checkStretch, flag, jsonLine, parseId, value } from './command.js'
import type { CliContext } from './context.js'
import { EVENT_FILTER, EVENT_PERSON, filterOf } from './events.js'
import { pathOf } from './known.js'
import { follow } from './progress.js'
import { linesText, type Paint, tableLines } from './text.js'

const SAMPLE_SIZE = 10
/** The API's maximum number of examples. */
const ALL = 100_000

export const recomputeCommands = [
  apiCommand('policy show', {
    kind: 'asks',
    about: 'show the policy in force, and where the configured one differs',
    environment: null,
    async run({ api, show }) {
      const { inForce, configured: known, unfinishedRebuild } = await api.get<PolicyJson>('/policy')
      const configured = api.config?.policy ?? known
      const others = new Map(rowsOf(configured).map(([name = '', text = '']) => [name, text]))
      const differs = rowsOf(inForce).flatMap(([name = '', text]) =>
        others.get(name) === text ? [] : [name],
      )
      show({ inForce, configured, differs, unfinishedRebuild }, () =>
        linesText([
          ...tableLines(rowsOf(inForce)),
          differs.length === 0
            ? 'the configured policy is the same'
            : 'the configured policy differs, and is not in force: see `latchkey policy diff`',
          ...differs.map((name) => `  ${name}  ${others.get(name)}`),
          unfinishedRebuild &&
            'a rebuild is unfinished: continue it with `latchkey policy apply` or `latchkey rebuild`',
        ]),
      )
    },
  }),
  apiCommand('policy diff', {
    kind: 'asks',
    about: 'show whose access would change under the configured policy; changes nothing',
    examples: ['policy diff', 'policy diff --all --json'],
    environment: 'which environment (default: both)',
    options: { all: flag(`show all of them (default: the first ${SAMPLE_SIZE})`) },
    async run({ api, options: { all, environment }, context, show }) {
      // Reads the file now: the daemon may have an older version of it.
      const policy = api.config === null ? {} : { policy: asConfigured(api.config.policy) }
      const sent = { query: { environment }, body: { ...policy, named: all ? ALL : SAMPLE_SIZE } }
      const summary = summaryOf(await followJob('/policy/diff', { sent }, api, context))
      show(summary, () => differenceText(summary, true))
    },
  }),
  apiCommand('policy apply', {
    kind: 'changes',
    about: 'put the configured policy in force, and recompute all access under it',
    environment: null,
    async run({ api, context, show }) {
      const { configured, unfinishedRebuild, inForce } = await api.get<PolicyJson>('/policy')
      const policy = api.config?.policy ?? configured
      const wasInForce = !unfinishedRebuild && isDeepStrictEqual(policy, inForce)
      const { policyFingerprint } = await import('../store/settings.js')
      const query = { expect: api.config === null ? undefined : policyFingerprint(policy) }
      const summary = summaryOf(
        await followJob('/policy/apply', { ...REBUILD, sent: { query } }, api, context),
      )
      const first = `the configured policy ${wasInForce ? 'was already in force' : 'is in force'}\n`
      show(summary, () => `${first}${differenceText(summary, false)}`)
    },
  }),
  apiCommand('rebuild', {
    kind: ({ verify }) => (verify ? 'asks' : 'changes'),
    about: 'recompute all access from the stored events, and correct differences',
    examples: ['rebuild', 'rebuild --verify'],
    environment: 'compare or report only this environment; a rebuild always covers both (default: both)',
    options: {
      verify: flag('only compare: show differences, change nothing, and exit 1 if there are any'),
    },
    async run({ api, options, context, show }) {
      const { verify, environment } = options
      if (verify) return verifyStore(api, options, context)
      const job = { ...REBUILD, sent: {}, only: environment }
      const summary = summaryOf(await followJob('/rebuild', job, api, context))
      show(summary, () => differenceText(summary, false, environment))
    },
  }),
  apiCommand('replay', {
    kind: ({ dryRun }) => (dryRun ? 'asks' : 'changes'),
    about: 'read stored events again, and recompute the access that they affect',
    examples: [
      'replay --disposition quarantined',
      'replay --event evt_1',
      'replay --from 2026-01-31T00:00:00Z --dry-run',
    ],
    options: {
      ...EVENT_FILTER,
      event: value('<id>', 'only this event', parseId),
      dryRun: flag('show what would change, and change nothing'),
    },
    ...EVENT_PERSON,
    check: checkStretch,
    async run({ api, options, context, show }) {
      const { dryRun = false } = options
      const filter = { ...filterOf(options), eventId: options.event }
      const sent = { query: { environment: api.environment }, body: { filter, dryRun } }
      const started = await api.send<ReplayJson>('POST', '/replays', sent)
      const ask = () => api.get<ReplayJson>(pathOf('replays', started.id))
      const watched = { ask, progressOf: replayProgress, name: 'replay', code: 'replay_failed' } as const
      const { summary, reason } = await follow(started, watched, context)
      if (summary === null) throw new LatchkeyError('replay_failed', reason ?? 'The replay was interrupted.')
      show(summary, (paint) => replayText(summary, dryRun, paint))
    },
  }),
]

interface Followed {
  readonly sent: ApiRequest
  /** By default, where it was started. */
  readonly askAt?: string
  readonly name?: string
  readonly only?: Environment | undefined
}

/** Starts a rebuild or a comparison, and follows it to its end. */
async function followJob(
  path: string,
  { sent, askAt = path, name = 'comparison', only }: Followed,
  api: Api,
  context: CliContext,
): Promise<Extract<JobJson, { state: 'done' }>> {
  const started = await api.send<JobJson>('POST', path, sent)
  const ask = () => api.get<JobJson>(askAt, { environment: only })
  const ended = await follow(started, { ask, progressOf, name, code: 'rebuild_failed' }, context)
  if (ended.state === 'done') return ended
  const reason =
    ended.state === 'failed'
      ? ended.reason
      : 'The daemon was restarted in the meantime: run the command again.'
  throw new LatchkeyError('rebuild_failed', reason)
}

const REBUILD = { askAt: '/rebuild', name: 'rebuild' }

function summaryOf({ gains, losses, otherwise, sample }: SummaryJson): SummaryJson {
  return { gains, losses, otherwise, sample }
}

function progressOf(status: JobJson) {
  return status.state === 'running' ? { done: status.folded, total: status.total } : { done: 0, total: 0 }
}

/** @throws {LatchkeyError} `rebuild_differs`; `store_unavailable` if something can't be compared */
async function verifyStore(api: Api, { environment, json }: ApiOptions, context: CliContext): Promise<void> {
  const sent = { query: { environment }, body: {} }
  const { differences } = await followJob('/rebuild/verification', { sent }, api, context)
  const found = differences ?? { count: 0, named: [] }
  context.out(json ? jsonLine({ differences: found.named }) : linesText(differenceLines(found)))
  assertNoDifference(found, context)
  const where = environment === undefined ? '' : ` in ${environment}`
  if (!json) context.out(`everything stored${where} matches the events\n`)
}

type Differences = RecomputeReport['differences']

export function differenceLines({ named }: Differences): readonly string[] {
  return named.map(({ environment, kind, id }) => `${environment}  ${kind}  ${id}`)
}

/** @throws {LatchkeyError} `rebuild_differs` if there are any */
export function assertNoDifference({ count, named }: Differences, { err }: CliContext): void {
  if (count > named.length) err(`note: there are ${count - named.length} more\n`)
  if (count === 0) return
  const records = count === 1 ? 'one record disagrees' : `${count} records disagree`
  const message = `${records} with the stored events: run \`latchkey rebuild\` to correct that`
  throw new LatchkeyError('rebuild_differs', message)
}

function replayProgress({ progress: { reached: done, total, perSecond, remainingSeconds } }: ReplayJson) {
  if (perSecond === null || !remainingSeconds) return { done, total }
  return { done, total, text: `, ${Math.round(perSecond)} a second, ${remainingSeconds} s to go` }
}

function replayText(summary: ReplaySummaryJson, conditional: boolean, paint: Paint): string {
  const { read, changed, recovered, quarantined, duplicates, skipped, notReplayable, altered } = summary
  const notes: readonly (readonly [number, string])[] = [
    [recovered, 'can be used now'],
    [quarantined, 'cannot be used'],
    [duplicates, 'left alone: another event has their id'],
    [skipped, 'left alone: their endpoint is for another environment now'],
    [notReplayable, 'kept as stored: their bodies were removed'],
    [altered, 'kept as stored: their bodies were altered in the database (latchkey doctor --thorough)'],
  ]
  const lines = [
    `${read} read again, ${changed} ${conditional ? 'would be' : 'were'} read differently`,
    ...notes.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`),
  ]
  return `${linesText(lines)}${differenceText(summary, conditional)}${callsText(summary, paint)}`
}

/** The changes in roles and groups that would follow, if the answer has them. */
function callsText({ calls }: ReplaySummaryJson, paint: Paint): string {
  if (calls === null) return ''
  const { gives, takes, sample } = calls
  if (gives + takes === 0) return 'no role or group would change\n'
  const rows = sample.map(({ environment, action, target, accountId, customerId }) => {
    return [environment, action, target, accountId, `(${customerId})`]
  })
  return linesText([
    `${gives} would get a role or group, ${takes} would lose one`,
    ...tableLines(rows, paint),
    moreLine(gives + takes - sample.length),
  ])
}

export const moreLine = (count: number) => count > 0 && `and ${count} more`

/** The policy in the form of the config file. */
function asConfigured({ lapseAfter, ...policy }: Policy): PolicyText {
  return { ...policy, lapseAfter: lapseAfter === null ? null : `${lapseAfter / 1000}s` }
}

/**
 * Differences as text: their number, and one line for each example.
 * @param environment the only one that was compared
 */
export function differenceText(
  { gains, losses, otherwise, sample }: SummaryJson,
  conditional: boolean,
  environment?: Environment,
): string {
  const total = gains + losses + otherwise
  const where = environment === undefined ? '' : ` in ${environment}`
  if (total === 0) return `nobody’s access ${conditional ? 'would change' : 'has changed'}${where}\n`
  const [gained, lost] = conditional ? ['would gain', 'would lose'] : ['gained', 'lost']
  const counts = `${gains} ${gained} access, ${losses} ${lost} it, ${counted(otherwise, 'other change')}`
  const state = ({ status, until }: SummaryJson['sample'][number]['before']) =>
    until === null ? status : `${status} (${until})`
  const rows = sample.map(({ environment, customerId, productId, before, after }) => {
    return [environment, customerId, productId, `${state(before)} -> ${state(after)}`]
  })
  return linesText([counts, ...tableLines(rows), moreLine(total - sample.length)])
}

/** `grantOn.card`, `failedRenewal`, and so on, as the config names them. */
function rowsOf({ lapseAfter, ...policy }: Policy): string[][] {
  const rails = Object.entries(policy).flatMap(([name, value]) =>
    typeof value === 'object'
      ? Object.entries(value).map(([rail, types]) => [`${name}.${rail}`, types.join(', ') || 'nothing'])
      : [[name, String(value)]],
  )
  return [...rails, ['lapseAfter', lapseAfter === null ? 'never' : `${lapseAfter / 1000}s`]]
}
