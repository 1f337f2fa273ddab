import { setTimeout as wait } from 'node:timers/promises'
import { LatchkeyError } from '../errors.js'
import type { ReplayJson, ReplaySummaryJson } from '../handlers/replay-json.js'
import type { WorkRate } from '../recompute/work-rate.js'
import { loadNamedConfig } from './command.js'
import type { CliContext } from './context.js'
import { throughDaemon } from './daemon-client.js'
import { eventFilterOf } from './event-options.js'
import type { ReplayOptions, ShowReplay } from './recompute-here.js'

const ASK_EVERY_MS = 200

/** Has the running daemon replay, or does so where none runs; shows progress to a person. */
export async function runReplay(options: ReplayOptions, context: CliContext): Promise<ReplaySummaryJson> {
  const progress = createProgress(context)
  const query = options.environment === undefined ? '' : `?environment=${options.environment}`
  const request = { method: 'POST', path: `/replays${query}`, body: bodyOf(options) } as const
  if (options.endpoint !== undefined && options.url === undefined) await assertEndpoint(options, context)
  try {
    const started = await throughDaemon(options, context, request, async (config) => {
      const { replayHere } = await import('./recompute-here.js')
      return { state: 'done', summary: await replayHere(options, config, context, progress.show) }
    })
    const summary = await follow(started as ReplayJson, options, context, progress.show)
    if (summary.read === 0 && options.url === undefined) await explainNothingRead(options, context)
    return summary
  } finally {
    progress.clear()
  }
}

/** Ahead of the daemon, which refuses it too, but can't say that the command was given wrongly. */
async function assertEndpoint(options: ReplayOptions, context: CliContext): Promise<void> {
  const { assertKnownEndpoint } = await import('./nothing-found.js')
  const { config } = await loadNamedConfig(options, context)
  await assertKnownEndpoint(eventFilterOf(options, config), config)
}

/** Of a daemon at an address nobody knows here what is stored. */
async function explainNothingRead(options: ReplayOptions, context: CliContext): Promise<void> {
  const { explainNothingFound } = await import('./nothing-found.js')
  const { config } = await loadNamedConfig(options, context)
  await explainNothingFound(eventFilterOf(options, config), config, context)
}

function bodyOf({ type, disposition, customer, endpoint, from, to, dryRun }: ReplayOptions) {
  const time = (instant: number | undefined) =>
    instant === undefined ? undefined : new Date(instant).toISOString()
  const filter = { type, disposition, customerId: customer, endpoint, from: time(from), to: time(to) }
  return { filter, dryRun: !!dryRun }
}

/** Asks how the replay stands until it has ended. */
async function follow(
  started: ReplayJson,
  options: ReplayOptions,
  context: CliContext,
  show: ShowReplay,
): Promise<ReplaySummaryJson> {
  let status = started
  while (status.state === 'running') {
    show(status.progress)
    await wait(ASK_EVERY_MS)
    const request = { method: 'GET', path: `/replays/${status.id}` } as const
    status = (await throughDaemon(options, context, request, goneMeanwhile)) as ReplayJson
  }
  if (status.summary !== null) return status.summary
  throw new LatchkeyError('replay_failed', `the replay has not ended: ${status.reason}`)
}

async function goneMeanwhile(): Promise<never> {
  throw new LatchkeyError('replay_failed', 'the daemon has stopped: run it again, and the replay goes on')
}

/** One line that overwrites itself; nothing where no person looks. */
function createProgress({ isTerminal, err }: CliContext): { show: ShowReplay; clear: () => void } {
  if (!isTerminal) return { show: () => {}, clear: () => {} }
  return { show: (progress) => err(`\r\u001b[K${progressText(progress)}`), clear: () => err('\r\u001b[K') }
}

function progressText({ reached, total, perSecond, remainingSeconds }: WorkRate): string {
  const place = `${reached} of ${total}`
  if (perSecond === null || !remainingSeconds) return place
  return `${place}, ${Math.round(perSecond)} a second, ${remainingSeconds} s to go`
}
