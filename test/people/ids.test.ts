import { createHash } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { prepare } from '../../src/ingest/prepare.js'
import { actIdOf, erasureIdOf } from '../../src/people/act-ids.js'
import { undatedAct } from '../../src/people/acts.js'
import { erasureListOf, readErasureList } from '../../src/people/erasure-list.js'
import { erase } from '../daemon/erasing.js'
import { entitlement } from '../daemon/observed.js'
import { API_KEY, call, NOW, type RunningDaemon, runDaemon, send } from '../daemon/running-daemon.js'
import { storedEvents } from '../daemon/stored.js'
import { ENGINE, onStore, takeIn } from '../world.js'

const GRANT = { productId: 'pro_1', reason: 'support case 17' }

/** How version 1.0.0 made the ids of changes by hand, of an Idempotency-Key or of `erased` and a customer. */
const formerId = (text: string) =>
  `man_${createHash('sha256').update(`live ${text}`).digest('hex').slice(0, 32)}`

function grant(daemon: RunningDaemon, customerId: string, key: string, body: object = GRANT) {
  return call(daemon, 'POST', `/customers/${customerId}/grants`, body, { 'Idempotency-Key': key })
}

const paid = (customerId: string, id = `evt_${customerId}`) =>
  JSON.stringify({
    id,
    type: 'payment.authorized',
    created_at: new Date(NOW - 3_600_000).toISOString(),
    data: { id: `pay_${customerId}`, customer_id: customerId, product_id: 'pro_1', method: 'CARD' },
  })

const erasedAt = async (daemon: RunningDaemon, customerId: string) =>
  (await call(daemon, 'GET', `/customers/${customerId}`)).json.erasedAt

const statusOf = async (daemon: RunningDaemon, customer: string) =>
  (await entitlement(daemon, { customer, product: 'pro_1' })).status

const disposition = async (answer: Promise<Response>) => (await answer).json()

const actsOf = async (daemon: RunningDaemon, customer: string) =>
  (await storedEvents(daemon, { customer })).filter(({ endpoint }) => endpoint === 'manual')

/** A change by hand to this customer, under an id of one's choice. */
function act(id: string, type: 'manual.granted' | 'manual.erased', customerId: string) {
  const details = type === 'manual.erased' ? { reason: null } : GRANT
  return { ...undatedAct({ id, type, customerId, actor: 'operator', ...details }), createdAt: NOW }
}

