import type { Kysely } from 'kysely'
import type { Config } from '../config/types.js'
import { openWriter, type Writer } from '../daemon/writer.js'
import { type RebuildJson, rebuildJson } from '../handlers/rebuild-json.js'
import { type ReplaySummaryJson, replaySummaryJson } from '../handlers/replay-json.js'
import type { Environment } from '../provider/event.js'
import { REPLAY_SAMPLE } from '../recompute/jobs.js'
import { endpointsOf } from '../recompute/read-again.js'
import { createWorkRate, type WorkRate } from '../recompute/work-rate.js'
import { ENVIRONMENTS } from '../store/keys.js'
import type { Database } from '../store/schema.js'
import { openStore } from '../store/store.js'
import { callsThatFollow } from '../sync/calls-ahead.js'
import { assertDatabase } from './assert-database.js'
import type { DaemonOptions } from './command.js'
import type { CliContext } from './context.js'
import { type EventFilterOptions, eventFilterOf } from './event-options.js'

/** `configured`: from then on the configured policy is in force. `in force`: it stays the one it is. */
export type RebuildUnder = 'configured' | 'in force'

export interface RebuildReporting {
  /** Counted in events. */
  readonly show: (done: number, total: number) => void
  /** The environment whose changes are reported; undefined: both. */
  readonly only: Environment | undefined
}

export interface ReplayOptions extends DaemonOptions, EventFilterOptions {
  readonly dryRun?: true
}

export type ShowReplay = (progress: WorkRate) => void

export function rebuildHere(
  under: RebuildUnder,
  config: Config,
  context: CliContext,
  { show, only }: RebuildReporting,
): Promise<RebuildJson> {
  return withWriter(config, context, async ({ recompute }) => {
    const policy = under === 'configured' ? config.policy : null
    const plan = { scope: ENVIRONMENTS, endpoints: null, policy, mode: 'apply' } as const
    const { access } = await recompute(plan, { onProgress: show })
    return rebuildJson({ state: 'done', access }, only)
  })
}

export function replayHere(
  options: ReplayOptions,
  config: Config,
  context: CliContext,
  show: ShowReplay,
): Promise<ReplaySummaryJson> {
  const { dryRun } = options
  const { measure } = createWorkRate(context.now)
  return withWriter(config, context, async ({ recompute }, reader) => {
    const { counts, access, customers } = await recompute(
      {
        scope: eventFilterOf(options, config),
        endpoints: endpointsOf(config.endpoints),
        policy: null,
        mode: dryRun ? 'compare' : 'apply',
      },
      { onProgress: (reached, total) => show(measure(reached, total)), sampleSize: REPLAY_SAMPLE },
    )
    const calls = dryRun ? await callsThatFollow(reader, config.products, customers) : null
    return replaySummaryJson({ counts, access, calls })
  })
}

/** Holds the store's lock meanwhile, so that no daemon starts. */
async function withWriter<T>(
  { database: { file }, policy }: Config,
  { now }: CliContext,
  use: (writer: Writer, reader: Kysely<Database>) => Promise<T>,
): Promise<T> {
  assertDatabase(file, 'write')
  const store = await openStore(file, policy, (place) => openWriter(place, now))
  try {
    return await use(store.writer, store.reader)
  } finally {
    await store.close()
  }
}
