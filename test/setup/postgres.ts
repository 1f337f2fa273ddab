import { chownSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { withCurrentSchema } from '../../src/store/postgres/store.js'
import { certify } from './certificate.js'
import { createFolder } from './create-folder.js'
import { keepExitCode } from './keep-exit-code.js'
import { newPostgres } from './postgres-server.js'

declare module 'vitest' {
  interface ProvidedContext {
    /** Of a server on which tests make databases of their own. */
    readonly postgresUrl: string
    /** A database there with the schema and nothing else: a copy of it takes a tenth of the time of the schema's steps. */
    readonly postgresTemplate: string
    /** How a database is copied there, in the words of `create database`. */
    readonly postgresCopying: string
    /** The file of the authority that has signed for that server under the name localhost; empty: it is not ours. */
    readonly postgresAuthority: string
  }
}

/** Of all tests that run at a time. */
const FLAGS = ['max_connections=400', 'ssl=on']

/** Starts one PostgreSQL for all tests, unless `LATCHKEY_TEST_POSTGRES_URL` names one that may make databases. */
export default async function startPostgres({
  provide,
}: TestProject): Promise<(() => Promise<void>) | undefined> {
  keepExitCode()
  const given = process.env.LATCHKEY_TEST_POSTGRES_URL
  if (given) {
    provide('postgresUrl', given)
    provide('postgresAuthority', '')
    return makeTemplate(given, provide)
  }
  const folder = createFolder()
  const { postgres, data, url } = await newPostgres(folder, FLAGS)
  const authority = certify('Authority of the tests')
  const { certificate, key } = certify('localhost', authority)
  writeFileSync(join(folder, 'authority.pem'), authority.certificate)
  const { uid, gid } = statSync(data)
  for (const [name, text] of [
    ['server.crt', certificate],
    ['server.key', key.export({ type: 'pkcs8', format: 'pem' })],
  ] as const) {
    writeFileSync(join(data, name), text, { mode: 0o600 })
    chownSync(join(data, name), uid, gid)
  }
  await postgres.start()
  provide('postgresUrl', url)
  provide('postgresAuthority', join(folder, 'authority.pem'))
  await makeTemplate(url, provide)
  return async () => {
    await postgres.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** From this version on, a copy goes through the log page by page by default, for twice the processor time and more. */
const LOGS_COPIES = 150_000

/** @returns what drops it again */
async function makeTemplate(server: string, provide: TestProject['provide']): Promise<() => Promise<void>> {
  const name = `latchkey_template_${process.pid}`
  const client = new pg.Client({ connectionString: server })
  await client.connect()
  await client.query(`create database ${name}`)
  const url = Object.assign(new URL(server), { pathname: `/${name}` }).href
  await withCurrentSchema({ url, connections: 1, statementTimeoutMs: 60_000 }, () => {})
  provide('postgresTemplate', name)
  const { rows } = await client.query<{ version: string }>(
    `select current_setting('server_version_num') as version`,
  )
  provide('postgresCopying', Number(rows[0]?.version) >= LOGS_COPIES ? 'strategy file_copy' : '')
  await client.end()
  return async () => {
    const ending = new pg.Client({ connectionString: server })
    await ending.connect()
    await ending.query(`drop database ${name}`)
    await ending.end()
  }
}
