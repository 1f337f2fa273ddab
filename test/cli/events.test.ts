import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Delivery, ManualAct } from '../../src/ingest/delivery.js'
import { deliveryOf } from '../ingest/wire.js'
import { alterBody, rewriteBody } from '../setup/alter-body.js'
import { sentEvent } from '../stories.js'
import {
  answerOf,
  configuredFolder,
  failureOf,
  onStore,
  type RunOptions,
  run,
  runServed,
  takeIn,
} from '../world.js'

const NOW = Date.UTC(2026, 0, 31, 12)
const START = Date.UTC(2026, 0, 1)
const MINUTE = 60_000

const FACTS = { customer: { id: 'cus_1' }, product: { id: 'pro_a' } }
const payment = (id: string, type: string, paymentId: string, minutes: number, facts: object) =>
  sentEvent(id, type, START + minutes * MINUTE, {
    object: 'payment',
    id: paymentId,
    method: 'CARD',
    ...facts,
  }).body
const PAID = payment('evt_1', 'payment.authorized', 'pay_1', 0, { ...FACTS, subscription_id: 'sub_1' })
const BEGUN = sentEvent('evt_2', 'subscription.created', START, {
  id: 'sub_1',
  payment_id: 'pay_1',
  ...FACTS,
}).body
const HELD = payment('evt_3', 'payment.authorized', 'pay_9', 5, { product: { id: 'pro_a' } })
/** Not even text. */
const BROKEN = Buffer.from([0x7b, 0xff, 0x00])
/** Another body under the id of the first. */
const OTHER = payment('evt_1', 'payment.refunded', 'pay_1', 7, FACTS)

const received = (body: string | Buffer, seconds: number, told: Partial<Delivery> = {}) =>
  deliveryOf(body, { receivedAt: START + 60 * MINUTE + seconds * 1_000, ...told })
const HISTORY = [
  received(PAID, 0, { headers: { event: 'payment.authorized', timestamp: '1', signature: 'v1=aa' } }),
  received(BEGUN, 1),
  received(HELD, 2),
  received(BROKEN, 3, { endpoint: 'legacy' }),
  received(OTHER, 4),
]

/** A folder whose config has other endpoints than those that these came through. */
async function stored(incoming: readonly (Delivery | ManualAct)[] = HISTORY): Promise<string> {
  const folder = configuredFolder()
  await takeIn(folder, incoming, () => NOW)
  return folder
}

const events = (folder: string, words: string, options: RunOptions = {}) =>
  run(folder, `events ${words}`, options)
const linesOf = (text: string) => text.trimEnd().split('\n')
const idsIn = (text: string) => linesOf(text).map((line) => line.split(/ {2,}/).at(-1))
const fine = (stdout: unknown, stderr: unknown = '') => ({ code: 0, stdout, stderr })

describe('latchkey events list', () => {
  it('shows the newest first, a line each, in columns', async () => {
    const { code, stdout, stderr } = await events(await stored(), 'list')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const [broken, ...others] = linesOf(stdout)
    expect(broken).toMatch(
      /^2026-01-01T01:00:03\.000Z {2}unreadable {12}quarantined \(not_utf8\) {3}- {6}sha256:[0-9a-f]{64}$/,
    )
    expect(others).toEqual([
      '2026-01-01T01:00:02.000Z  payment.authorized    held (customer_unknown)  -      evt_3',
      '2026-01-01T01:00:01.000Z  subscription.created  applied                  cus_1  evt_2',
      '2026-01-01T01:00:00.000Z  payment.authorized    applied                  cus_1  evt_1',
    ])
  })

  it('takes filters, and says what cannot have been meant', async () => {
    const folder = await stored()
    for (const [filter, ids] of [
      ['--disposition held --endpoint v3', ['evt_3']],
      ['--customer cus_1 --type payment.authorized', ['evt_1']],
      ['--from 2026-01-01T01:00:01Z --to 2026-01-01T01:00:03Z', ['evt_3', 'evt_2']],
    ] as const) {
      expect(idsIn((await events(folder, `list ${filter}`)).stdout)).toEqual(ids)
    }
    // It is in the config no more.
    expect(idsIn((await events(folder, 'list --endpoint legacy')).stdout)).toHaveLength(1)
    const none = 'no event matches\n'
    for (const filter of ['--environment sandbox', '--endpoint manual', '--type payment.refunded']) {
      expect({ filter, ...(await events(folder, `list ${filter}`)) }).toEqual({ filter, ...fine(none) })
    }
    const noEndpoint =
      'error: The parameter "endpoint" must be one of live, manual, backfill: no stored event came through another.\n'
    for (const words of ['list', 'export --output a.jsonl']) {
      const refused = await events(folder, `${words} --endpoint liv`)
      expect(refused).toEqual({ code: 2, stdout: '', stderr: noEndpoint })
    }
    expect(existsSync(join(folder, 'a.jsonl'))).toBe(false)
    for (const [type, meant] of [
      ['payment.refundd', '; the closest one is "payment.refunded"'],
      ['PAYMENT_SUCCESS', '; the closest one is "payment.succeeded"'],
      ['nonsense', ''],
    ]) {
      const stderr = `error: The parameter "type" must be a known type: no stored event has the type "${type}"${meant}.\n`
      expect(await events(folder, `list --type ${type}`)).toEqual({ code: 2, stdout: '', stderr })
      expect(await failureOf(folder, `replay --dry-run --type ${type}`)).toMatchObject({
        code: 2,
        error: { issues: [{ path: 'filter.type' }] },
      })
    }
  })

  it('says how to go on where there is more than it shows', async () => {
    const folder = await stored()
    const all = idsIn((await events(folder, 'list')).stdout)
    const { stdout, stderr } = await events(folder, 'list --limit 3')
    expect(idsIn(stdout)).toEqual(all.slice(0, 3))
    const [, place = ''] = /^note: there are older events: continue with --before (\d+)\n$/.exec(stderr) ?? []
    expect(idsIn((await events(folder, `list --before ${place}`)).stdout)).toEqual(all.slice(3))
  })
})

