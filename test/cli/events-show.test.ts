import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { temporaryFolder } from '../config/config-file.js'
import { pay } from '../entitlements/events.js'
import { bodyOf, deliveryOf } from '../ingest/wire.js'
import { rewriteStopped } from '../setup/alter-body.js'
import { temporaryFile } from '../store/temporary-store.js'
import { BEGUN, configWith, events, idsIn, OTHER, PAID } from './stored-events.js'

describe('latchkey events show', () => {
  it('tells a person all that is known of one event', async () => {
    const { exitCode, out } = await events(await configWith(), 'show', 'evt_1')
    expect(exitCode).toBe(0)
    expect(out).toContain('payment.authorized evt_1: applied\n\n  environment  live\n')
    expect(out).toMatch(
      /\n {2}received {5}2026-01-01T01:00:00\.000Z, 2 times, last 2026-01-01T01:00:04\.000Z\n/,
    )
    expect(out).toContain('\n  belongs to   subscription sub_1\n')
    expect(out).toContain('\n  conflicts    1\n')
    expect(out).toMatch(
      /\nIt says\n {2}subject {13}payment\n {2}type {16}payment\.authorized\n {2}paymentId {11}pay_1\n/,
    )
    expect(out).toMatch(/\n {2}railProof\.rail {6}card\n/)
    expect(out).not.toContain('null')
    expect(out).toContain('\nSigned headers\n  event      payment.authorized\n  timestamp  1\n')
    expect(out).toMatch(
      /\nOther bodies under this id, which changed nothing\n {2}[0-9a-f]{64} {2}\d+ bytes {2}v3 {2}2026-01-01T01:00:04\.000Z {2}once\n$/,
    )
  })

  it('tells what a held one waits for, and why another can not be used', async () => {
    const config = await configWith()
    expect((await events(config, 'show', 'evt_3')).out).toContain(
      'payment.authorized evt_3: held, waits until an event tells whose it is\n',
    )
    const [broken = ''] = idsIn((await events(config, 'list', '--disposition', 'quarantined')).out)
    expect((await events(config, 'show', broken)).out).toContain(
      `unreadable ${broken}: quarantined, can not be used, since its bytes are no UTF-8 text\n`,
    )
  })

  it('lets no text of the sender steer the terminal', async () => {
    const body = bodyOf(pay('evt_5', 'payment.authorized', 'pay_5', 0))
    const headers = { event: 'payment\u009b2J', timestamp: '1', signature: 'v1=aa' }
    const { out } = await events(await configWith([deliveryOf(body, { headers })]), 'show', 'evt_5')
    expect(out).toContain('event      payment\ufffd2J\n')
  })

  it('answers in the form of the API if asked for JSON', async () => {
    const { out } = await events(await configWith(), 'show', 'evt_3', '--json')
    expect(JSON.parse(out)).toMatchObject({
      id: 'evt_3',
      reasonText: 'waits until an event tells whose it is',
      normalized: { paymentId: 'pay_9', createdAt: '2026-01-01T00:05:00.000Z' },
    })
  })

  it('exits 1 for an event that is not stored', async () => {
    expect(await events(await configWith(), 'show', 'evt_9')).toEqual({
      exitCode: 1,
      out: '',
      err: 'error: no event evt_9 is stored in live\n',
    })
  })
})

describe('latchkey events body', () => {
  it('writes the bytes and nothing else, those that stand or those of a hash', async () => {
    const config = await configWith()
    expect(await events(config, 'body', 'evt_1')).toEqual({ exitCode: 0, out: PAID, err: '' })
    const shown = JSON.parse((await events(config, 'show', 'evt_1', '--json')).out)
    const [{ sha256 }] = shown.otherBodies
    expect((await events(config, 'body', 'evt_1', '--sha256', sha256)).out).toBe(OTHER)
    expect(await events(config, 'body', 'evt_2', '--sha256', sha256)).toEqual({
      exitCode: 1,
      out: '',
      err: `error: the event evt_2 has no body with the SHA-256 ${sha256}\n`,
    })
    expect((await events(config, 'body', 'evt_9', '--sha256', sha256)).err).toContain(
      'no event evt_9 is stored',
    )
  })

  it('tells the hash of what is left of a rewritten one, and the one of what came beside it', async () => {
    const file = temporaryFile()
    const config = await configWith(undefined, file)
    await rewriteStopped(file, 'evt_2', '{"left":"of it"}')
    const left = createHash('sha256').update('{"left":"of it"}').digest('hex')
    const came = createHash('sha256').update(BEGUN).digest('hex')
    const body = JSON.parse((await events(config, 'body', 'evt_2', '--json')).out)
    expect(body).toMatchObject({ id: 'evt_2', sha256: left })
    const { out } = await events(config, 'show', 'evt_2')
    expect(out).toContain(
      `\n  body         16 bytes, sha256 ${left}, which was rewritten without the personal data`,
    )
    expect(out).toContain(`\n  as it came   ${BEGUN.length} bytes, sha256 ${came}\n`)
  })

  it('writes them to a private file, and answers in JSON if asked', async () => {
    const config = await configWith()
    const file = join(temporaryFolder(), 'evt_2.body')
    const written = await events(config, 'body', 'evt_2', '--output', file)
    expect(written).toEqual({ exitCode: 0, out: '', err: '' })
    expect(readFileSync(file, 'utf8')).toBe(BEGUN)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const { bodyBase64 } = JSON.parse((await events(config, 'body', 'evt_2', '--json')).out)
    expect(Buffer.from(bodyBase64, 'base64').toString()).toBe(BEGUN)
  })
})
