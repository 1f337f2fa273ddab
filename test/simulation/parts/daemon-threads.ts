/* What the daemon's threads do, as their files in `src` have it, but for the priority of a thread. */

import { once } from 'node:events'
import type { MessagePort } from 'node:worker_threads'
import { findWarnings } from '../../../src/config/schema.js'
import { serveWriter } from '../../../src/daemon/serve-writer.js'
import { type Examined, examine } from '../../../src/doctor/examine.js'
import type { Finding } from '../../../src/doctor/finding.js'
import { failureText } from '../../../src/errors.js'
import type { BackupReply, BackupRequest } from '../../../src/operations/scheduled-backups.js'
import {
  type Comparison,
  type ComparisonMessage,
  type ComparisonTurn,
  compareStored,
} from '../../../src/recompute/compare.js'
import { unavailable } from '../../../src/store/engine.js'
import { openConnection } from '../../../src/store/sqlite/connection.js'
import { backUp } from '../../../src/store/sqlite/copy.js'
import { openDatabase } from '../../../src/store/sqlite/dialect.js'
import type { ThreadPort, ThreadWork } from '../machine/threads.js'

async function compare(port: ThreadPort, { database, plan }: Comparison): Promise<void> {
  const stopping = new AbortController()
  let progress = { reached: 0, total: 0 }
  let told = { now: 0, at: 0 }
  const say = (message: ComparisonMessage) => port.postMessage(message)
  async function pause(arrived: number): Promise<void> {
    const answered = once(port, 'message')
    say({ kind: 'paused', arrived, ...progress })
    const [{ now, isStopping }] = (await answered) as [ComparisonTurn]
    told = { now, at: performance.now() }
    if (isStopping) stopping.abort()
  }
  const db = openDatabase(database.file, { readOnly: true })
  try {
    await pause(0)
    const report = await compareStored(db, plan, {
      pause,
      clock: () => told.now + Math.trunc(performance.now() - told.at),
      signal: stopping.signal,
      onProgress: (reached, total) => {
        progress = { reached, total }
      },
    })
    say({ kind: 'done', report })
  } finally {
    await db.destroy()
    port.close()
  }
}

async function examineStored(port: ThreadPort, examined: Examined): Promise<void> {
  const { config, thorough, now, daemon, sync } = examined
  const findings: Finding[] = []
  const syncOf = async () => {
    if (sync === null) throw unavailable('read', undefined)
    return sync
  }
  const all = examine({ config, warnings: findWarnings(config), thorough, clock: () => now, daemon, syncOf })
  for await (const finding of all) findings.push(finding)
  port.postMessage(findings)
  port.close()
}

async function copy(port: ThreadPort, { file, target }: BackupRequest): Promise<void> {
  const reply: BackupReply = await backUp(file, target, { overwrite: false }).then(
    (backup) => ({ backup }),
    (error: unknown) => ({ reason: failureText(error) }),
  )
  port.postMessage(reply)
  port.close()
}

async function checkpoint(
  port: ThreadPort,
  { file, isMoving }: { readonly file: string; readonly isMoving: Int32Array },
): Promise<void> {
  const sqlite = openConnection(file, { readOnly: false })
  port.on('message', () => {
    try {
      sqlite.pragma('wal_checkpoint(PASSIVE)')
    } catch {
      // The writer meets the same failure.
    }
    Atomics.store(isMoving, 0, 0)
  })
}

export const DAEMON_THREADS: Readonly<Record<string, ThreadWork>> = {
  'writer-thread': (port, { file }: { readonly file: string }) =>
    serveWriter(port as unknown as MessagePort, file),
  'compare-thread': compare,
  'examine-thread': examineStored,
  'backup-thread': copy,
  'checkpoint-thread': checkpoint,
}
