import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createClient } from '../src/client/client.js'

/*
 * What a question costs that the client answers from its cache, beside a lookup in a map by an async function.
 *
 *   node --import ./scripts/typescript.js bench/client.ts
 */

const CUSTOMERS = 10_000
const QUESTIONS = 1_000_000
const ROUNDS = 7
const NEEDED = { feature: 'export' }

const server = createServer((req, res) => {
  if (req.url === '/changes/stream') {
    const openedAt = performance.now()
    const prove = () => res.write(`: ${Math.floor(performance.now() - openedAt)}\n\n`)
    res.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('id: log.1\n\n')
    prove()
    res.on('close', clearInterval.bind(null, setInterval(prove, 1_000)))
    return
  }
  const asOf = new Date().toISOString()
  const feature = { id: 'export', active: true, until: null, productIds: ['pro_1'] }
  const answer = { asOf, validUntil: null, cursor: 'log.1', entitlements: [], features: [feature] }
  res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer))
}).listen(0, '127.0.0.1')
await once(server, 'listening')

const { port } = server.address() as AddressInfo
const client = createClient({
  url: `http://127.0.0.1:${port}`,
  apiKey: 'lk_bench',
  maxCustomers: 4 * CUSTOMERS,
  maxAge: 3_600_000,
})
const customers = Array.from({ length: CUSTOMERS }, (_, n) => `cus_${String(n).padStart(24, 'x')}`)
const answers = new Map(customers.map((one) => [one, { active: true }]))
const lookUp = async (customer: string) => answers.get(customer) ?? { active: false }

// Twice: what is asked before the stream is there is not kept.
for (let round = 0; round < 2; round += 1) {
  for (let n = 0; n < CUSTOMERS; n += 50) {
    await Promise.all(customers.slice(n, n + 50).map((one) => client.check(one, NEEDED)))
  }
}
let requests = 0
server.on('request', () => {
  requests += 1
})

/** The median of several rounds, in nanoseconds for each question. */
async function measure(ask: (customer: string) => Promise<{ readonly active: boolean }>): Promise<number> {
  const rounds: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const startedAt = performance.now()
    for (let n = 0; n < QUESTIONS; n += 1) {
      const { active } = await ask(customers[n % CUSTOMERS] ?? '')
      if (!active) throw new Error('An answer was wrong.')
    }
    rounds.push(((performance.now() - startedAt) * 1e6) / QUESTIONS)
  }
  return rounds.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? Number.NaN
}

const bare = await measure(lookUp)
const cached = await measure((customer) => client.check(customer, NEEDED))
client.close()
server.closeAllConnections()
server.close()
console.log(`a lookup in a map, in an async function: ${bare.toFixed(0)} ns`)
console.log(
  `check, answered from the cache:          ${cached.toFixed(0)} ns, ${(cached / bare).toFixed(1)} x`,
)
console.log(`requests meanwhile: ${requests}`)
