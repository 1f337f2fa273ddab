import { describe, expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { endpoint, writeConfig } from '../config/config-file.js'
import { deliveryOf } from '../ingest/wire.js'
import { everything, storeUnder } from '../recompute/recompute-store.js'
import { open, temporaryFile } from '../store/temporary-store.js'
import { cli } from './run-cli.js'

/** Under the documented table a card payment gives access once authorized, and `payment.succeeded` gives none. */
function paid(paymentId: string, type = 'payment.succeeded') {
  const data = { id: paymentId, customer: `cus_of_${paymentId}`, product: 'pro_1', method: 'CARD' }
  const event = { id: `evt_${type}_${paymentId}`, type, createdAt: '2026-01-01T00:00:00Z', data }
  return deliveryOf(JSON.stringify(event))
}

const OTHER_ROW = { grantOn: { card: ['payment.succeeded'] } }

/** A stopped database under the documented policy, in which that many succeeded and one was authorized. */
async function stopped(policy: unknown, succeeded = 1): Promise<{ file: string; config: string }> {
  const told = Array.from({ length: succeeded }, (_, n) => paid(`pay_${String(n).padStart(2, '0')}`))
  const store = await storeUnder(DOCUMENTED_POLICY, [...told, paid('pay_a', 'payment.authorized')])
  await store.close()
  const config = writeConfig({
    endpoints: { live: endpoint('live', 'whsec_live') },
    database: { url: `sqlite:${store.file}` },
    ...(policy === undefined ? {} : { policy }),
  })
  return { file: store.file, config }
}

describe('policy diff', () => {
  it('names who would gain and who would lose, and changes nothing that is stored', async () => {
    const { file, config } = await stopped(OTHER_ROW)
    const before = await everything(open(file, true))
    const { exitCode, out, err } = await cli(['policy', 'diff', '--config', config])
    expect({ exitCode, err }).toEqual({ exitCode: 0, err: '' })
    expect(out).toBe(
      [
        '1 would gain access, 1 would lose it, 0 would change in another way',
        'live  cus_of_pay_00  pro_1  none -> active',
        'live  cus_of_pay_a   pro_1  active -> none',
        '',
      ].join('\n'),
    )
    expect(await everything(open(file, true))).toEqual(before)
  })

  it('counts all of them, and shows ten unless it is asked for all', async () => {
    const { config } = await stopped(OTHER_ROW, 12)
    const some = await cli(['policy', 'diff', '--config', config])
    expect(some.out).toMatch(/^12 would gain access, 1 would lose it/)
    expect(some.out.split('\n')).toHaveLength(13)
    expect(some.out).toMatch(/\nand 3 more\n$/)
    const all = JSON.parse((await cli(['policy', 'diff', '--all', '--json', '--config', config])).out)
    expect(all).toMatchObject({ gains: 12, losses: 1, otherwise: 0 })
    expect(all.sample).toHaveLength(13)
  })

  it('keeps to one environment where one is named', async () => {
    const { config } = await stopped(OTHER_ROW)
    const args = ['policy', 'diff', '--environment', 'sandbox', '--config', config]
    expect((await cli(args)).out).toBe('nobody’s access would change\n')
  })

  it('fails where there is no database', async () => {
    const config = writeConfig({ database: { url: `sqlite:${temporaryFile()}` } })
    const { exitCode, err } = await cli(['policy', 'diff', '--json', '--config', config])
    expect(exitCode).toBe(1)
    expect(JSON.parse(err)).toMatchObject({ error: { code: 'store_missing' } })
  })
})

describe('policy show', () => {
  it('shows the policy in force, and the rows that are configured otherwise', async () => {
    const { config } = await stopped(OTHER_ROW)
    const { out } = await cli(['policy', 'show', '--config', config])
    expect(out).toContain('grantOn.card: payment.authorized, checkout.succeeded\n')
    expect(out).toMatch(/the configured policy differs.*\n {2}grantOn\.card: payment\.succeeded\n$/)
    expect(JSON.parse((await cli(['policy', 'show', '--json', '--config', config])).out)).toMatchObject({
      inForce: DOCUMENTED_POLICY,
      differs: ['grantOn.card'],
      unfinishedRebuild: false,
    })
  })

  it('says so where both are the same', async () => {
    const { config } = await stopped(undefined)
    expect((await cli(['policy', 'show', '--config', config])).out).toMatch(
      /the configured policy is the same\n$/,
    )
  })
})

describe('policy apply, where no daemon runs,', () => {
  it('does what the diff told, and nothing the second time', async () => {
    const { file, config } = await stopped(OTHER_ROW)
    const told = JSON.parse((await cli(['policy', 'diff', '--json', '--config', config])).out)
    const applied = await cli(['policy', 'apply', '--json', '--config', config])
    expect({ ...applied, out: JSON.parse(applied.out) }).toEqual({ exitCode: 0, err: '', out: told })
    expect((await cli(['check', 'cus_of_pay_00', 'pro_1', '--config', config])).out).toContain('active')

    const after = await everything(open(file, true))
    const again = await cli(['policy', 'apply', '--config', config])
    expect(again.out).toBe('the configured policy is in force\nnobody’s access has changed\n')
    expect(await everything(open(file, true))).toEqual(after)
  })

  it('fails, and makes nothing, where there is no database', async () => {
    const config = writeConfig({ database: { url: `sqlite:${temporaryFile()}` } })
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const { exitCode, err } = await cli(['policy', 'apply', '--json', '--config', config])
      expect({ exitCode, code: JSON.parse(err).error.code }).toEqual({ exitCode: 1, code: 'store_missing' })
    }
  })
})

