import { linkSync, mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { entitlement, metric } from './observed.js'
import { writeBeside } from './other-writer.js'
import { ask, LIVE_SECRET, type RunningDaemon, runDaemon, send } from './running-daemon.js'
import { storedEvents } from './stored.js'
import { CUSTOMER, PRODUCT, wireEvent } from './wire-events.js'

const GRANT = wireEvent('payment.authorized')

describe('a database that is no longer where it was', () => {
  it.each<[string, (daemon: RunningDaemon) => void]>([
    ['removed', ({ databaseFile }) => rmSync(databaseFile)],
    ['removed with its folder', ({ databaseFile }) => rmSync(dirname(databaseFile), { recursive: true })],
    ['emptied', ({ databaseFile }) => truncateSync(databaseFile)],
    [
      'replaced by another file',
      ({ databaseFile }) => {
        writeFileSync(`${databaseFile}.other`, 'another file')
        renameSync(`${databaseFile}.other`, databaseFile)
      },
    ],
    ['without its lock file', ({ databaseFile }) => rmSync(`${databaseFile}.lock`)],
  ])('takes no delivery once %s, and ends', async (_name, harm) => {
    const daemon = await runDaemon()
    expect((await send(daemon, GRANT)).status).toBe(200)
    expect(await metric(daemon, 'latchkey_ready')).toBe(1)
    expect(await metric(daemon, 'latchkey_database_size_bytes')).toBeGreaterThan(4_096)
    harm(daemon)
    const refused = await send(daemon, wireEvent('payment.refunded'))
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).toMatch(/^\d+$/)
    expect(await refused.json()).toMatchObject({ status: 503, code: 'not_stored' })
    expect(await daemon.failure).toMatchObject({ code: 'store_replaced' })
    expect((await ask(daemon, '/healthz')).status).toBe(503)
    expect(await metric(daemon, 'latchkey_ready')).toBe(0)
    expect(await metric(daemon, 'latchkey_deliveries_not_stored_total{endpoint="live"}')).toBe(1)
  })

  it('is one database under every link that leads to it', async () => {
    const first = await runDaemon()
    const folder = join(first.folder, 'elsewhere')
    mkdirSync(join(folder, 'data'), { recursive: true })
    symlinkSync(first.databaseFile, join(folder, 'data', 'latchkey.db'))
    await expect(runDaemon({ folder })).rejects.toMatchObject({ code: 'store_in_use' })
  })

  it('is not served under a second name', async () => {
    const first = await runDaemon()
    await first.stop()
    const folder = join(first.folder, 'elsewhere')
    mkdirSync(join(folder, 'data'), { recursive: true })
    linkSync(first.databaseFile, join(folder, 'data', 'latchkey.db'))
    await expect(runDaemon({ folder })).rejects.toMatchObject({ code: 'store_in_use' })
  })

  it('is named where it is damaged from the start', async () => {
    const first = await runDaemon()
    await first.stop()
    writeFileSync(first.databaseFile, 'this is no database, and long enough to be read as one '.repeat(200))
    await expect(runDaemon({ folder: first.folder })).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining(first.databaseFile),
    })
  })
})

describe('readiness', () => {
  it('is told by storing something, which a store that refuses does not', async () => {
    const daemon = await runDaemon()
    expect((await ask(daemon, '/readyz')).status).toBe(200)
    const before = await daemon.stored((db) => db.selectFrom('settings').selectAll().execute())
    expect(before.map(({ key }) => key)).toContain('probed_at')
  })
})

describe('a store that cannot be read', () => {
  /** Takes away, or gives back, the table that every answer is read from. */
  function rename(daemon: RunningDaemon, from: string, to: string): Promise<void> {
    return writeBeside(daemon, (db) => db.schema.alterTable(from).renameTo(to).execute())
  }

  it('is never answered as "not entitled", acknowledges nothing, and may come back', async () => {
    const endpoints = { live: { environment: 'live', secrets: [LIVE_SECRET] } }
    const daemon = await runDaemon({ config: { endpoints } })
    await send(daemon, GRANT)
    const paths = [CUSTOMER, 'cus_nobody'].flatMap((one) => [
      `/entitlements/${one}`,
      `/entitlements/${one}/${PRODUCT}`,
    ])
    await rename(daemon, 'sources', 'sources_away')
    for (const path of paths) {
      const answer = await ask(daemon, path)
      expect(answer.status).toBe(503)
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
      const text = await answer.text()
      expect(JSON.parse(text)).toMatchObject({ status: 503, code: 'store_unavailable' })
      expect(text).not.toMatch(/active|none|sources/)
    }
    const refund = wireEvent('payment.refunded', { minutes: 10 })
    const refused = await send(daemon, refund)
    expect(refused.status).toBe(503)
    expect(await refused.json()).toMatchObject({ status: 503, code: 'not_stored' })
    expect(await storedEvents(daemon)).toHaveLength(1)

    await rename(daemon, 'sources_away', 'sources')
    expect(await entitlement(daemon)).toMatchObject({ active: true })
    expect(await (await send(daemon, refund)).json()).toMatchObject({ disposition: 'applied' })
    expect(await entitlement(daemon)).toMatchObject({ active: false, status: 'refunded' })
  })
})
