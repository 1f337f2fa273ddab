import { describe, expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { createBatchWriter } from '../../src/ingest/commit.js'
import type { NormalizedEvent } from '../../src/provider/event.js'
import { endpoint, writeConfig } from '../config/config-file.js'
import { minute, pay, sub } from '../entitlements/events.js'
import { bodyOf, deliveryOf } from '../ingest/wire.js'
import { temporaryFile, temporaryStore } from '../store/temporary-store.js'
import { cli, NOW } from './run-cli.js'

const EVENTS = [
  pay('evt_1', 'payment.authorized', 'pay_1', 0),
  sub('evt_2', 'subscription.created', 0),
  pay('evt_3', 'payment.refunded', 'pay_1', 100),
]

/** A config whose database has taken in these events, in live. */
async function configWith(events: readonly NormalizedEvent[]): Promise<string> {
  const file = temporaryFile()
  const db = await temporaryStore(file)
  const writeBatch = createBatchWriter({ db, policy: () => DOCUMENTED_POLICY, clock: () => NOW })
  await writeBatch(events.map((event) => deliveryOf(bodyOf(event), { receivedAt: NOW })))
  const endpoints = {
    live: endpoint('live', 'whsec_live'),
    sandbox: endpoint('sandbox', 'whsec_sandbox'),
  }
  return writeConfig({ endpoints, database: { url: `sqlite:${file}` } })
}

function explain(config: string, ...args: string[]) {
  return cli(['explain', ...args, '--config', config])
}

describe('latchkey explain', () => {
  it('says what the other environment has where this one has nothing', async () => {
    const config = await configWith(EVENTS)
    const { exitCode, out } = await explain(config, 'cus_1', 'pro_a', '--environment', 'sandbox')
    expect(exitCode).toBe(0)
    expect(out).toMatch(/\nIn live: pro_a refunded \(--environment live explains it\)\n$/)
    expect((await explain(config, 'cus_1', 'pro_z')).out).not.toContain('In sandbox')
    const json = await explain(config, 'cus_1', 'pro_a', '--environment', 'sandbox', '--json')
    expect([JSON.parse(json.out).environment, json.err]).toEqual(['sandbox', ''])
  })

  it('shows the summary, then every source with its events in order', async () => {
    expect(await explain(await configWith(EVENTS), 'cus_1', 'pro_a')).toEqual({
      exitCode: 0,
      out: [
        'cus_1 has no access to pro_a since 2026-01-01T01:40:00.000Z: the payment was refunded (evt_3 of subscription sub_1).',
        '',
        'subscription sub_1 (paid by card)',
        '  access to pro_a  from 2026-01-01T00:00:00.000Z  until 2026-01-01T01:40:00.000Z  refunded',
        '  2026-01-01T00:00:00.000Z  evt_1  payment.authorized    applied  card: grant',
        '      Authorization of pay_1: pay_1 counts as paid from here on. Access to pro_a begins.',
        '  2026-01-01T00:00:00.000Z  evt_2  subscription.created  applied  no row',
        '      Start of sub_1: pay_1 has paid this cycle.',
        '  2026-01-01T01:40:00.000Z  evt_3  payment.refunded      applied  card: take back',
        '      Refund of pay_1: pay_1 counts no more. Access to pro_a ends.',
        '',
      ].join('\n'),
      err: '',
    })
  })

  it('shows what waits, and which end is coming', async () => {
    const ending = sub('evt_3', 'subscription.canceled', 1, {
      cancelAtPeriodEnd: true,
      expiresAt: minute(90_000),
    })
    const waiting = pay('evt_4', 'payment.authorized', 'pay_9', 5, { customerId: null, subscriptionId: null })
    const { out } = await explain(
      await configWith([...EVENTS.slice(0, 2), ending, waiting]),
      'cus_1',
      'pro_a',
    )
    expect(out).toContain(
      '\nWaiting\n  evt_4  payment.authorized  Authorization of pay_9: waits until an event tells whose it is.\n',
    )
    expect(out).toContain('\nComing ends\n  Access by subscription sub_1 ends at 2026-03-04T12:00:00.000Z')
  })

  it('answers as of an instant, and about the environment named', async () => {
    const config = await configWith(EVENTS)
    const before = await explain(config, 'cus_1', 'pro_a', '--at', '2026-01-01T01:00:00Z')
    expect(before.out).toContain('cus_1 has access to pro_a since 2026-01-01T00:00:00.000Z')
    expect(await explain(config, 'cus_1', 'pro_a', '--environment', 'sandbox')).toEqual({
      exitCode: 0,
      out: [
        'Nothing is known of cus_1 in sandbox: no event names them.',
        'In live: pro_a refunded (--environment live explains it)',
        '',
      ].join('\n'),
      err: '',
    })
  })

  it('answers in the form of the API if asked for JSON', async () => {
    const { out } = await explain(await configWith(EVENTS), 'cus_1', 'pro_a', '--json')
    expect(JSON.parse(out)).toMatchObject({
      customerId: 'cus_1',
      productId: 'pro_a',
      environment: 'live',
      asOf: new Date(NOW).toISOString(),
      entitlement: { status: 'refunded' },
      sources: [{ id: 'sub_1', events: [{ id: 'evt_1' }, { id: 'evt_2' }, { id: 'evt_3' }] }],
    })
  })

  it('exits 2 without a product, and 1 where there is no database', async () => {
    expect((await explain(await configWith([]), 'cus_1')).exitCode).toBe(2)
    const config = writeConfig({ endpoints: { live: endpoint('live', 'whsec_live') } })
    expect((await explain(config, 'cus_1', 'pro_a')).exitCode).toBe(1)
  })
})
