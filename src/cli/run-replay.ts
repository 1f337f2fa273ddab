import { existsSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import type { Config } from '../config/types.js'
import { openCopy } from '../daemon/open-copy.js'
import { endpointsOf } from '../daemon/replays.js'
import { LatchkeyError } from '../errors.js'
import { type ReplayJson, type ReplaySummaryJson, replaySummaryJson } from '../handlers/replay-json.js'
import { createRehearse } from '../ingest/rehearse.js'
import { createWorkRate, type WorkRate } from '../ingest/work-rate.js'
import { openWriter } from '../ingest/writer.js'
import { startBackup } from '../store/start-backup.js'
import { openStore } from '../store/store.js'
import type { CliContext } from './context.js'
import { type ChangeOptions, throughDaemon } from './daemon-client.js'
import { type EventFilterOptions, eventFilterOf } from './event-options.js'

const ASK_EVERY_MS = 200

export interface ReplayOptions extends ChangeOptions, EventFilterOptions {
  readonly dryRun?: true
}

type Show = (progress: WorkRate) => void

/** Has the running daemon replay, or does so where none runs; shows progress to a person. */
export async function runReplay(options: ReplayOptions, context: CliContext): Promise<ReplaySummaryJson> {
  const progress = createProgress(context)
  const query = options.environment === undefined ? '' : `?environment=${options.environment}`
  const request = { method: 'POST', path: `/replays${query}`, body: bodyOf(options) } as const
  try {
    const started = await throughDaemon(options, context, request, async (config) => ({
      state: 'done',
      summary: await replayHere(options, config, context, progress.show),
    }))
    return await follow(started as ReplayJson, options, context, progress.show)
  } finally {
    progress.clear()
  }
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
  show: Show,
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

/** Holds the store's lock meanwhile, so that no daemon starts. */
async function replayHere(
  options: ReplayOptions,
  config: Config,
  { now }: CliContext,
  show: Show,
): Promise<ReplaySummaryJson> {
  const { file } = config.database
  if (!existsSync(file)) throw new LatchkeyError('store_missing', `There is no database at ${file}.`)
  const open = (place: string) => openWriter(place, now)
  const store = await openStore(file, config.policy, now, open)
  try {
    const rehearse = createRehearse({
      file,
      startCopy: startBackup,
      openCopy: (copy) => openCopy(copy, open, config, now),
    })
    const order = {
      filter: eventFilterOf(options, config),
      endpoints: endpointsOf(config),
      isAnew: !!options.dryRun,
    }
    const { measure } = createWorkRate(now)
    const report = await (options.dryRun ? rehearse : store.writer.replay)(order, {
      onProgress: (reached, total) => show(measure(reached, total)),
    })
    return replaySummaryJson(report)
  } finally {
    await store.close()
  }
}

/** One line that overwrites itself; nothing where no person looks. */
function createProgress({ isTerminal, err }: CliContext): { show: Show; clear: () => void } {
  if (!isTerminal) return { show: () => {}, clear: () => {} }
  return { show: (progress) => err(`\r\u001b[K${progressText(progress)}`), clear: () => err('\r\u001b[K') }
}

function progressText({ reached, total, perSecond, remainingSeconds }: WorkRate): string {
  const place = `${reached} of ${total}`
  if (perSecond === null || remainingSeconds === null) return place
  return `${place}, ${Math.round(perSecond)} a second, ${Math.ceil(remainingSeconds)} s to go`
}
