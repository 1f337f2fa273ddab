import type { Config } from '../config/types.js'
import { openCopy } from '../daemon/open-copy.js'
import { endpointsOf } from '../daemon/replays.js'
import { type ReplaySummaryJson, replaySummaryJson } from '../handlers/replay-json.js'
import { createRehearse } from '../ingest/rehearse.js'
import { createWorkRate, type WorkRate } from '../ingest/work-rate.js'
import { openWriter } from '../ingest/writer.js'
import { startBackup } from '../store/start-backup.js'
import { openStore } from '../store/store.js'
import { assertDatabase } from './assert-database.js'
import type { DaemonOptions } from './command.js'
import type { CliContext } from './context.js'
import { type EventFilterOptions, eventFilterOf } from './event-options.js'

export interface ReplayOptions extends DaemonOptions, EventFilterOptions {
  readonly dryRun?: true
}

export type ShowReplay = (progress: WorkRate) => void

/** Holds the store's lock meanwhile, so that no daemon starts. */
export async function replayHere(
  options: ReplayOptions,
  config: Config,
  { now }: CliContext,
  show: ShowReplay,
): Promise<ReplaySummaryJson> {
  const { file } = config.database
  assertDatabase(file, 'write')
  const open = (place: string) => openWriter(place, now)
  const store = await openStore(file, config.policy, now, open)
  try {
    const rehearse = createRehearse({
      file: store.file,
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
