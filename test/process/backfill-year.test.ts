import { expect, it } from 'vitest'
import { EXAMPLE_POLICY } from '../../src/config/policy.js'
import { differingNow, everyItem, playYear } from '../sandbox/merchant-year.js'
import { client, DAY_MS, type Json, type Service } from '../sandbox/service.js'
import { eventually } from '../setup/eventually.js'
import { freePort } from '../setup/free-port.js'
import {
  API_KEY,
  type AskedDaemon,
  act,
  configuredFolder,
  latchkey,
  MAY_ALL,
  serve,
  startProgram,
  temporaryFolder,
} from '../world.js'

/**
 * Another one by hand: `SEED=7 CUSTOMERS=200 npx vitest run test/process/backfill-year.test.ts`. In some years nobody can tell which of
 * two payments paid a cycle, or when a payment was charged back: then access may differ, and the backfill lists why.
 */
const SEED = Number(process.env.SEED ?? 3)
const CUSTOMERS = Number(process.env.CUSTOMERS ?? 80)
const MONTHS = 13

/** Runs a backfill to its end. */
async function backfill(daemon: AskedDaemon, how: object = {}): Promise<Json> {
  const { id } = await act(daemon, 'POST', '/backfills?environment=sandbox', how)
  return eventually(async () => {
    const run = await act(daemon, 'GET', `/backfills/${id}`)
    expect(run.state).not.toBe('running')
    return run
  })
}

/** Delivers everything that was lost. Answers with how much that was. */
async function deliverLost(service: Pick<Service, 'call' | 'data'>): Promise<number> {
  const lost = await everyItem(service, '/sandbox/deliveries', 'status=dropped&limit=100')
  for (const { id } of lost) await service.data(`POST /sandbox/deliveries/${id}/send`)
  return lost.length
}

it(`a backfill brings what a year of webhooks did not, seed ${SEED}`, async () => {
  const from = new Date(Date.now() - (MONTHS * 30.4 + 3) * DAY_MS).toISOString()
  const sandbox = startProgram(latchkey('sandbox', '--port', '0', '--seed', String(SEED), '--from', from), {
    folder: temporaryFolder(),
  })
  const [, url = '', apiKey = ''] = await sandbox.until(/sandbox on (http:\S+)\nkey (\S+) /)
  const service = client(url, apiKey)
  const port = await freePort()
  const { secret } = await service.data('POST /v3/webhook-endpoints', {
    url: `http://127.0.0.1:${port}/webhooks/lossy`,
  })
  const daemon = await serve(
    configuredFolder({
      ...MAY_ALL,
      endpoints: { lossy: { environment: 'sandbox', secrets: [secret] } },
      provider: { sandbox: { baseUrl: url, apiKey, legacy: true } },
      policy: EXAMPLE_POLICY,
    }),
    { LATCHKEY_PORT: String(port) },
  )
  const differing = () => differingNow(service, daemon, API_KEY)

  const year = {
    seed: SEED,
    customers: CUSTOMERS / 4,
    newcomers: (3 * CUSTOMERS) / 4,
    months: MONTHS,
    pace: 10,
    swapsPlans: true,
  }
  await playYear(service, { ...year, loses: 0.05 })
  await service.data('POST /sandbox/clock/advance', { to: new Date().toISOString() })
  expect((await differing()).length).toBeGreaterThan(3)

  await backfill(daemon)
  expect(await differing()).toEqual([])
  const second = await backfill(daemon)
  expect(second.summary.stored.total).toBe(0)

  expect(await deliverLost(service)).toBeGreaterThan(100)
  expect(await differing()).toEqual([])

  sandbox.signal('SIGTERM')
  expect(await sandbox.exit).toMatchObject({ code: 0, stderr: '' })
  await daemon.stop()
})
