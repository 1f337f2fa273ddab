import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { foundIn } from '../daemon/erasing.js'
import { databaseIn } from '../faults/aftermath.js'
import { runHere } from './in-process.js'
import { deliver, type SentEvent } from './load.js'
import { person } from './person.js'
import { configuredFolder, entitlementsOf, kill, type ServedDaemon, serve } from './served.js'
import { foldedState } from './stored-state.js'

const ADA = person(1)
const BEGUN_AT = Date.UTC(2026, 0, 31, 12)

/** A payment's event of one customer. */
function paid(n: number, type: string, customerId: string, createdAt = BEGUN_AT + n): SentEvent {
  const id = `evt_paid_${n}`
  const data = {
    object: 'payment',
    id: `pay_${customerId}`,
    method: 'CARD',
    customer: { object: 'customer', id: customerId },
    product: { object: 'product', id: 'pro_1' },
  }
  return {
    id,
    body: JSON.stringify({ id, type, createdAt: new Date(createdAt).toISOString(), livemode: true, data }),
  }
}

const PAID = paid(1, 'payment.authorized', 'cus_refunded')
const SINCE = [paid(2, 'payment.refunded', 'cus_refunded'), paid(3, 'payment.authorized', 'cus_paying')]

async function done(folder: string, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runHere(folder, args)
  expect({ args, code, stderr }).toMatchObject({ args, code: 0 })
  return stdout
}

/** In any order; but for when a body was rewritten, which each store does itself. */
const linesOf = (file: string) =>
  readFileSync(file, 'utf8')
    .replaceAll(/"bodyRemoved":\{("why":"\w+"),"at":"[^"]+"/g, '$1')
    .split('\n')
    .toSorted()

const accessOf = (daemon: ServedDaemon) =>
  Promise.all(['cus_refunded', 'cus_paying', ADA.customerId].map((id) => entitlementsOf(daemon, id)))

it('what an erasure has removed since a backup comes back by an export, over that backup', async () => {
  const folder = configuredFolder()
  const daemon = await serve(folder)
  await deliver(daemon.url, [...ADA.events, PAID])
  await done(folder, 'backup', 'backup.db')
  await deliver(daemon.url, SINCE)
  await done(folder, 'erase', ADA.customerId, '--yes')
  // She comes back, as the same customer.
  await deliver(daemon.url, [paid(4, 'payment.authorized', ADA.customerId, Date.now())])
  const access = await accessOf(daemon)
  expect(access.map(([entitlement]) => entitlement?.status)).toEqual(['refunded', 'active', 'active'])
  await done(folder, 'events', 'export', '--output', 'events.jsonl')
  await kill(daemon)
  const state = await foldedState(folder)

  const elsewhere = configuredFolder()
  await done(elsewhere, 'restore', join(folder, 'backup.db'))
  const restored = await serve(elsewhere)
  const file = join(folder, 'events.jsonl')
  const unsigned = JSON.parse(await done(elsewhere, 'import', file, '--json'))
  expect(unsigned).toMatchObject({ refused: 0, applied: SINCE.length })
  const imported = JSON.parse(await done(elsewhere, 'import', file, '--with-manual', '--json'))
  expect(imported).toMatchObject({
    refused: 0,
    leftOut: 0,
    applied: unsigned.leftOut - ADA.events.length,
  })
  expect(await accessOf(restored)).toEqual(access)
  expect(await foldedState(elsewhere)).toEqual(state)
  // A daemon finishes what was imported within the minute.
  await done(elsewhere, 'erase', ADA.customerId, '--yes')
  expect(foundIn(databaseIn(elsewhere), ADA.words)).toEqual([])
  expect((await runHere(elsewhere, ['rebuild', '--verify'])).code).toBe(0)

  await done(elsewhere, 'events', 'export', '--output', 'again.jsonl')
  expect(linesOf(join(elsewhere, 'again.jsonl'))).toEqual(linesOf(file))
})
