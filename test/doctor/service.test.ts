import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.js'
import type { Finding } from '../../src/doctor/finding.js'
import { checkRecords, decidingTypes, type Received } from '../../src/doctor/service.js'
import type { Delivery } from '../../src/ingest/delivery.js'
import { endpoint, fromEnv } from '../config/config-file.js'
import { deliveryOf } from '../ingest/wire.js'
import { oddService, refusal } from '../payments-api/odd-service.js'
import { KEY, startService } from '../sandbox/service.js'
import { sentEvent } from '../stories.js'
import { configuredFolder, run, takeIn } from '../world.js'

const NOW = Date.parse('2026-03-20T12:00:00Z')

const shop = (name: string, id = `whep_${name}`, environment: 'live' | 'sandbox' = 'sandbox') => ({
  [name]: { ...endpoint(environment, `whsec_${name}_0123456789abcdef`), serviceId: id },
})

const configOf = (endpoints: object, more: object = {}) =>
  loadConfig({ path: '/nowhere/config.json', value: { endpoints, ...more }, env: {} }).config

const NOTHING: Received = { lastAt: null, generation: null, apiVersion: null }

/** What is found where each endpoint has such a record: by default one with nothing wrong. */
function found(records: Readonly<Record<string, object>>, received: Partial<Received> = {}, more = {}) {
  const config = configOf(Object.assign({}, ...Object.keys(records).map((name) => shop(name))), more)
  const compared = config.endpoints.map((one) => ({
    endpoint: one,
    record: {
      id: one.serviceId ?? '',
      url: `https://hooks.example.com/webhooks/${one.name}`,
      ...{ enabledEvents: [], isActive: true, apiVersion: '3.0.0-beta' },
      ...records[one.name],
    },
    received: { ...NOTHING, ...received },
  }))
  return checkRecords(config, compared)
}

const BUT_REFUNDS = decidingTypes(configOf({})).filter((type) => type !== 'payment.refunded')

describe('the doctor, of a record at the payments service', () => {
  it('finds nothing wrong with one that is active, delivers here, and sends all that decides', () => {
    const detail = 'active, https://hooks.example.com/in/webhooks/v3, all events, version 3.0.0-beta'
    const url = 'https://user:secret@hooks.example.com/in/webhooks/v3?token=secret'
    expect(found({ v3: { url } })).toEqual([{ level: 'ok', what: 'service v3', detail, todo: null }])
    expect(found({ v3: { enabledEvents: [...BUT_REFUNDS, 'payment.refunded'] } })).toMatchObject([
      { level: 'ok' },
    ])
  })

  it.each<[string, object, Partial<Finding>]>([
    ['is inactive', { isActive: false }, { level: 'fail', todo: expect.stringContaining('v3 --enable') }],
    [
      'delivers to another path',
      { url: 'https://hooks.example.com/in?token=secret' },
      {
        level: 'warn',
        detail: 'it delivers to https://hooks.example.com/in, which does not end in /webhooks/v3',
      },
    ],
    [
      'leaves out what decides',
      { enabledEvents: BUT_REFUNDS },
      { level: 'warn', detail: 'it is not sent payment.refunded, so access may be wrong' },
    ],
    ['has another version', { apiVersion: 'v4' }, { level: 'warn', detail: expect.stringContaining('v4') }],
    ['has an older version', { apiVersion: '2' }, { level: 'warn' }],
  ])('finds that it %s', (_, record, finding) => {
    expect(found({ v3: record })).toMatchObject([{ what: 'service v3', ...finding }])
  })

  it('finds every fault of one', () => {
    const faulty = { isActive: false, url: 'no address', enabledEvents: ['payment.failed'], apiVersion: 'v4' }
    expect(found({ v3: faulty }).map(({ level }) => level)).toEqual(['fail', 'warn', 'warn', 'warn'])
  })

  it('fails where it delivers to another endpoint of the config, whose secrets are others', () => {
    const url = 'https://hooks.example.com/webhooks/other'
    expect(found({ v3: { url }, other: {} })).toMatchObject([
      {
        level: 'fail',
        detail: `it delivers to ${url}, which is the endpoint other`,
        todo: expect.stringContaining('endpoints update v3 --url'),
      },
      { level: 'ok', what: 'service other' },
    ])
  })

  it('takes two endpoints together for what is sent, if both are active', () => {
    const both = { v3: { enabledEvents: BUT_REFUNDS }, refunds: { enabledEvents: ['payment.refunded'] } }
    expect(found(both).filter(({ what }) => what === 'service v3')).toMatchObject([{ level: 'ok' }])
    const one = { ...both, refunds: { ...both.refunds, isActive: false } }
    expect(found(one).filter(({ what }) => what === 'service v3')).toMatchObject([
      { detail: expect.stringContaining('payment.refunded') },
    ])
  })

  it('goes by the policy, and by whether deleted customers are erased', () => {
    const grantOn = { card: ['payment.settled'] }
    expect(decidingTypes(configOf({}))).not.toContain('payment.settled')
    expect(decidingTypes(configOf({}, { policy: { grantOn } }))).toContain('payment.settled')
    expect(decidingTypes(configOf({}))).not.toContain('customer.deleted')
    expect(decidingTypes(configOf({}, { erasure: { onCustomerDeleted: true } }))).toContain(
      'customer.deleted',
    )
  })

  it('finds deliveries of another version than the record has', () => {
    const versions: readonly (readonly [Partial<Received>, string])[] = [
      [{ generation: 'v3', apiVersion: '3.0.0-beta' }, 'ok'],
      [{ generation: 'v3', apiVersion: null }, 'ok'],
      [{ generation: 'v3', apiVersion: '3.1.0' }, 'warn'],
      [{ generation: 'v2', apiVersion: null }, 'warn'],
    ]
    for (const [received, level] of versions)
      expect(found({ v3: {} }, { lastAt: NOW, ...received })).toMatchObject([{ level }])
    // A date says nothing of what this program reads.
    expect(found({ v3: { apiVersion: '2026-07-01' } })).toMatchObject([{ level: 'ok' }])
    expect(found({ v3: { apiVersion: null } })).toMatchObject([{ level: 'ok' }])
  })
})

