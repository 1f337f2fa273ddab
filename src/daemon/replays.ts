import type { Logger } from 'pino'
import type { KeptAnswers } from '../handlers/kept-answers.js'
import { createRehearse } from '../ingest/rehearse.js'
import { createReplayJobs, type ReplayJobs, type ReplayJobsDeps } from '../ingest/replay-jobs.js'
import { startWriter } from '../ingest/start-writer.js'
import type { Writer } from '../ingest/writer.js'
import { startBackup } from '../store/start-backup.js'

export interface ReplaysDeps {
  /** The database. */
  readonly file: string
  readonly writer: Writer
  readonly keptAnswers: KeptAnswers
  readonly endpoints: ReplayJobsDeps['endpoints']
  readonly clock: () => number
  readonly log: Logger
}

/** Replays through the daemon's writer, and on a copy through one of its own. */
export function createReplays({ file, writer, keptAnswers, endpoints, clock, log }: ReplaysDeps): ReplayJobs {
  return createReplayJobs({
    replay: (order, options) => keptAnswers.aside(() => writer.replay(order, options)),
    rehearse: createRehearse({
      file,
      startCopy: startBackup,
      // Its end fails the call that waits for it, which is all there is.
      openWriter: (copy) => startWriter({ file: copy, clock, onEnded: () => {} }),
    }),
    endpoints,
    clock,
    log,
  })
}
