import { expect, it } from 'vitest'
import { EXAMPLE_POLICY } from '../../src/config/policy.js'
import { compareYear } from '../sandbox/merchant-year.js'
import { client } from '../sandbox/service.js'
import { configuredFolder, keyEntry, latchkey, serve, startProgram } from '../world.js'

const READER = 'lk_year_reader'
const SEED = 7

/** As the first start makes it, and an endpoint of the legacy generation. */
const CONFIG = {
  server: { port: 0 },
  endpoints: {
    sandbox: { environment: 'sandbox', secrets: ['whsec_year_current_0123'], aheadAtMost: '10y' },
    'sandbox-legacy': { environment: 'sandbox', secrets: ['whsec_year_legacy_0123'], aheadAtMost: '10y' },
  },
  api: { keys: [{ ...keyEntry('app', READER), environments: ['sandbox'] }] },
  policy: EXAMPLE_POLICY,
}

it(`the daemon answers what is true at each month’s end of a year that the sandbox plays ahead of it, seed ${SEED}`, async () => {
  const folder = configuredFolder(CONFIG)
  const daemon = await serve(folder)
  const sandbox = startProgram(latchkey('sandbox', '--port', '0', '--seed', String(SEED)), { folder })
  const [, url = '', key = ''] = await sandbox.until(/sandbox on (http:\S+)\nkey (\S+) [\s\S]*\(v2\)\n/)
  const service = client(url, key)
  const { happened, months, differing } = await compareYear(service, daemon, READER, {
    seed: SEED,
    customers: 50,
    months: 13,
    pace: 10,
    swapsPlans: true,
    isAhead: true,
  })
  expect({ seed: SEED, differing }).toEqual({ seed: SEED, differing: [] })
  expect(months).toBe(13)
  // The year is one only if everything in it happened.
  expect([...happened].filter(([, times]) => times === 0)).toEqual([])

  sandbox.signal('SIGTERM')
  expect(await sandbox.exit).toMatchObject({ code: 0, stderr: '' })
  await daemon.stop()
})