describe('rebuild', () => {
  it('verifies what stands, exits 1 with what differs, and mends that', async () => {
    const { file, config } = await stopped(undefined)
    expect(await cli(['rebuild', '--verify', '--config', config])).toMatchObject({
      exitCode: 0,
      out: 'everything is stored as the events say\n',
    })
    await open(file).updateTable('entitlements').set({ active: 0, status: 'refunded' }).execute()
    expect(await cli(['rebuild', '--verify', '--config', config])).toEqual({
      exitCode: 1,
      out: 'live  entitlement  cus_of_pay_a pro_1\n',
      err: 'error: one thing is stored differently from what the stored events say: latchkey rebuild corrects that\n',
    })
    expect((await cli(['rebuild', '--config', config])).out).toContain('refunded -> active\n')
    expect(await cli(['rebuild', '--verify', '--config', config])).toMatchObject({ exitCode: 0 })
  })

  it('keeps the policy in force, whatever is configured', async () => {
    const { file, config } = await stopped(OTHER_ROW)
    const before = await everything(open(file, true))
    expect((await cli(['rebuild', '--config', config])).out).toBe('nobody’s access has changed\n')
    expect(await everything(open(file, true))).toEqual(before)
  })
})

describe('rebuild --environment', () => {
  /** Both environments have a payment; what is written down of live is not as its events say. */
  async function tampered(): Promise<string> {
    const told = paid('pay_a', 'payment.authorized')
    const store = await storeUnder(DOCUMENTED_POLICY, [
      told,
      { ...told, endpoint: 'sandbox', environment: 'sandbox' },
    ])
    await store.db.updateTable('entitlements').set({ active: 0 }).where('environment', '=', 'live').execute()
    await store.close()
    const endpoints = {
      live: endpoint('live', 'whsec_live'),
      sandbox: endpoint('sandbox', 'whsec_sandbox'),
    }
    return writeConfig({ endpoints, database: { url: `sqlite:${store.file}` } })
  }

  it('compares that one', async () => {
    const config = await tampered()
    const verify = (...args: string[]) => cli(['rebuild', '--verify', ...args, '--config', config])
    expect(await verify('--environment', 'sandbox')).toEqual({
      exitCode: 0,
      out: 'everything in sandbox is stored as the events say\n',
      err: '',
    })
    const live = await verify('--environment', 'live')
    expect(live).toMatchObject({ exitCode: 1, out: 'live  entitlement  cus_of_pay_a pro_1\n' })
    expect((await verify()).out).toBe(live.out)
    expect(JSON.parse((await verify('--environment', 'sandbox', '--json')).out)).toEqual({ differences: [] })
  })

  it('rebuilds both, and reports that one', async () => {
    const config = await tampered()
    const sandbox = await cli(['rebuild', '--environment', 'sandbox', '--config', config])
    expect(sandbox).toEqual({ exitCode: 0, out: 'nobody’s access has changed in sandbox\n', err: '' })
    expect(await cli(['rebuild', '--verify', '--config', config])).toMatchObject({ exitCode: 0 })

    const live = await cli(['rebuild', '--environment', 'live', '--json', '--config', await tampered()])
    expect(JSON.parse(live.out)).toMatchObject({ gains: 1, sample: [{ environment: 'live' }] })
  })

  it('says so in its help', async () => {
    expect((await cli(['rebuild', '--help'])).out).toMatch(/a rebuild\s+always covers both/)
  })
})