function arrived(endpointName: string): Delivery {
  const data = { object: 'payment', id: 'pay_1', method: 'CARD', product: { id: 'pro_1' } }
  const customer = { customer: { id: 'cus_1' } }
  const { body } = sentEvent('evt_1', 'payment.authorized', NOW, { ...data, ...customer })
  const json = { ...JSON.parse(body), livemode: false, api_version: '3.9.0' }
  return deliveryOf(JSON.stringify(json), { receivedAt: NOW, endpoint: endpointName, environment: 'sandbox' })
}

/** The lines about the service of `latchkey doctor --json`, without a daemon. */
async function doctor(folder: string) {
  const { stdout } = await run(folder, 'doctor --json', { now: () => NOW })
  const { findings } = JSON.parse(stdout) as { findings: readonly Finding[] }
  return findings.filter(({ what }) => what.startsWith('service '))
}

describe('latchkey doctor', () => {
  it('compares the records of the service with what came, without a daemon', async () => {
    const service = await startService()
    const url = 'http://127.0.0.1:4680/webhooks/shop'
    const { id } = await service.data('POST /v3/webhook-endpoints', { url })
    const access = { baseUrl: service.url, apiKey: KEY }
    const own = endpoint('sandbox', 'whsec_own_0123456789abcdef')
    const endpoints = { ...shop('shop', id), ...shop('gone', 'whep_gone'), own }
    const folder = configuredFolder({ endpoints, provider: { sandbox: access } })
    // Before there is a store.
    expect(await doctor(folder)).toMatchObject([
      { level: 'ok', what: 'service shop' },
      {
        level: 'fail',
        what: 'service gone',
        detail: 'the payments service does not know whep_gone',
        todo: expect.stringContaining('endpoints.gone.serviceId'),
      },
    ])
    await takeIn(folder, [arrived('shop')], () => NOW)
    expect((await doctor(folder))[0]).toMatchObject({
      level: 'warn',
      detail: 'its version is 3.0.0-beta, and the newest delivery to this name has 3.9.0',
    })
  })

  it('says why the service could not be asked, and goes on', async () => {
    const service = await startService()
    const access = (apiKey: string) => ({ baseUrl: service.url, apiKey })
    const endpoints = { ...shop('test'), ...shop('v3', 'whep_1', 'live') }
    const ask = (provider: object) => doctor(configuredFolder({ endpoints, provider }))
    const cannot = (name: string, why: string) => ({
      ...{ level: 'warn', what: `service ${name}`, todo: null },
      detail: expect.stringMatching(new RegExp(`^the payments service can’t be asked: .*${why}`)),
    })
    const { url } = await oddService([refusal(422, 'MISSING_FIELD')])
    expect((await ask({ sandbox: { ...access(KEY), baseUrl: url } }))[0]).toEqual({
      ...cannot('test', '422 MISSING_FIELD'),
      todo: expect.stringContaining('dashboard'),
    })
    expect(await ask({ sandbox: access('sk_sandbox_wrong') })).toEqual([
      cannot('test', '401 UNAUTHORIZED.*Check provider\\.sandbox\\.apiKey'),
      cannot('v3', 'not configured: add provider\\.live'),
    ])
    const missing = access(fromEnv('NOT_SET'))
    await service.stop()
    expect(await ask({ sandbox: access(KEY), live: missing })).toEqual([
      cannot('test', 'ECONNREFUSED.*Check provider\\.sandbox\\.baseUrl'),
      cannot('v3', 'NOT_SET'),
    ])
  })
})

it('asks nothing where no endpoint has an id there', async () => {
  const asked = { sandbox: { baseUrl: 'http://127.0.0.1:1', apiKey: KEY } }
  const folder = configuredFolder({
    endpoints: { own: endpoint('sandbox', 'whsec_own_0123456789abcdef') },
    provider: asked,
  })
  expect(await doctor(folder)).toEqual([])
})
