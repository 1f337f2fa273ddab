import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { describe, expect, inject, it } from 'vitest'
import { runDaemon, send } from '../daemon/running-daemon.js'
import { wireEvent } from '../daemon/wire-events.js'
import { certify } from '../setup/certificate.js'
import { eventually } from '../setup/eventually.js'
import { openStoreAt, postgresAt, temporaryFolder } from '../world.js'

const AUTHORITY = inject('postgresAuthority')

/** A daemon on a server that its certificate calls localhost. */
async function start(host: string, parameters: Readonly<Record<string, string>>, file = temporaryFolder()) {
  const url = new URL((await postgresAt(file)).url)
  url.hostname = host
  url.search = new URLSearchParams(parameters).toString()
  return runDaemon({ config: { database: { url: url.href } } })
}

describe.skipIf(AUTHORITY === '')('TLS to the database', () => {
  it('serves every connection, and knows the server by its name and its authority', async () => {
    const daemon = await start('localhost', { sslmode: 'verify-full', sslrootcert: AUTHORITY }, 'tls')
    expect((await send(daemon, wireEvent('payment.authorized'))).status).toBe(200)
    const db = await openStoreAt('tls', { readOnly: true })
    await eventually(async () => {
      // Of the listener, of the lease, of readers and writers.
      const { rows } = await sql<{ ssl: boolean; query: string }>`
        select ssl, query from pg_stat_activity join pg_stat_ssl using (pid)
        where datname = current_database() and pid <> pg_backend_pid()`.execute(db)
      expect(rows.map(({ query }) => query)).toContain('listen "latchkey"')
      expect(rows.length).toBeGreaterThan(3)
      expect(rows.filter(({ ssl }) => !ssl)).toEqual([])
    })
    await db.destroy()
  })

  it.each(['verify-full', 'require'])(
    'refuses with sslmode=%s a server of an unknown authority or of another name, and says what to do',
    async (sslmode) => {
      const foreign = join(temporaryFolder(), 'foreign.pem')
      writeFileSync(foreign, certify('Another authority').certificate)
      const unknown = /Name the authority of its certificate in database.url: sslrootcert=/
      for (const [host, parameters, message] of [
        ['localhost', {}, unknown],
        ['localhost', { sslrootcert: foreign }, unknown],
        ['127.0.0.1', { sslrootcert: AUTHORITY }, /Name the server in database.url as its certificate does/],
        ['localhost', { sslrootcert: '/not/there.pem' }, /\/not\/there.pem/],
      ] as const) {
        const refused = start(host, { sslmode, ...parameters })
        await expect(refused).rejects.toMatchObject({
          code: 'store_unavailable',
          message: expect.stringMatching(message),
        })
        await expect(refused).rejects.toMatchObject({
          message: expect.not.stringContaining(`${new URL(inject('postgresUrl')).password}@`),
        })
      }
    },
  )

  it('trusts any server with sslmode=no-verify', async () => {
    expect(
      (await send(await start('127.0.0.1', { sslmode: 'no-verify' }), wireEvent('payment.authorized')))
        .status,
    ).toBe(200)
  })
})
