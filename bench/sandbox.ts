import { Agent, request } from 'node:http'
import { startSandbox } from '../src/sandbox/sandbox.js'
import { readOptions } from './options.js'
import { machineNow } from './results.js'
import { startServer } from './servers/running-server.js'
import { figure, markdownTable, ratio } from './table.js'
import { together } from './together.js'

/*
 * What a year of monthly subscriptions costs the sandbox: with nobody to hear of it, with one endpoint that hears
 * every event over HTTP, and beside both, plainly sending as many of the same bodies to the same server.
 *
 *   node --import ./scripts/typescript.js bench/sandbox.ts [--subscriptions 10000] [--days 365] [--connections 16]
 */

const KEY = 'sk_sandbox_bench'
const FROM = '2026-01-01T00:00:00.000Z'
/** Of each renewal: authorized, succeeded, completed, renewed. */
const EVENTS_OF_A_RENEWAL = 4

const machine = machineNow()
const { numbers } = readOptions({ subscriptions: 10_000, days: 365, connections: 16 })
const answer = JSON.stringify({ received: true })

/** Of the answers that are asked for here, some have the one, some the other. */
interface Data {
  readonly id: string
  readonly payments: number
  readonly items: readonly { readonly event: object }[]
}

interface Cost {
  readonly seconds: number
  /** Of the processor, by this process: what a busy machine changes least. */
  readonly processorSeconds: number
}

interface Year extends Cost {
  readonly renewals: number
  /** Some of the bodies that were delivered. */
  readonly bodies: readonly string[]
}

/** Creates the subscriptions, which is not counted, and then lets the time pass. */
function pass(endpoint: string | null): Promise<Year> {
  return together(async (use) => {
    const endpoints =
      endpoint === null ? [] : [{ url: endpoint, secret: 'whsec_bench', generation: 'v3' as const }]
    const sandbox = use(await startSandbox({ key: KEY, from: FROM, endpoints }))
    const ask = async (method: string, path: string, body?: object) => {
      const headers = { 'X-Service-Api-Key': KEY, 'Content-Type': 'application/json' }
      const sent = await fetch(sandbox.url + path, {
        method,
        headers,
        ...(body && { body: JSON.stringify(body) }),
      })
      const { data } = (await sent.json()) as { readonly data: Data }
      if (!sent.ok) throw new Error(`${method} ${path}: ${sent.status}`)
      return data
    }
    const monthly = {
      name: 'Monthly',
      priceCents: '1900',
      currency: 'EUR',
      frequencyInDays: 30,
      paymentMethods: ['CARD'],
    }
    const { id: productId } = await ask('POST', '/v3/products', monthly)
    for (let index = 0; index < numbers.subscriptions; index += 1) {
      const card = { tokenizedInstrument: 'tok_good' }
      await ask('POST', '/v3/subscriptions', { productId, customerEmail: `${index}@example.com`, card })
    }
    await sandbox.advance('0s')
    const cost = await costOf(() => sandbox.advance(`${numbers.days}d`))
    const { payments } = await ask('GET', '/v3/analytics')
    const { items } = await ask('GET', '/sandbox/deliveries?limit=100')
    const late = await ask('GET', '/sandbox/deliveries?status=pending')
    const failed = await ask('GET', '/sandbox/deliveries?status=failed')
    if (late.items.length + failed.items.length > 0) throw new Error('Not everything was delivered.')
    const bodies = items.map(({ event }) => JSON.stringify(event))
    return { ...cost, renewals: payments - numbers.subscriptions, bodies }
  })
}

async function costOf(work: () => Promise<unknown>): Promise<Cost> {
  const startedAt = performance.now()
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return { seconds: (performance.now() - startedAt) / 1000, processorSeconds: (user + system) / 1e6 }
}

/** Sends so many requests with these bodies, and nothing else. */
async function post(url: string, bodies: readonly string[], count: number): Promise<Cost> {
  const agent = new Agent({ keepAlive: true, maxSockets: numbers.connections })
  const send = (body: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }
      const sent = request(url, { method: 'POST', agent, headers }, (got) => got.resume().on('end', resolve))
      sent.on('error', reject).end(body)
    })
  const numbered = Array.from({ length: count }, (_, index) => bodies[index % bodies.length] ?? '').values()
  const drive = async (): Promise<void> => {
    for (const body of numbered) await send(body)
  }
  const cost = await costOf(() => Promise.all(Array.from({ length: numbers.connections }, drive)))
  agent.destroy()
  return cost
}

await together(async (use) => {
  const { port } = use(await startServer('bare-http', answer))
  const url = `http://127.0.0.1:${port}/hook`
  const silent = await pass(null)
  const heard = await pass(url)
  const events = heard.renewals * EVENTS_OF_A_RENEWAL
  const plain = await post(url, heard.bodies, events)
  const rows = [
    ['no endpoint', silent],
    ['one endpoint', heard],
    ['plain requests, no sandbox', plain],
  ] as const
  const { subscriptions, days } = numbers
  console.log(`${machine}.\n`)
  console.log(`${subscriptions} subscriptions, ${days} days, ${heard.renewals} renewals, ${events} events.\n`)
  console.log(
    markdownTable(
      rows.map(([what, { seconds, processorSeconds }]) => ({
        what,
        seconds: figure(seconds),
        'µs an event': figure((seconds * 1e6) / events),
        '× plain': ratio(seconds, plain.seconds),
        'processor seconds': figure(processorSeconds),
        '× plain (processor)': ratio(processorSeconds, plain.processorSeconds),
      })),
    ),
  )
})