describe('latchkey events show', () => {
  it('tells a person all that is known of one event, and why it does not count', async () => {
    const folder = await stored()
    const { code, stdout } = await events(folder, 'show evt_1')
    expect(code).toBe(0)
    for (const [name, text] of [
      ['id', 'evt_1'],
      ['environment', 'live'],
      ['disposition', 'applied'],
      ['receivedAt', '2026-01-01T01:00:00.000Z'],
      ['lastReceivedAt', '2026-01-01T01:00:04.000Z'],
      ['deliveries', '2'],
      ['source.id', 'sub_1'],
      ['conflicts', '1'],
      ['normalized.paymentId', 'pay_1'],
      ['normalized.railProof.rail', 'card'],
      ['headers.event', 'payment.authorized'],
      [
        'otherBodies',
        'sha256 [0-9a-f]{64}, bytes \\d+, endpoint v3, receivedAt 2026-01-01T01:00:04.000Z, .*',
      ],
    ]) {
      expect(stdout).toMatch(new RegExp(`^${name} +${text}$`, 'm'))
    }
    expect(stdout).not.toContain('null')
    const waits = 'waits until an event names its customer'
    expect((await events(folder, 'show evt_3')).stdout).toMatch(new RegExp(`^reasonText +${waits}$`, 'm'))
    const [broken = ''] = idsIn((await events(folder, 'list --disposition quarantined')).stdout)
    expect((await events(folder, `show ${broken}`)).stdout).toContain(
      'cannot be used, since its bytes are not UTF-8 text\n',
    )
    const stderr = 'error: no event evt_9 is stored in live\n'
    expect(await events(folder, 'show evt_9')).toEqual({ code: 1, stdout: '', stderr })
  })

  it('lets no text of the sender steer the terminal', async () => {
    const headers = { event: 'payment\u009b2J', timestamp: '1', signature: 'v1=aa' }
    const { stdout } = await events(await stored([received(PAID, 0, { headers })]), 'show evt_1')
    expect(stdout).toMatch(/^headers\.event +payment\\u009b2J$/m)
  })
})

describe('latchkey events body', () => {
  it('writes the bytes and nothing else, those that stand or those of a hash, to a private file if asked', async () => {
    const folder = await stored()
    expect(await events(folder, 'body evt_1')).toEqual(fine(PAID))
    const { otherBodies } = await answerOf(folder, 'events show evt_1')
    const [{ sha256 }] = otherBodies
    expect((await events(folder, `body evt_1 --sha256 ${sha256}`)).stdout).toBe(OTHER)
    expect(await events(folder, `body evt_2 --sha256 ${sha256}`)).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^error: .* SHA-256/),
    })
    expect((await events(folder, `body evt_9 --sha256 ${sha256}`)).stderr).toContain(
      'no event evt_9 is stored',
    )

    expect(await events(folder, 'body evt_2 --output evt_2.body')).toEqual(fine(''))
    expect(readFileSync(join(folder, 'evt_2.body'), 'utf8')).toBe(BEGUN)
    expect(statSync(join(folder, 'evt_2.body')).mode & 0o777).toBe(0o600)
    const { bodyBase64 } = await answerOf(folder, 'events body evt_2')
    expect(Buffer.from(bodyBase64, 'base64').toString()).toBe(BEGUN)
  })

  it('tells the hash of what is left of a rewritten one, and the one of what came beside it', async () => {
    const folder = await stored()
    await onStore(folder, (db) => rewriteBody(db, 'evt_2', '{"left":"of it"}'))
    const left = createHash('sha256').update('{"left":"of it"}').digest('hex')
    const came = createHash('sha256').update(BEGUN).digest('hex')
    const { stdout, stderr } = await events(folder, 'body evt_2 --json')
    expect(JSON.parse(stdout)).toMatchObject({ id: 'evt_2', sha256: left })
    expect(stderr).toMatch(/^note: the body of evt_2 .*: redacted at \d/)
    const shown = (await events(folder, 'show evt_2')).stdout
    expect(shown).toMatch(new RegExp(`^bodySha256 +${left}$`, 'm'))
    expect(shown).toMatch(/^bodyRemoved\.why +redacted$/m)
    expect(shown).toMatch(new RegExp(`^bodyRemoved\\.sha256 +${came}$`, 'm'))
  })
})

