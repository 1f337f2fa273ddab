import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Config } from '../../config/types.js'
import { LatchkeyError } from '../../errors.js'
import { socketFileOf } from '../../handlers/local-access.js'

/** What only the running daemon knows: it counts since its start, and keeps none of it. */
export interface DaemonFacts {
  /** Epoch milliseconds. */
  readonly startedAt: number | null
  readonly rejected: readonly { readonly endpoint: string; readonly code: string; readonly count: number }[]
  /** Of the last delivery out of tolerance: how far its clock was ahead of ours; negative: behind. */
  readonly skews: readonly { readonly endpoint: string; readonly seconds: number }[]
}

/**
 * Asks the daemon that serves the configured database, at its local socket. Null where none listens.
 * @throws {LatchkeyError} `daemon_failed` where one listens, and does not answer
 */
export async function readDaemonFacts({ database }: Config): Promise<DaemonFacts | null> {
  const metrics = await readMetrics(socketFileOf(database.file))
  return metrics === null ? null : factsIn(metrics)
}

/** Long enough for a daemon under load. */
const ANSWER_WITHIN_MS = 5_000

function readMetrics(socketPath: string): Promise<string | null> {
  return new Promise((resolve, reject) => {
    const failed = (why: string, cause?: unknown): void =>
      reject(new LatchkeyError('daemon_failed', `the daemon did not answer: ${why}`, { cause }))
    const signal = AbortSignal.timeout(ANSWER_WITHIN_MS)
    const req = request({ socketPath, path: '/metrics', signal }, (res) => {
      text(res)
        .then((body) => (res.statusCode === 200 ? resolve(body) : failed(`status ${res.statusCode}`)))
        .catch((error: Error) => failed(error.message, error))
    })
    req.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED') resolve(null)
      else failed(error.message, error)
    })
    req.end()
  })
}

function factsIn(metrics: string): DaemonFacts {
  const started = seriesOf(metrics, 'process_start_time_seconds')[0]
  return {
    startedAt: started === undefined ? null : started.value * 1000,
    rejected: seriesOf(metrics, 'latchkey_signatures_rejected_total').map(({ labels, value }) => ({
      endpoint: labels.get('endpoint') ?? '',
      code: labels.get('code') ?? '',
      count: value,
    })),
    skews: seriesOf(metrics, 'latchkey_clock_skew_seconds').map(({ labels, value }) => ({
      endpoint: labels.get('endpoint') ?? '',
      seconds: value,
    })),
  }
}

/** The lines of one metric in Prometheus' text form. Ours have no label that needs escaping. */
function seriesOf(metrics: string, name: string) {
  const lines = metrics.matchAll(new RegExp(`^${name}(?:\\{(.*)\\})? (\\S+)$`, 'gm'))
  return [...lines].map(([, labels = '', value]) => ({
    labels: new Map(
      [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = '', told = '']) => [label, told]),
    ),
    value: Number(value),
  }))
}
