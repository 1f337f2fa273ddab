import { writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { undatedAct } from '../../src/people/acts.js'
import { deliveryOf } from '../ingest/wire.js'
import { sentEvent, storiesOf } from '../stories.js'
import {
  answerOf,
  CONFIG,
  configuredFolder,
  databaseIn,
  type Exit,
  failureOf,
  run,
  serveHere,
  takeIn,
} from '../world.js'

const NOW = Date.UTC(2026, 0, 31, 12)
const DAY = 86_400_000
const START = Date.UTC(2026, 0, 10)

const SANDBOX = { environment: 'sandbox', secrets: ['whsec_sandbox_0123456789'] }
const BOTH = { ...CONFIG, endpoints: { ...CONFIG.endpoints, sandbox: SANDBOX } }

type Environment = 'live' | 'sandbox'

/** A payment's or subscription's event, by card. */
function told(
  type: string,
  id: string,
  customer: string,
  product: string,
  at: number,
  environment: Environment = 'live',
) {
  const data = {
    object: type.split('.')[0],
    id,
    customer: { id: customer },
    product: { id: product },
    method: 'CARD',
  }
  const { body } = sentEvent(`evt_${id}_${type}`, type, START + at, data, environment === 'live')
  return deliveryOf(body, { environment, endpoint: environment })
}

const HISTORY = [
  told('payment.authorized', 'pay_1', 'cus_1', 'pro_1', 0),
  told('payment.authorized', 'pay_2', 'cus_1', 'pro_2', 0),
  told('payment.refunded', 'pay_2', 'cus_1', 'pro_2', 10 * DAY),
  told('payment.authorized', 'pay_3', 'cus_2', 'pro_2', 0),
  told('payment.refunded', 'pay_3', 'cus_2', 'pro_2', DAY),
  told('payment.authorized', 'pay_4', 'cus_2', 'pro_2', 2 * DAY),
  told('subscription.created', 'sub_1', 'cus_3', 'pro_1', 0),
  told('subscription.past_due', 'sub_1', 'cus_3', 'pro_1', DAY),
  told('payment.authorized', 'pay_5', 'cus_4', 'pro_1', 0, 'sandbox'),
  told('payment.authorized', 'pay_6', 'cus_4', 'pro_2', 0, 'sandbox'),
  told('payment.refunded', 'pay_6', 'cus_4', 'pro_2', DAY, 'sandbox'),
  told('payment.authorized', 'pay_7', 'cus_5', 'pro_2', 0, 'sandbox'),
  told('payment.refunded', 'pay_7', 'cus_5', 'pro_2', DAY, 'sandbox'),
]

async function folderWith(
  incoming: Parameters<typeof takeIn>[1] = HISTORY,
  config: unknown = BOTH,
): Promise<string> {
  const folder = configuredFolder(config)
  await takeIn(folder, incoming, () => NOW)
  return folder
}

const at = (folder: string, words: string): Promise<Exit> => run(folder, words, { now: () => NOW })

describe('latchkey check', () => {
  it('shows a line for each product, of an environment, as of an instant, and says what the other one has', async () => {
    const folder = await folderWith()
    for (const [words, stdout] of [
      [
        'cus_1',
        'pro_1  active    since 2026-01-10T00:00:00.000Z  (payment pay_1)\n' +
          'pro_2  refunded  until 2026-01-20T00:00:00.000Z  (ended: payment pay_2)\n',
      ],
      ['cus_1 pro_1', 'pro_1  active  since 2026-01-10T00:00:00.000Z  (payment pay_1)\n'],
      ['cus_2', 'pro_2  active  since 2026-01-12T00:00:00.000Z  (payment pay_4; ended: payment pay_3)\n'],
      ['cus_3', 'pro_1  active  past due  since 2026-01-10T00:00:00.000Z  (subscription sub_1)\n'],
      ['cus_9', 'nothing is known about cus_9 in live\n'],
      ['cus_1 --at 2026-01-09', 'cus_1 has no access in live\n'],
      ['cus_4', 'nothing is known about cus_4 in live (in sandbox: pro_1)\n'],
      ['cus_4 pro_1', 'pro_1  none  (in sandbox: active)\n'],
      ['cus_4 pro_2', 'pro_2  none  (in sandbox: refunded)\n'],
      ['cus_5', 'nothing is known about cus_5 in live (in sandbox: pro_2 refunded)\n'],
    ]) {
      expect({ words, ...(await at(folder, `check ${words}`)) }).toEqual({
        words,
        code: 0,
        stdout,
        stderr: '',
      })
    }
    const before = await at(folder, 'check cus_1 pro_2 --at 2026-01-15T00:00:00Z')
    expect(before.stdout).toMatch(/^pro_2 {2}ending /)
    expect((await at(folder, 'check cus_4 --environment sandbox')).stdout).toMatch(/^pro_1 {2}active /)
  })

  it('shows the features that products give, and until when one that is canceled is paid', async () => {
    const products = {
      pro_1: { features: ['export', 'api'] },
      pro_2: { features: ['export', 'audit'] },
      pro_3: { features: ['audit'] },
    }
    const canceled = sentEvent('evt_c', 'subscription.updated', START + 2 * DAY, {
      object: 'subscription',
      id: 'sub_1',
      cancel_at_period_end: true,
      expires_at: '2026-03-04T12:00:00.000Z',
    })
    const folder = await folderWith([...HISTORY, deliveryOf(canceled.body)], { ...BOTH, products })
    expect((await at(folder, 'check cus_1')).stdout).toContain(
      [
        '\nFeatures',
        `  api     active${' '.repeat(36)}(by pro_1)`,
        '  audit   inactive  until 2026-01-20T00:00:00.000Z  (pro_2 or pro_3 would give it)',
        `  export  active${' '.repeat(36)}(by pro_1)`,
        '',
      ].join('\n'),
    )
    for (const [words, stdout, stderr] of [
      ['cus_1 --feature api', 'api  active  (by pro_1)\n', ''],
      ['cus_9 --feature api', 'api  inactive  (pro_1 would give it)\n', ''],
      ['cus_1 --feature apo', 'apo  inactive\n', 'warning: no product in the config gives the feature apo\n'],
      ['cus_9 pro_3', 'pro_3  none\n', ''],
      [
        'cus_1 pro_9',
        'pro_9  none\n',
        'warning: the config does not name the product pro_9, and no customer ever had access to it\n',
      ],
    ]) {
      expect({ words, ...(await at(folder, `check ${words}`)) }).toEqual({ words, code: 0, stdout, stderr })
    }
    expect(await answerOf(folder, 'check cus_1 pro_9')).toMatchObject({ active: false, unknown: true })
    expect(await answerOf(folder, 'check cus_9')).toMatchObject({ entitlements: [], unknown: true })
    expect((await at(folder, 'check cus_3')).stdout).toContain('paid until 2026-03-04T12:00:00.000Z')
    expect(await failureOf(folder, 'check cus_1 pro_1 --feature api')).toMatchObject({
      code: 2,
      error: { code: 'usage', message: 'pass a product or --feature, not both' },
    })
  })

  it('is about the only environment that is configured, and notes where another one is asked for', async () => {
    const folder = await folderWith(HISTORY, { ...CONFIG, endpoints: { sandbox: SANDBOX } })
    expect((await at(folder, 'check cus_4')).stdout).toMatch(/^pro_1 {2}active /)
    expect(await at(folder, 'check cus_4 --environment live')).toEqual({
      code: 0,
      stdout: 'nothing is known about cus_4 in live (in sandbox: pro_1)\n',
      stderr: 'note: no live endpoint is configured\n',
    })
    expect(await at(folder, 'check cus_4 --environment live --json')).toMatchObject({ code: 0, stderr: '' })
  })

  it('exits 1, and claims nothing, where the database cannot be read', async () => {
    const folder = configuredFolder({ ...CONFIG, database: { url: 'sqlite:latchkey.db' } })
    const file = join(folder, 'latchkey.db')
    writeFileSync(file, 'this is no database')
    const stderr = expect.stringMatching(`^error: ${file} is damaged, or not a database: .+\n$`)
    expect(await at(folder, 'check cus_1')).toEqual({ code: 1, stdout: '', stderr })
  })
})

describe('latchkey explain', () => {
  const story = storiesOf(1, 1).flatMap(({ events }) => events.map(({ body }) => deliveryOf(body)))

  it('shows the summary, then every source with its events in order, as of an instant, of an environment', async () => {
    const folder = await folderWith(story)
    expect(await at(folder, 'explain cus_1 pro_1')).toEqual({
      code: 0,
      stdout: [
        'cus_1 has had no access to pro_1 since 2025-01-31T12:02:00.000Z: the payment was refunded (evt_1_refunded of subscription sub_1).',
        '',
        'subscription sub_1 (paid by card)',
        '  access to pro_1  from 2025-01-31T12:00:00.000Z  until 2025-01-31T12:02:00.000Z  refunded',
        '  2025-01-31T12:00:00.000Z  evt_1_paid      payment.authorized    applied  card: grants',
        '      Authorization of pay_1: pay_1 counts as paid from here on. Access to pro_1 begins.',
        '  2025-01-31T12:01:00.000Z  evt_1_created   subscription.created  applied  no policy rule',
        '      Start of sub_1: pay_1 has paid this cycle.',
        '  2025-01-31T12:02:00.000Z  evt_1_refunded  payment.refunded      applied  card: revokes',
        '      Refund of pay_1: pay_1 no longer counts. Access to pro_1 ends.',
        '',
      ].join('\n'),
      stderr: '',
    })
    const before = await at(folder, 'explain cus_1 pro_1 --at 2025-01-31T12:01:30Z')
    expect(before.stdout).toContain('access to pro_1 since 2025-01-31T12:00:00.000Z')
    const elsewhere = 'In live: pro_1 refunded (--environment live explains it)\n'
    const nothing = `Nothing is known about cus_1 in sandbox: no event names them.\n${elsewhere}`
    const inSandbox = await at(folder, 'explain cus_1 pro_1 --environment sandbox')
    expect(inSandbox).toEqual({ code: 0, stdout: nothing, stderr: '' })
    expect((await at(folder, 'explain cus_1 pro_z')).stdout).not.toContain('In sandbox')
  })

  it('shows why the customer has a role or not', async () => {
    const targets = [{ adapter: 'discord', guildId: '1', roleId: '2' }]
    const folder = await folderWith(story, {
      ...BOTH,
      products: { pro_1: { targets } },
      sync: { discord: { botToken: 'never-used' } },
    })
    expect((await at(folder, 'explain cus_1 pro_1')).stdout).toMatch(
      /\nRoles and groups\n {2}discord:1:2 {2}unlinked {2}No Discord account is linked to cus_1, and .+\n$/,
    )
  })

  it('shows what waits, and which end is coming', async () => {
    const expires_at = '2026-03-04T12:00:00.000Z'
    const canceled = { object: 'subscription', id: 'sub_1', cancel_at_period_end: true, expires_at }
    const waiting = { object: 'payment', id: 'pay_9', product: 'pro_1', method: 'CARD' }
    const more = [
      sentEvent('evt_3', 'subscription.canceled', START, canceled),
      sentEvent('evt_4', 'payment.authorized', START, waiting),
    ]
    const folder = await folderWith([...story.slice(0, 2), ...more.map(({ body }) => deliveryOf(body))])
    const { stdout } = await at(folder, 'explain cus_1 pro_1')
    expect(stdout).toContain(
      '\nWaiting\n  1 held event of pro_1 names no customer: latchkey events list --disposition held --environment live\n',
    )
    expect(stdout).toContain(`\nUpcoming ends\n  Access through subscription sub_1 ends at ${expires_at}`)
  })
})

it.each(['check cus_1', 'explain cus_1 pro_1', 'events list', 'policy diff', 'migrate'])(
  '%s exits 1 where there is no database, and makes none',
  async (words) => {
    const folder = configuredFolder()
    const message = expect.stringContaining(databaseIn(folder))
    for (let attempt = 0; attempt < 2; attempt += 1) {
      expect(await failureOf(folder, words)).toMatchObject({
        code: 1,
        error: { code: 'store_missing', message },
      })
    }
  },
)

it('check says that a product is blocked which the customer was never granted', async () => {
  const folder = await folderWith([])
  await serveHere(folder, { now: () => NOW })
  await at(folder, 'block cus_9 --reason test')
  expect(await at(folder, 'check cus_9 pro_1')).toMatchObject({ code: 0, stdout: 'pro_1  blocked\n' })
})

it.each(['\u202e', '\u2066', '\u200f', '\u061c', '\u2028', '\u200b', '\u00ad', '\ufeff'])(
  'no text of others turns the reading direction of a terminal, or hides in it: %j',
  async (mark) => {
    const [customerId, productId] = [`cus_${mark}9`, `pro_${mark}1`]
    const acts = (['manual.granted', 'manual.blocked'] as const).map((type) => ({
      environment: 'live' as const,
      undated: undatedAct({
        id: `man_${type}`,
        type,
        customerId,
        productId,
        actor: 'ops',
        reason: `why${mark}`,
      }),
    }))
    const folder = await folderWith(acts)
    const shown = `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`
    const asked = [
      ['explain', customerId, productId],
      ['check', customerId],
      ['events', 'list'],
      ['check', `${mark}x`],
    ]
    for (const words of asked) {
      const { stdout, stderr } = await run(folder, words, { now: () => NOW })
      expect(stdout + stderr, words.join(' ')).toContain(shown)
      expect(stdout + stderr).not.toContain(mark)
    }
    const told = await run(folder, ['explain', customerId, productId, '--json'], { now: () => NOW })
    expect(told.stdout).toContain(`why${mark}`)
    expect((await run(folder, ['events', 'show', `evt_${mark}`])).stderr).toContain(shown)
    expect((await run(folder, ['events', 'body', 'man_manual.granted'])).stdout).toContain(`why${mark}`)
  },
)

it('explain says who acted by hand, and why', async () => {
  const folder = await folderWith([])
  await serveHere(folder, { now: () => NOW })
  await at(folder, 'grant cus_9 pro_1 --reason goodwill')
  await at(folder, 'revoke cus_9 pro_1')
  await at(folder, 'block cus_9 --reason fraud')
  const { stdout } = await at(folder, 'explain cus_9 pro_1')
  const actor = userInfo().username
  expect(stdout).toContain(`Manual grant: for good. Access to pro_1 begins. By ${actor}: goodwill.\n`)
  expect(stdout).toContain(`Access to pro_1 ends. By ${actor}.\n`)
  expect(stdout).toContain(`until it is unblocked. By ${actor}: fraud.\n`)
})

it('a grant to a customer and of a product that nobody knows is made, with a warning', async () => {
  const folder = await folderWith([told('payment.authorized', 'pay_1', 'cus_1', 'pro_1', 0)])
  await serveHere(folder, { now: () => NOW })
  const product = expect.stringMatching(/^warning: .* pro_tpyo.*\n$/)
  const customer = (id: string) => expect.stringMatching(`^warning: .* ${id} in live.*\n$`)
  for (const [words, stderr] of [
    ['grant cus_1 pro_1 --reason x', ''],
    ['grant cus_1 pro_tpyo --reason x', product],
    // Granted once, it is known.
    ['grant cus_1 pro_tpyo --reason x', ''],
    ['grant cus_typo pro_1 --reason x', customer('cus_typo')],
    ['block cus_other pro_1 --reason x', customer('cus_other')],
  ] as const) {
    const done = await at(folder, words)
    expect([words, done]).toMatchObject([words, { code: 0, stderr }])
    expect(done.stdout).toMatch(/^done in live: man_/)
  }
})

it('check names the first few of many sources, and counts the rest', async () => {
  const payments = Array.from({ length: 108 }, (_, n) => `pay_${String(n).padStart(3, '0')}`)
  const folder = await folderWith(payments.map((id) => told('payment.authorized', id, 'cus_1', 'pro_1', 0)))
  const { stdout } = await at(folder, 'check cus_1')
  expect(stdout).toMatch(/ {2}\(payment pay_000, payment pay_001, payment pay_002 and 105 more\)\n$/)
  const { entitlements } = JSON.parse((await at(folder, 'check cus_1 --json')).stdout)
  expect(entitlements[0].sources).toHaveLength(108)
})

it.each(['grant cus_9 pro_1 --reason x', 'block cus_9 --reason x', 'erase cus_9 --yes'])(
  '%s says where else the customer is known, if they are not known where it acts',
  async (words) => {
    const folder = await folderWith(
      [told('payment.authorized', 'pay_9', 'cus_9', 'pro_1', 0, 'sandbox')],
      BOTH,
    )
    await serveHere(folder, { now: () => NOW })
    const note = expect.stringMatching(/^note: cus_9 .* --environment sandbox .*\n$/)
    expect(await at(folder, words)).toMatchObject({ code: 0, stderr: note })
    // From now on they are known here too.
    expect(await at(folder, words)).toMatchObject({ code: 0, stderr: '' })
  },
)
