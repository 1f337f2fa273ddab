import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { LatchkeyError } from '../errors.js'
import type { Backup } from '../store/sqlite/backup.js'
import { removePartsOf } from '../store/sqlite/part-file.js'
import { threadFile } from '../store/sqlite/thread-file.js'

/** What the process that makes a backup says at its end. */
export type BackupReply = { readonly backup: Backup } | { readonly reason: string }

export interface BackupUnderWay {
  /** Rejects with `backup_failed` where the backup fails, or is stopped. */
  readonly done: Promise<Backup>
  /** Gives it up at once. */
  stop(): void
}

/** Makes a backup beside everything else, in a process of its own. Never overwrites. */
export function startBackup(file: string, target: string): BackupUnderWay {
  // Of the environment it needs nothing: secrets may be there.
  const child = fork(threadFile(import.meta.url, 'backup-process'), [file, target], { execArgv: [], env: {} })
  return { done: backupBy(child, target), stop: () => void child.kill('SIGKILL') }
}

async function backupBy(child: ChildProcess, target: string): Promise<Backup> {
  let reply: BackupReply | null = null
  child.once('message', (message) => {
    reply = message as BackupReply
  })
  // What it said last may come after its end, but before the channel closes.
  await Promise.all([once(child, 'exit'), once(child, 'disconnect')])
  removePartsOf(target)
  return backupIn(reply)
}

function backupIn(reply: BackupReply | null): Backup {
  if (reply === null) {
    throw new LatchkeyError('backup_failed', 'The process that makes the backup ended before it was whole.')
  }
  if ('reason' in reply) throw new LatchkeyError('backup_failed', reply.reason)
  return reply.backup
}
