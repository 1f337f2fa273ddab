import type { Logger } from 'pino'
import type { Config } from '../config/types.js'
import type { KeptAnswers } from '../handlers/kept-answers.js'
import { createRehearse } from '../ingest/rehearse.js'
import type { ReplayOrder } from '../ingest/replay.js'
import { createReplayJobs, type ReplayJobs } from '../ingest/replay-jobs.js'
import { startWriter } from '../ingest/start-writer.js'
import type { Writer } from '../ingest/writer.js'
import { startBackup } from '../store/start-backup.js'
import { openCopy } from './open-copy.js'

export interface ReplaysDeps {
  /** The database. */
  readonly file: string
  /** Asked at every start, since a reload may change it. */
  readonly config: () => Config
  readonly writer: Writer
  /** Lets answers and whoever follows access know that it changes otherwise than by deliveries. */
  readonly aside: KeptAnswers['aside']
  readonly clock: () => number
  readonly log: Logger
}

/** Replays through the daemon's writer, and on a copy through one of its own. */
export function createReplays({ file, config, writer, aside, clock, log }: ReplaysDeps): ReplayJobs {
  return createReplayJobs({
    replay: (order, options) => aside(() => writer.replay(order, options)),
    rehearse: createRehearse({
      file,
      startCopy: startBackup,
      // Its end fails the call that waits for it, which is all there is.
      openCopy: (copy) =>
        openCopy(copy, (place) => startWriter({ file: place, clock, onEnded: () => {} }), config(), clock),
    }),
    endpoints: () => endpointsOf(config()),
    clock,
    log,
  })
}

/** The environment of each, by name. */
export function endpointsOf({ endpoints }: Pick<Config, 'endpoints'>): ReplayOrder['endpoints'] {
  return Object.fromEntries(endpoints.map(({ name, environment }) => [name, environment]))
}
