import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { subscriptionHistory } from '../entitlements/histories.js'
import { bodyOf } from '../ingest/wire.js'
import { eventually } from '../setup/eventually.js'
import { freePort, latchkey, runProgram } from '../setup/program.js'
import { deliver, type SentEvent } from './load.js'
import { startSender } from './sender.js'
import { ask, configuredFolder, kill, type ServedDaemon, serve } from './served.js'
import { foldedState } from './stored-state.js'

/** Subscriptions as the provider tells them, each with customers of its own. */
const EVENTS: readonly SentEvent[] = fc
  .sample(subscriptionHistory, { numRuns: 60, seed: 20_260_301 })
  .flatMap(({ events }, n) => events.map((event) => renamed(bodyOf(event), n)))

function renamed(body: string, n: number): SentEvent {
  const own = body.replace(/"(evt|cus|sub|pay)_/g, `"$1_${n}_`)
  return { id: (JSON.parse(own) as { id: string }).id, body: own }
}

const CUSTOMERS = Array.from({ length: 60 }, (_, n) => [`cus_${n}_1`, `cus_${n}_2`]).flat()

/** All events in an order of their own, every third one twice. */
function disordered(seed: number): readonly SentEvent[] {
  const all = [...EVENTS, ...EVENTS.filter((_, i) => i % 3 === 0)]
  const [order = []] = fc.sample(fc.shuffledSubarray(all, { minLength: all.length }), { numRuns: 1, seed })
  return order
}

/** What the API answers about every customer, but for the instant and the place in the change log. */
async function answersOf(daemon: ServedDaemon): Promise<readonly object[]> {
  const answers: object[] = []
  for (const customerId of CUSTOMERS) {
    const answer = await ask(daemon, `/entitlements/${customerId}`)
    expect(answer.status).toBe(200)
    const { asOf: _at, cursor: _place, ...told } = (await answer.json()) as Record<string, unknown>
    answers.push(told)
  }
  return answers
}

async function stateOf(folder: string, daemon: ServedDaemon) {
  return { answers: await answersOf(daemon), folded: await foldedState(folder) }
}

/** A daemon that was never down, and got every event once, in order. */
async function undisturbed() {
  const folder = configuredFolder()
  const daemon = await serve(folder)
  const load = await deliver(daemon.url, EVENTS)
  expect(load.acknowledged).toHaveLength(EVENTS.length)
  const state = await stateOf(folder, daemon)
  await kill(daemon)
  return state
}

async function command(folder: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runProgram(latchkey(...args), { folder })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}

const reaches = (count: () => number, least: number) =>
  eventually(() => expect(count()).toBeGreaterThanOrEqual(least), { intervalMs: 2 })

it('ends as if it had never been down, once the sender has caught up after outages', async () => {
  const expected = await undisturbed()
  expect(new Set(expected.folded.entitlements.map(({ status }) => status)).size).toBeGreaterThan(3)

  const folder = configuredFolder()
  const port = { LATCHKEY_PORT: String(await freePort()) }
  const deliveries = disordered(1)
  let daemon = await serve(folder, port)
  const sender = startSender(daemon, deliveries)
  for (const share of [0.3, 0.6]) {
    await reaches(sender.acknowledged, share * deliveries.length)
    await kill(daemon)
    const before = sender.failed()
    await reaches(sender.failed, before + 30)
    daemon = await serve(folder, port)
  }
  await sender.done
  expect(sender.acknowledged()).toBe(deliveries.length)
  expect(await stateOf(folder, daemon)).toEqual(expected)
})

it('ends as if nothing was lost, once a backup is restored and an export of all is imported', async () => {
  const expected = await undisturbed()

  const lost = configuredFolder()
  const first = await serve(lost)
  const deliveries = disordered(2)
  const sender = startSender(first, deliveries)
  await reaches(sender.acknowledged, 0.4 * deliveries.length)
  await command(lost, 'backup', 'backup.db')
  await sender.done
  await command(lost, 'events', 'export', '--output', 'events.jsonl')
  await kill(first)

  const folder = configuredFolder()
  await command(folder, 'restore', join(lost, 'backup.db'))
  const daemon = await serve(folder)
  const imported = JSON.parse(await command(folder, 'import', join(lost, 'events.jsonl'), '--json'))
  expect(imported).toMatchObject({ lines: EVENTS.length, refused: 0 })
  expect(imported.duplicates).toBeGreaterThan(0)
  expect(imported.applied).toBeGreaterThan(0)
  expect(await stateOf(folder, daemon)).toEqual(expected)
})