/** Has the daemon import changes by hand, as lines of an export; answers with what became of them. */
async function importActs(daemon: RunningDaemon, ...acts: readonly ReturnType<typeof act>[]) {
  const line = (event: object) => {
    const bodyBase64 = Buffer.from(JSON.stringify(event)).toString('base64')
    return JSON.stringify({
      kind: 'manual',
      environment: 'live',
      bodyBase64,
      receivedAt: new Date(NOW).toISOString(),
    })
  }
  const response = await fetch(`${daemon.url}/imports?withManual=true`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${API_KEY}`, 'Content-Type': 'application/x-ndjson' },
    body: acts.map(line).join('\n'),
  })
  const { results } = (await response.json()) as { results: readonly { outcome: string }[] }
  return results.map(({ outcome }) => outcome)
}

describe('an erasure', () => {
  it('is made whatever Idempotency-Key was used before, and erases nobody else', async () => {
    const first = await runDaemon()
    await send(first, paid('cus_victim'))
    expect(await grant(first, 'cus_a', 'erased cus_victim')).toMatchObject({ status: 201 })
    expect(await erase(first, 'cus_victim')).toMatchObject({
      status: 200,
      json: { finishedAt: expect.any(String) },
    })
    expect(await erasedAt(first, 'cus_victim')).toEqual(expect.any(String))
    const next = await (await first.restart()).restart()
    expect(await statusOf(next, 'cus_victim')).toBe('revoked')
    expect(await erasedAt(next, 'cus_a')).toBeNull()
    expect(await statusOf(next, 'cus_a')).toBe('active')
  })

  it('is not taken for done because a signed event has an id like its own', async () => {
    const daemon = await runDaemon()
    await send(daemon, paid('cus_victim'))
    const own = (await erase(daemon, 'cus_other')).json.eventId as string
    for (const id of [formerId('erased cus_victim'), own, 'rec_0123456789abcdef01234567'])
      expect(await disposition(send(daemon, paid('cus_a', id)))).toMatchObject({
        id: null,
        disposition: 'quarantined',
      })
    await erase(daemon, 'cus_victim')
    expect(await statusOf(daemon, 'cus_victim')).toBe('revoked')
  })

  it('is made though a change by hand was imported under its id', async () => {
    const daemon = await runDaemon()
    await send(daemon, paid('cus_victim'))
    const id = erasureIdOf({ environment: 'live', customerId: 'cus_victim' })
    expect(await importActs(daemon, act(id, 'manual.granted', 'cus_a'))).toEqual(['applied'])
    const { json } = await erase(daemon, 'cus_victim')
    expect(json.eventId).not.toBe(id)
    expect(await statusOf(daemon, 'cus_victim')).toBe('revoked')
    expect((await erase(daemon, 'cus_victim')).json).toEqual(json)
  })

  it('in an import, under the id of another change, erases nobody', async () => {
    const daemon = await runDaemon()
    await send(daemon, paid('cus_victim'))
    const { json } = await grant(daemon, 'cus_a', 'case-17')
    const erasure = act(String(json.eventId), 'manual.erased', 'cus_victim')
    expect(await importActs(daemon, erasure, act('man_1', 'manual.granted', 'cus_a'))).toEqual([
      'duplicate',
      'applied',
    ])
    const later = act('man_1', 'manual.erased', 'cus_victim')
    expect(await importActs(daemon, later)).toEqual(['duplicate'])
    for (const customer of ['cus_victim', 'cus_a']) expect(await statusOf(daemon, customer)).toBe('active')
    const conflicts = await daemon.stored((db) => db.selectFrom('event_conflicts').selectAll().execute())
    expect(conflicts.map(({ event_id }) => event_id).sort()).toEqual([json.eventId, 'man_1'].sort())
  })
})

describe('a store of version 1.0.0', () => {
  /** A daemon on a store into which that version has taken these. */
  async function runUpgraded(...acts: readonly ReturnType<typeof act>[]): Promise<RunningDaemon> {
    const first = await runDaemon()
    await first.stop()
    const undated = acts.map(({ createdAt: _, ...one }) => ({ environment: 'live' as const, undated: one }))
    await takeIn(first.folder, undated, () => NOW)
    return first.restart()
  }

  it('knows an Idempotency-Key again, and refuses another change under it', async () => {
    const id = formerId('case-17')
    const daemon = await runUpgraded(act(id, 'manual.granted', 'cus_a'))
    expect(await grant(daemon, 'cus_a', 'case-17')).toMatchObject({ status: 201, json: { eventId: id } })
    expect(await grant(daemon, 'cus_b', 'case-17')).toMatchObject({
      status: 422,
      json: { code: 'idempotency_key_conflict' },
    })
    expect(await actsOf(daemon, 'cus_a')).toHaveLength(1)
    expect(await actsOf(daemon, 'cus_b')).toEqual([])
  })

  it('knows its erasures, also from its export, and takes their ids for no change under a key', async () => {
    const id = formerId('erased cus_a')
    const daemon = await runUpgraded(act(id, 'manual.erased', 'cus_a'))
    expect((await erase(daemon, 'cus_a')).json).toMatchObject({ eventId: id, finishedAt: expect.any(String) })
    expect(await importActs(daemon, act(id, 'manual.erased', 'cus_a'))).toEqual(['duplicate'])
    expect(await actsOf(daemon, 'cus_a')).toHaveLength(1)
    expect(await daemon.stored((db) => db.selectFrom('event_conflicts').selectAll().execute())).toEqual([])
    expect(await grant(daemon, 'cus_b', 'erased cus_a')).toMatchObject({ status: 201 })
  })

  /** One in which somebody is listed as erased, though a grant with the id of the erasure stands in its place. */
  async function runVoided(): Promise<RunningDaemon> {
    const id = formerId('erased cus_victim')
    const first = await runDaemon()
    await send(first, paid('cus_victim'))
    await first.stop()
    const granted = undatedAct({ id, type: 'manual.granted', customerId: 'cus_a', actor: 'app', ...GRANT })
    await takeIn(first.folder, [{ environment: 'live', undated: granted }], () => NOW)
    await onStore(first.folder, (db) => {
      const row = { event_id: id, erased_at: NOW, was_known: 1, finished_at: NOW } as const
      const voided = { environment: 'live', customer_id: 'cus_victim', ...row } as const
      return db.insertInto('erasures').values(voided).execute()
    })
    const line = { environment: 'live', eventId: id, at: NOW, actor: 'operator', reason: null }
    for (const customerId of ['cus_victim', 'cus_a'])
      appendFileSync(erasureListOf(first.databaseFile), `${JSON.stringify({ ...line, customerId })}\n`)
    return first.restart()
  }

  it('with an erasure that a key made void is mended by a further request', async () => {
    const daemon = await runVoided()
    expect(await erase(daemon, 'cus_victim')).toMatchObject({ json: { finishedAt: expect.any(String) } })
    expect(await statusOf(daemon, 'cus_victim')).toBe('revoked')
    expect((await erase(daemon, 'cus_victim')).json.eventId).not.toBe(formerId('erased cus_victim'))
  })

  it.runIf(ENGINE === 'sqlite')('with one is mended by its list, which erases nobody else', async () => {
    const daemon = await runVoided()
    expect(await statusOf(daemon, 'cus_victim')).toBe('revoked')
    expect(await erasedAt(daemon, 'cus_victim')).toEqual(expect.any(String))
    expect(await statusOf(daemon, 'cus_a')).toBe('active')
    expect(await erasedAt(daemon, 'cus_a')).toBeNull()
    const listed = readErasureList(erasureListOf(daemon.databaseFile))?.erasures
    expect(listed?.map(({ customerId }) => customerId)).toEqual(['cus_victim'])
    await daemon.restart()
    expect(await actsOf(daemon, 'cus_victim')).toHaveLength(1)
  })
})

it('no text gives two things one id', () => {
  const environment = fc.constantFrom('live', 'sandbox')
  // Texts that quote each other, as an attacker would have them.
  const text = fc.oneof(
    fc.string({ minLength: 1 }),
    fc.stringMatching(/^(erased |erasure |act |live |sandbox |man_|\\0){1,4}cus_[ab]$/),
    fc.string().map((some) => erasureIdOf({ environment: 'live', customerId: some })),
    fc.string().map((some) => actIdOf('live', some)),
    fc.string().map((some) => `sha256:${createHash('sha256').update(`{"id":"${some}"}`).digest('hex')}`),
  )
  const named = fc.record({ kind: fc.constantFrom('act', 'erasure', 'delivery', 'join'), environment, text })
  type Named = { readonly kind: string; readonly environment: 'live' | 'sandbox'; readonly text: string }

  const idOf = ({ kind, environment, text }: Named): string => {
    if (kind === 'act') return actIdOf(environment, text)
    if (kind === 'join') return actIdOf(environment, `telegram\0${text}`)
    if (kind === 'erasure') return erasureIdOf({ environment, customerId: text })
    const body = Buffer.from(JSON.stringify({ id: text, type: 'x.y', created_at: '2026-03-01T11:00:00Z' }))
    const headers = { event: null, timestamp: '', signature: '' }
    const { eventId } = prepare({ endpoint: 'live', environment, body, headers, receivedAt: NOW })
    return eventId
  }

  fc.assert(
    fc.property(named, named, (a, b) => {
      const isSame = a.kind === b.kind && a.text === b.text
      if (isSame && a.environment === b.environment) return idOf(a) === idOf(b)
      // Deliveries of two environments are stored apart.
      return idOf(a) !== idOf(b) || (isSame && a.kind === 'delivery')
    }),
    { numRuns: 2_000 },
  )
})