describe('latchkey events export', () => {
  const BODIES = [PAID, OTHER, BEGUN, HELD, BROKEN].map((body) => Buffer.from(body).toString('base64'))
  const bodiesIn = (text: string) => linesOf(text).map((line) => JSON.parse(line).bodyBase64)

  it('writes what came, oldest first, and what was done by hand as its own kind', async () => {
    const folder = await stored()
    await runServed(folder, 'grant cus_1 pro_9 --reason test', { now: () => NOW })
    const { code, stdout } = await events(folder, 'export')
    const lines = linesOf(stdout).map((line) => JSON.parse(line))
    expect({ code, first: lines[0] }).toEqual({
      code: 0,
      first: {
        endpoint: 'v3',
        headers: {
          'x-webhook-event': 'payment.authorized',
          'x-webhook-timestamp': '1',
          'x-webhook-signature': 'v1=aa',
        },
        bodyBase64: BODIES[0],
        receivedAt: '2026-01-01T01:00:00.000Z',
      },
    })
    expect(bodiesIn(stdout).slice(0, 5)).toEqual(BODIES)
    expect(lines[2].headers).not.toHaveProperty('x-webhook-event')
    expect(lines[4].endpoint).toBe('legacy')
    const { bodyBase64, ...byHand } = lines[5]
    expect(byHand).toEqual({ kind: 'manual', environment: 'live', receivedAt: new Date(NOW).toISOString() })
    const act = { type: 'manual.granted', productId: 'pro_9', reason: 'test' }
    expect(JSON.parse(Buffer.from(bodyBase64, 'base64').toString())).toMatchObject(act)
    expect(bodiesIn((await events(folder, 'export --type subscription.created')).stdout)).toEqual([BODIES[2]])
  })

  it('writes a file that only its owner may read, whole or not at all, and replaces none', async () => {
    const folder = await stored()
    const file = join(folder, 'events.jsonl')
    const before = readdirSync(folder)
    const exported = await events(folder, 'export --output events.jsonl')
    expect(exported).toEqual(fine(`wrote 5 lines to ${file}\n`))
    expect(bodiesIn(readFileSync(file, 'utf8'))).toEqual(BODIES)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    writeFileSync(file, 'precious')
    const refused = await events(folder, 'export --output events.jsonl')
    expect(refused).toMatchObject({ code: 1, stderr: `error: ${file} already exists: choose another file\n` })
    expect(readFileSync(file, 'utf8')).toBe('precious')
    const told = { file: `${file}.2`, lines: 5, readings: 0, leftOut: 0, altered: 0 }
    expect(await answerOf(folder, 'events export --output events.jsonl.2')).toEqual(told)
    rmSync(`${file}.2`)
    expect(readdirSync(folder).sort()).toEqual([...before, 'events.jsonl'].sort())
  })

  it('leaves out bodies that were altered in the database, and says how many', async () => {
    const folder = await stored()
    await onStore(folder, (db) => alterBody(db, 'evt_2', PAID))
    const { code, stdout, stderr } = await events(folder, 'export')
    expect({ code, bodies: bodiesIn(stdout), stderr }).toEqual({
      code: 0,
      bodies: BODIES.toSpliced(2, 1),
      stderr:
        '1 event skipped: altered in the database since they were received: see latchkey doctor --thorough\n',
    })
    const told = await answerOf(folder, 'events export --output events.jsonl')
    expect(told).toMatchObject({ lines: 4, readings: 0, leftOut: 1, altered: 1 })
  })

  it('leaves out an event whose headers were altered in the database, which can be shown all the same', async () => {
    const folder = await stored()
    const headers = 'not json'
    await onStore(folder, (db) =>
      db.updateTable('events').set({ headers }).where('event_id', '=', 'evt_2').execute(),
    )
    const told = await answerOf(folder, 'events export --output events.jsonl')
    expect(told).toMatchObject({ lines: 4, leftOut: 1, altered: 1 })
    expect(await answerOf(folder, 'events show evt_2')).toMatchObject({ id: 'evt_2', headers: null })
  })
})

it('an output replaces no file, and gets no name that belongs to the database', async () => {
  const folder = await stored()
  for (const words of ['events export', 'events body evt_1']) {
    const there = await failureOf(folder, `${words} --output config.json`)
    expect(there).toMatchObject({ code: 1, error: { code: 'output_failed' } })
    const own = await failureOf(folder, `${words} --output data/latchkey.db-journal`)
    expect(own).toMatchObject({ code: 2, error: { code: 'usage' } })
  }
  expect(existsSync(join(folder, 'data', 'latchkey.db-journal'))).toBe(false)
})
