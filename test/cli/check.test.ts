import { existsSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { packHistory } from '../../src/entitlements/history.js'
import type { SourceState } from '../../src/entitlements/model.js'
import type { Environment } from '../../src/provider/event.js'
import { saveSources } from '../../src/store/sources.js'
import { endpoint, temporaryFolder, writeConfig } from '../config/config-file.js'
import { temporaryFile, temporaryStore } from '../store/temporary-store.js'
import { cli, NOW } from './run-cli.js'

const JANUARY_10 = Date.UTC(2026, 0, 10)
const JANUARY_20 = Date.UTC(2026, 0, 20)

const live = endpoint('live', 'whsec_live')
const sandbox = endpoint('sandbox', 'whsec_sandbox')

const JANUARY_INTERVAL = {
  productId: 'pro_1',
  from: JANUARY_10,
  until: null,
  reason: null,
  eventId: 'evt_1',
}

function payment(id: string, told: Partial<SourceState> = {}): SourceState {
  return {
    kind: 'payment',
    id,
    customerId: 'cus_1',
    rail: 'card',
    intervals: [JANUARY_INTERVAL],
    pastDueSince: null,
    cancelAtPeriodEnd: false,
    periodEnd: null,
    providerStatus: null,
    newestAt: JANUARY_10,
    cyclesWithoutPayment: 0,
    held: {},
    ...told,
  }
}

const refunded = payment('pay_2', {
  intervals: [
    { productId: 'pro_2', from: JANUARY_10, until: JANUARY_20, reason: 'refunded', eventId: 'evt_2' },
  ],
})

/** A config whose database holds these sources in one environment. */
async function configWith(
  environment: Environment,
  sources: readonly SourceState[],
  endpoints: Readonly<Record<string, unknown>> = { live, sandbox },
): Promise<string> {
  const file = temporaryFile()
  const db = await temporaryStore(file)
  await db.transaction().execute((trx) =>
    saveSources(
      trx,
      environment,
      sources.map((state) => ({ state, history: packHistory([]), saved: undefined })),
    ),
  )
  return writeConfig({ endpoints, database: { url: `sqlite:${file}` } })
}

function check(config: string, ...args: string[]) {
  return cli(['check', ...args, '--config', config])
}

describe('latchkey check', () => {
  it('shows a line for each product, beside whoever has the database open', async () => {
    const config = await configWith('live', [payment('pay_1'), refunded])
    expect(await check(config, 'cus_1')).toEqual({
      exitCode: 0,
      out: [
        'pro_1  active  since 2026-01-10T00:00:00.000Z  (payment pay_1)',
        'pro_2  refunded  until 2026-01-20T00:00:00.000Z  (ended: payment pay_2)',
        '',
      ].join('\n'),
      err: '',
    })
  })

  it('shows one product, granted or not', async () => {
    const config = await configWith('live', [payment('pay_1')])
    expect((await check(config, 'cus_1', 'pro_1')).out).toMatch(/^pro_1 {2}active {2}/)
    expect(await check(config, 'cus_1', 'pro_9')).toMatchObject({
      exitCode: 0,
      out: 'pro_9  none\n',
    })
  })

  it('tells what access stands on from what has ended', async () => {
    const before = payment('pay_0', { intervals: refunded.intervals })
    const again = payment('pay_3', { intervals: [{ ...JANUARY_INTERVAL, productId: 'pro_2' }] })
    const config = await configWith('live', [before, refunded, again])
    expect((await check(config, 'cus_1', 'pro_2')).out).toMatch(
      / {2}\(payment pay_3; ended: payment pay_0, payment pay_2\)\n$/,
    )
  })

  it('answers with a note about an environment that no endpoint is configured for', async () => {
    const config = await configWith('sandbox', [payment('pay_1')], { sandbox })
    const ofLive = [config, 'cus_1', '--environment', 'live'] as const
    expect(await check(...ofLive)).toEqual({
      exitCode: 0,
      out: 'cus_1 has no access in live (in sandbox: pro_1)\n',
      err: 'note: no endpoint of the environment live is configured\n',
    })
    expect(await check(...ofLive, '--json')).toMatchObject({ exitCode: 0, err: '' })
  })

  it('says so, and exits 0, when there is no access', async () => {
    const config = await configWith('live', [])
    expect(await check(config, 'cus_1')).toEqual({
      exitCode: 0,
      out: 'cus_1 has no access in live\n',
      err: '',
    })
  })

  it('answers as of an instant', async () => {
    const config = await configWith('live', [refunded])
    expect((await check(config, 'cus_1', 'pro_2', '--at', '2026-01-15T00:00:00Z')).out).toContain(
      'pro_2  ending',
    )
    expect((await check(config, 'cus_1', '--at', '2026-01-09')).out).toBe('cus_1 has no access in live\n')
  })

  it('is about live, about the only environment configured, or about the one named', async () => {
    const both = await configWith('sandbox', [payment('pay_1')])
    expect((await check(both, 'cus_1')).out).toBe('cus_1 has no access in live (in sandbox: pro_1)\n')
    expect((await check(both, 'cus_1', '--environment', 'sandbox')).out).toContain('pro_1  active')

    const only = await configWith('sandbox', [payment('pay_1')], { sandbox })
    expect((await check(only, 'cus_1')).out).toContain('pro_1  active')
  })

  it('says what they have in the other environment where they have nothing in this one', async () => {
    const config = await configWith('sandbox', [payment('pay_1'), refunded])
    expect((await check(config, 'cus_1', 'pro_1')).out).toBe('pro_1  none  (in sandbox: active)\n')
    expect((await check(config, 'cus_1', 'pro_2')).out).toBe('pro_2  none  (in sandbox: refunded)\n')
    expect((await check(config, 'cus_1', 'pro_9')).out).toBe('pro_9  none\n')
    const ended = await configWith('sandbox', [refunded])
    expect((await check(ended, 'cus_1')).out).toBe(
      'cus_1 has no access in live (in sandbox: pro_2 refunded)\n',
    )
    const { out, err } = await check(ended, 'cus_1', '--json')
    expect([JSON.parse(out).entitlements, err]).toEqual([[], ''])
  })

  it('says that a payment is past due', async () => {
    const config = await configWith('live', [
      payment('sub_1', { kind: 'subscription', pastDueSince: JANUARY_20 }),
    ])
    const { out } = await check(config, 'cus_1')
    expect(out).toBe('pro_1  active  past due  since 2026-01-10T00:00:00.000Z  (subscription sub_1)\n')
  })

  it('answers in the form of the API if asked for JSON', async () => {
    const config = await configWith('live', [payment('pay_1')])
    const all: unknown = JSON.parse((await check(config, 'cus_1', '--json')).out)
    expect(all).toMatchObject({
      customerId: 'cus_1',
      environment: 'live',
      asOf: new Date(NOW).toISOString(),
      validUntil: null,
      entitlements: [{ productId: 'pro_1', active: true, sources: [{ id: 'pay_1', kind: 'payment' }] }],
    })
    expect(JSON.parse((await check(config, 'cus_1', 'pro_9', '--json')).out)).toMatchObject({
      customerId: 'cus_1',
      productId: 'pro_9',
      active: false,
      status: 'none',
      since: null,
      until: null,
      pastDue: false,
      sources: [],
    })
  })

  it('exits 1 where there is no database, and makes none', async () => {
    const config = writeConfig({ endpoints: { live } })
    const { exitCode, out, err } = await check(config, 'cus_1')
    expect({ exitCode, out }).toEqual({ exitCode: 1, out: '' })
    expect(err).toContain(join(dirname(config), 'data', 'latchkey.db'))
    expect(existsSync(join(dirname(config), 'data'))).toBe(false)
  })

  it('exits 1, and claims nothing, where the database can not be read', async () => {
    const folder = temporaryFolder()
    const file = join(folder, 'latchkey.db')
    writeFileSync(file, 'this is no database')
    const config = writeConfig({ endpoints: { live }, database: { url: 'sqlite:latchkey.db' } }, folder)
    expect(await check(config, 'cus_1')).toEqual({
      exitCode: 1,
      out: '',
      err: expect.stringMatching(`^error: ${file} is damaged, or no database: .+\n$`),
    })
  })
})

describe('a command that acts where nothing is known of the customer', () => {
  const act = (config: string, ...args: string[]) => cli([...args, '--config', config])
  const note =
    'note: cus_1 has pro_1 in sandbox, and has nothing else in live: to act there, add --environment sandbox\n'

  it.each([
    ['link', ['link', 'cus_1', '--community', '80351110224678912']],
    ['grant', ['grant', 'cus_1', 'pro_2', '--reason', 'a test']],
    ['block', ['block', 'cus_1', '--reason', 'a test']],
    ['unblock', ['unblock', 'cus_1', 'pro_1']],
    ['erase', ['erase', 'cus_1', '--yes']],
  ])('says where they are known: %s', async (_name, args) => {
    const config = await configWith('sandbox', [payment('pay_1')])
    const done = await act(config, ...args)
    expect(done).toMatchObject({ exitCode: 0, err: note })
    expect(done.out).not.toContain('note')
  })

  it('says nothing where it was named, where it answers JSON, and where they are known', async () => {
    const config = await configWith('sandbox', [payment('pay_1')])
    const link = ['link', 'cus_1', '--community', '80351110224678912']
    expect(await act(config, ...link, '--environment', 'live')).toMatchObject({ exitCode: 0, err: '' })
    const json = await act(config, ...link, '--json')
    expect([json.err, JSON.parse(json.out).environment]).toEqual(['', 'live'])
    const live = await configWith('live', [payment('pay_1')])
    expect(await act(live, ...link)).toMatchObject({ exitCode: 0, err: '' })
  })

  it('says where a grant is that it was to revoke', async () => {
    const config = await configWith('live', [])
    await act(config, 'grant', 'cus_1', 'pro_2', '--reason', 'a test', '--environment', 'sandbox')
    const revoked = await act(config, 'revoke', 'cus_1', 'pro_2')
    expect(revoked.exitCode).toBe(1)
    expect(revoked.err).toMatch(
      /^note: pro_2 was granted to cus_1 in sandbox: add --environment sandbox\nerror: /,
    )
  })
})
