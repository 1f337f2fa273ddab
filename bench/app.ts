import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { startLoadGenerator } from './load/generator.js'
import { median } from './load/percentile.js'
import { buildRequests } from './load/requests.js'
import { readOptions } from './options.js'
import { memoryUse } from './process-usage.js'
import { machineNow, report, type Section } from './results.js'
import { measureRounds } from './rounds.js'
import { type RunningDaemon, startLatchkey } from './servers/latchkey.js'
import { API_KEY } from './store/daemon-folder.js'
import { type GeneratedStore, generateStore } from './store/generate.js'
import { figure, markdownTable, standingsTable } from './table.js'
import { together } from './together.js'
import { createWorkFolder } from './work-folder.js'

/*
 * What an app asks of a daemon: many checks in one request, and the change stream with many idle clients.
 * On Linux: it reads there what another process costs.
 *
 *   node --import ./scripts/typescript.js bench/app.ts [--customers 100000] [--clients 2000] [--changes 20] [--rounds 3] [--folder F]
 */

/** Opened at once: the system queues a limited number of new connections. */
const OPENED_AT_ONCE = 100
/** One after the other. */
const CHECKS = { warmUp: 50, requests: 200, connections: 1 }

const machine = machineNow()
const { folder, numbers } = readOptions({ customers: 100_000, clients: 2_000, changes: 20, rounds: 3 })

async function measureChecks(store: GeneratedStore, daemon: RunningDaemon): Promise<Section> {
  const check = { kind: 'checks', customers: store.customers, apiKey: API_KEY } as const
  const contestants = [1, 1_000].map((pairs) => ({
    name: `${pairs} a request`,
    server: daemon,
    workload: { ...check, pairs },
  }))
  const standings = await together((use) =>
    measureRounds(use(startLoadGenerator()), contestants, { ...CHECKS, rounds: numbers.rounds }),
  )
  return {
    title: 'Checks',
    explanation: `POST /entitlements/check with ${store.customers} customers stored, one request after the other.`,
    table: standingsTable(standings, ['1 a request']),
    data: standings,
  }
}

async function measureStreams(daemon: RunningDaemon): Promise<Section> {
  const before = memoryUse(daemon.pid).residentMb
  const clients: IncomingMessage[] = []
  while (clients.length < numbers.clients) {
    const some = Math.min(OPENED_AT_ONCE, numbers.clients - clients.length)
    clients.push(...(await Promise.all(Array.from({ length: some }, () => openStream(daemon.port)))))
  }
  const idle = memoryUse(daemon.pid).residentMb
  const reached: number[] = []
  const bought = { kind: 'subscriptions', subscriptions: numbers.changes } as const
  for (const delivery of buildRequests(bought, numbers.changes, Date.now())) {
    const all = Promise.all(clients.map(nextChange))
    const startedAt = performance.now()
    await send(daemon.port, delivery)
    await all
    reached.push(performance.now() - startedAt)
  }
  const after = memoryUse(daemon.pid).residentMb
  for (const client of clients) client.destroy()
  const megabytes = { before, idle, after }
  return {
    title: 'Change stream',
    explanation: `${numbers.clients} idle clients, then ${numbers.changes} changes, one after the other: from the delivery's first byte until the last client has the change. The clients share one process, which needs most of that time.`,
    table: markdownTable([
      { figure: 'resident MB without clients', value: figure(before) },
      { figure: 'resident MB with idle clients', value: figure(idle) },
      { figure: 'resident MB after the changes', value: figure(after) },
      { figure: 'KiB a client', value: figure(((idle - before) * 1024) / numbers.clients) },
      { figure: 'a change reaches all, median ms', value: figure(median(reached)) },
      { figure: 'a change reaches all, slowest ms', value: figure(Math.max(...reached)) },
    ]),
    data: { clients: numbers.clients, megabytes, reachedAllMs: reached },
  }
}

async function openStream(port: number): Promise<IncomingMessage> {
  const headers = { Authorization: `Bearer ${API_KEY}` }
  const request = get({ host: '127.0.0.1', port, path: '/changes/stream', headers, agent: false })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  if (response.statusCode !== 200) throw new Error(`A stream was answered ${response.statusCode}.`)
  // The first id of the stream.
  await once(response, 'data')
  return response
}

async function nextChange(client: IncomingMessage): Promise<void> {
  while (true) {
    const [chunk] = (await once(client, 'data')) as [Buffer]
    if (chunk.includes('event: change')) return
  }
}

async function send(port: number, request: Buffer): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  socket.write(request)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  if (!answer.toString('latin1').startsWith('HTTP/1.1 200 ')) throw new Error(`A delivery got: ${answer}`)
}

const size = { customers: numbers.customers, eventsPerCustomer: 4 }
const store = await generateStore(join(createWorkFolder(folder), 'app'), size)
const sections = await together(async (use) => {
  const daemon = use(await startLatchkey(store.configFile))
  // First, while the daemon's memory holds nothing else.
  const streams = await measureStreams(daemon)
  return [await measureChecks(store, daemon), streams]
})
report('app', machine, sections)
