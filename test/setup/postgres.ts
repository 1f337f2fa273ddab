import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { startPostgres } from '../../bench/servers/postgres.js'

declare module 'vitest' {
  interface ProvidedContext {
    /** Of a server on which tests make databases of their own. */
    readonly postgresUrl: string
  }
}

/** What only matters to data that must outlive the machine, and the clutter of many small databases. */
const SETTINGS = [
  'fsync=off',
  'full_page_writes=off',
  'max_connections=400',
  'shared_buffers=32MB',
  'autovacuum=off',
]

/** Starts one PostgreSQL for all tests, unless `LATCHKEY_TEST_POSTGRES_URL` names one that may make databases. */
export default async function providePostgres({
  provide,
}: TestProject): Promise<(() => Promise<void>) | undefined> {
  const given = process.env.LATCHKEY_TEST_POSTGRES_URL
  if (given) {
    provide('postgresUrl', given)
    return
  }
  const folder = mkdtempSync(join(tmpdir(), 'latchkey-postgres-'))
  const { url, stop } = await startPostgres(folder, { settings: SETTINGS, initdbFlags: ['--no-sync'] })
  provide('postgresUrl', url)
  return async () => {
    await stop()
    rmSync(folder, { recursive: true, force: true })
  }
}
