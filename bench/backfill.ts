import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { startLoadGenerator } from './load/generator.js'
import { ROUND_DEFAULTS, readOptions, roundOptions } from './options.js'
import { memoryUse } from './process-usage.js'
import { machineNow, report, type Section } from './results.js'
import { describeRounds, measureRounds } from './rounds.js'
import { startLatchkey } from './servers/latchkey.js'
import { type RunningServer, startServer } from './servers/running-server.js'
import { API_KEY, createDaemonFolder } from './store/daemon-folder.js'
import { figure, markdownTable, standingsTable } from './table.js'
import { together } from './together.js'
import { createWorkFolder } from './work-folder.js'

/*
 * What a backfill of a large account costs a daemon: its time and memory where everything is missing and where nothing
 * is, and how fast deliveries are acknowledged meanwhile.
 *
 *   node --import ./scripts/typescript.js bench/backfill.ts [--subscriptions 20000] [--payments 100000]
 *                              [--rounds 3] [--requests 20000] [--warm-up 3000] [--connections 64] [--part cost]
 */

const LOOK_EVERY_MS = 50

const machine = machineNow()
const { folder, part, numbers } = readOptions({ ...ROUND_DEFAULTS, subscriptions: 20_000, payments: 100_000 })
const { subscriptions, payments } = numbers
const options = roundOptions(numbers)

interface Run {
  readonly id: string
  readonly state: string
}

async function ask({ port }: RunningServer, method: 'GET' | 'POST' | 'DELETE', path: string): Promise<Run> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { Authorization: `Bearer ${API_KEY}`, 'Content-Type': 'application/json' },
    ...(method === 'POST' && { body: '{}' }),
  })
  if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`)
  return (await response.json()) as Run
}

interface Cost {
  readonly seconds: number
  /** Resident, above what it was before. */
  readonly megabytesMore: number
}

/** Awaits its end. */
async function backfillOnce(server: RunningServer): Promise<Cost> {
  const idle = memoryUse(server.pid).residentMb
  const startedAt = performance.now()
  const { id } = await ask(server, 'POST', '/backfills?environment=live')
  let most = idle
  for (;;) {
    const { state } = await ask(server, 'GET', `/backfills/${id}`)
    most = Math.max(most, memoryUse(server.pid).residentMb)
    if (state === 'done') break
    if (state !== 'running') throw new Error(`The backfill ended as ${state}.`)
    await wait(LOOK_EVERY_MS)
  }
  return { seconds: (performance.now() - startedAt) / 1000, megabytesMore: most - idle }
}

/** One backfill after the other, from before the work begins until it ends. */
async function whileFilling<T>(server: RunningServer, work: () => Promise<T>): Promise<T> {
  let isOver = false
  const filling = (async () => {
    while (!isOver) {
      const { id } = await ask(server, 'POST', '/backfills?environment=live')
      while (!isOver && (await ask(server, 'GET', `/backfills/${id}`)).state === 'running')
        await wait(LOOK_EVERY_MS)
      if (isOver) await ask(server, 'DELETE', `/backfills/${id}`)
    }
  })()
  const ended = work().finally(() => {
    isOver = true
  })
  const [result] = await Promise.all([ended, filling])
  return result
}

const work = createWorkFolder(folder)

/** A daemon that asks a service of so many records. */
function withDaemon<T>(name: string, use: (server: RunningServer) => Promise<T>): Promise<T> {
  return together(async (start) => {
    const records = start(await startServer('payment-records', String(subscriptions), String(payments)))
    const { configFile } = createDaemonFolder(join(work, name))
    const config = JSON.parse(readFileSync(configFile, 'utf8')) as object
    const provider = { live: { baseUrl: `http://127.0.0.1:${records.port}`, apiKey: 'sk_live_bench' } }
    writeFileSync(configFile, JSON.stringify({ ...config, provider }))
    return use(start(await startLatchkey(configFile)))
  })
}

/** A daemon that has worked: what it took to begin with is no cost of a backfill. */
async function warmUp(server: RunningServer): Promise<void> {
  await together(async (start) => {
    const load = start(startLoadGenerator())
    await load.measure(server, { ...options, workload: { kind: 'deliveries', returning: null } })
  })
  await wait(1_000)
}

const costs = (): Promise<Section> =>
  withDaemon('cost', async (server) => {
    await warmUp(server)
    const runs = [
      ['everything is missing', await backfillOnce(server)],
      ['nothing is missing', await backfillOnce(server)],
    ] as const
    return {
      title: 'Backfill',
      explanation: `${subscriptions} subscriptions and ${payments} payments, 100 a page, on an idle daemon that has taken ${options.warmUp + options.requests} deliveries, twice.`,
      table: markdownTable(
        runs.map(([what, { seconds, megabytesMore }]) => ({
          what,
          seconds: figure(seconds),
          'records/s': figure((subscriptions + payments) / seconds),
          'MB more': figure(megabytesMore),
        })),
      ),
      data: Object.fromEntries(runs),
    }
  })

const meanwhile = (): Promise<Section> =>
  withDaemon('meanwhile', (server) =>
    together(async (start) => {
      const load = start(startLoadGenerator())
      const workload = { kind: 'deliveries', returning: null } as const
      const standings = await measureRounds(
        load,
        [
          { name: 'alone', server, workload },
          { name: 'during a backfill', server, workload, meanwhile: (own) => whileFilling(server, own) },
        ],
        options,
      )
      return {
        title: 'Deliveries meanwhile',
        explanation: `${describeRounds(options)} The first backfill finds everything missing.`,
        table: standingsTable(standings, ['alone']),
        data: { standings },
      }
    }),
  )
// A part alone leaves the kept results as they are.
if (part === 'cost') console.log((await costs()).table)
else report('backfill', machine, [await costs(), await meanwhile()])
