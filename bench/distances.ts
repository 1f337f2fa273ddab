import { join } from 'node:path'
import { type LoadGenerator, startLoadGenerator } from './load/generator.js'
import { readOptions } from './options.js'
import { whileRebuilding } from './rebuild/rebuilding.js'
import { fill } from './renewals.js'
import { machineNow, report, type Section } from './results.js'
import { type Contestant, measureRounds, type Standing } from './rounds.js'
import { startLatchkey } from './servers/latchkey.js'
import { query, type RunningPostgres, startPostgres, usePostgres } from './servers/postgres.js'
import { type RunningServer, startServer } from './servers/running-server.js'
import { createDaemonFolder } from './store/daemon-folder.js'
import { figure, markdownTable, ratio } from './table.js'
import { together } from './together.js'
import { createWorkFolder, syncMicros } from './work-folder.js'

/*
 * What the way to PostgreSQL costs deliveries: renewals through one daemon and several, each way so many milliseconds
 * long, beside another version in the same run. Nothing but the way is made longer: load, daemons and database share the
 * machine.
 *
 *   node --import ./scripts/typescript.js bench/distances.ts --against F [--rounds 2] [--seconds 3] [--writers 4]
 *                               [--subscriptions 10000] [--part 1: only one of them] [--folder F] [--url postgres://...]
 */

const OTHER = 'the other'
const THIS = 'this'
/** The last part by its number; `--part` may name one. */
const EVERY_PART = 100

const machine = machineNow()
const { folder, url, against, numbers } = readOptions({
  rounds: 2,
  seconds: 3,
  writers: 4,
  subscriptions: 10_000,
  part: EVERY_PART,
})
const { rounds, seconds, writers, subscriptions, part } = numbers
if (against === undefined) throw new Error('--against names the folder where another version is built.')

/** Requests to each version, before the way gets long: a program that has just started takes twice as long. */
const WARM_UP = 4_000

/** One subscription in every delivery: so few that it has about as many events at the end. */
const HOT = { subscriptions: 1, events: 40, seconds: 1, warmUp: 200 }

interface Cell {
  readonly delayMs: number
  readonly daemons: number
  /** In all. */
  readonly senders: number
  readonly subscriptions: number
}

/** A database for each version, and what each has delivered into it. */
interface Store {
  readonly name: string
  readonly project: string | undefined
  readonly databaseUrl: string
}

let started = 0
const databases: string[] = []

const isHot = (cell: Pick<Cell, 'subscriptions'>): boolean => cell.subscriptions === HOT.subscriptions

interface Distant extends RunningServer {
  /** From now on, the way to the database is as long as it should be. */
  moveAway(): void
}

async function startDaemons(store: Store, { delayMs, daemons }: Cell, use: Use): Promise<Distant> {
  const direct = new URL(store.databaseUrl)
  const way = use(await startServer('distance', direct.port, String(delayMs)))
  const databaseUrl = Object.assign(direct, { port: way.port }).href
  const running: RunningServer[] = []
  for (let i = 0; i < daemons; i += 1) {
    started += 1
    const database = {
      url: databaseUrl,
      ...(store.project === undefined && { writers, connections: writers + 8 }),
    }
    const { configFile } = createDaemonFolder(join(work, String(started)), database)
    running.push(use(await startLatchkey(configFile, store.project)))
  }
  const [first, ...beside] = running as [RunningServer, ...RunningServer[]]
  return { ...first, beside, databasePid: postgres.pid, moveAway: () => process.kill(way.pid, 'SIGUSR2') }
}

type Use = <S extends { stop(): Promise<void> }>(started: S) => S

async function warmUp(load: LoadGenerator, server: Distant, cell: Cell): Promise<void> {
  const requests = isHot(cell) ? HOT.warmUp : WARM_UP
  const workload = { kind: 'renewals', subscriptions: cell.subscriptions } as const
  await load.measure(server, { workload, connections: cell.senders, warmUp: cell.senders, requests })
  server.moveAway()
}

/** Requests a second of each version, or of some, with so many senders. */
async function measureCell(load: LoadGenerator, stores: readonly Store[], cell: Cell): Promise<Standing[]> {
  return together(async (use) => {
    const contestants: Contestant[] = []
    for (const store of stores) {
      const server = await startDaemons(store, cell, use)
      const workload = { kind: 'renewals', subscriptions: cell.subscriptions } as const
      await warmUp(load, server, cell)
      contestants.push({ name: store.name, server, workload })
    }
    const trial = { rounds: 1, warmUp: cell.senders, requests: 3 * cell.senders, connections: cell.senders }
    const tried = rates(await measureRounds(load, contestants, trial))
    const fastest = Math.max(...tried.values())
    const sized = contestants.map((one) => {
      // Rounds of about the same time. But one subscription with more events would take longer: as many for each.
      const own = isHot(cell) ? fastest * HOT.seconds : (tried.get(one.name) ?? 0) * seconds
      return { ...one, requests: Math.max(trial.requests, Math.round(own)) }
    })
    return measureRounds(load, sized, { ...trial, rounds })
  })
}

const rates = (standings: readonly Standing[]) =>
  new Map(standings.map(({ name, median }) => [name, median.requestsPerSecond]))

async function measureDistances(load: LoadGenerator, stores: readonly Store[]): Promise<Section> {
  const rows: Record<string, string>[] = []
  const data: object[] = []
  for (const delayMs of [0, 1, 5, 20]) {
    for (const senders of [64, 256]) {
      const standings = await measureCell(load, stores, { delayMs, senders, daemons: 1, subscriptions })
      const [other = 0, own = 0] = [OTHER, THIS].map((name) => rates(standings).get(name))
      rows.push({
        'ms each way': String(delayMs),
        senders: String(senders),
        [`${OTHER}, requests/s`]: figure(other),
        [`${THIS}, requests/s`]: figure(own),
        [`× ${OTHER}`]: ratio(own, other),
      })
      data.push({ delayMs, senders, standings })
    }
  }
  const title = 'One daemon'
  return {
    title,
    explanation: `Renewals of ${subscriptions} subscriptions.`,
    table: markdownTable(rows),
    data,
  }
}

async function measureSeveral(
  load: LoadGenerator,
  storesFor: () => Promise<readonly Store[]>,
  {
    title,
    delayMs,
    sendersOf,
    ...cell
  }: Pick<Cell, 'delayMs' | 'subscriptions'> & {
    readonly title: string
    readonly sendersOf: (daemons: number) => number
  },
): Promise<Section> {
  const rows: Record<string, string>[] = []
  const data: object[] = []
  const first = new Map<string, number>()
  for (const daemons of [1, 2, 4]) {
    const senders = sendersOf(daemons)
    const stores = await storesFor()
    const standings = await measureCell(load, stores, { ...cell, delayMs, daemons, senders })
    const other = rates(standings).get(OTHER)
    for (const [name, rate] of rates(standings)) {
      if (daemons === 1) first.set(name, rate)
      rows.push({
        version: name,
        daemons: String(daemons),
        senders: String(senders),
        'requests/s': figure(rate),
        '× one daemon': ratio(rate, first.get(name) ?? Number.NaN),
        ...(other !== undefined && { [`× ${OTHER}`]: ratio(rate, other) }),
      })
    }
    data.push({ daemons, senders, standings })
  }
  const explanation = `${delayMs} ms each way, renewals of ${cell.subscriptions} subscription(s).`
  return { title, explanation, table: markdownTable(rows), data }
}

/** Deliveries to one daemon, while another one compares all that is stored with its events, and while none does. */
async function measureMeanwhile(load: LoadGenerator, stores: readonly Store[]): Promise<Section> {
  return together(async (use) => {
    const contestants: Contestant[] = []
    const workload = { kind: 'renewals', subscriptions } as const
    for (const store of stores) {
      const cell = { delayMs: 1, daemons: 1, senders: 64, subscriptions }
      const server = await startDaemons(store, cell, use)
      const other = await startDaemons(store, cell, use)
      await warmUp(load, server, cell)
      other.moveAway()
      contestants.push({ name: `${store.name}, alone`, server, workload })
      const meanwhile = <T>(work: () => Promise<T>) =>
        whileRebuilding(other, '/rebuild/verification', () => {}, work)
      contestants.push({ name: `${store.name}, while another verifies`, server, workload, meanwhile })
    }
    const options = { rounds, warmUp: 256, requests: 1_000 * seconds, connections: 64 }
    const standings = await measureRounds(load, contestants, options)
    const rows = standings.map(({ name, median }, i) => ({
      deliveries: name,
      'requests/s': figure(median.requestsPerSecond),
      '× alone': ratio(
        median.requestsPerSecond,
        standings[i - (i % 2)]?.median.requestsPerSecond ?? Number.NaN,
      ),
    }))
    const title = 'While another daemon verifies'
    const explanation = '1 ms each way, 64 senders.'
    return { title, explanation, table: markdownTable(rows), data: standings }
  })
}

interface Size {
  readonly subscriptions: number
  /** Of each. */
  readonly events: number
}

/** A new database for each version, with the same in it. */
async function fillStores(load: LoadGenerator, postgres: RunningPostgres, size: Size): Promise<Store[]> {
  const stores: Store[] = []
  for (const [name, project] of [
    [OTHER, against],
    [THIS, undefined],
  ] as const) {
    const databaseUrl = await postgres.createDatabase(`distance_${databases.length + 1}`)
    databases.push(databaseUrl)
    const store = { name, project, databaseUrl }
    const near = { delayMs: 0, daemons: 1, senders: 64, subscriptions: size.subscriptions }
    await together(async (use) => {
      const server = await startDaemons(store, near, use)
      await fill(load, server, size, isHot(size) ? 8 : 256)
    })
    stores.push(store)
  }
  return stores
}

async function measureAll(postgres: RunningPostgres): Promise<Section[]> {
  return together(async (use) => {
    const load = use(startLoadGenerator())
    const newStores = (size: Size) => fillStores(load, postgres, size)
    const stores = await newStores({ subscriptions, events: 1 })
    const parts: (() => Promise<Section>)[] = [
      () => measureDistances(load, stores),
      () =>
        // Where one transaction writes at a time, four daemons are too slow for so many senders, and refuse some.
        measureSeveral(load, async () => stores.filter(({ name }) => name === THIS), {
          title: 'Several daemons far away',
          delayMs: 20,
          subscriptions,
          sendersOf: (daemons) => 24 * daemons,
        }),
      () =>
        measureSeveral(load, async () => stores, {
          title: 'Several daemons, as much load',
          delayMs: 5,
          subscriptions,
          sendersOf: () => 256,
        }),
      () =>
        measureSeveral(load, () => newStores(HOT), {
          title: 'One subscription in every delivery',
          delayMs: 5,
          subscriptions: HOT.subscriptions,
          sendersOf: () => 64,
        }),
      () => measureMeanwhile(load, stores),
    ]
    const sections: Section[] = []
    for (const [i, measure] of parts.entries())
      if (part === EVERY_PART || part === i + 1) sections.push(await measure())
    for (const databaseUrl of databases) {
      const ended = await query<{ deadlocks: string }>(
        databaseUrl,
        'select deadlocks from pg_stat_database where datname = current_database()',
      )
      if (Number(ended?.deadlocks) > 0) throw new Error(`${ended?.deadlocks} transactions deadlocked.`)
    }
    return sections
  })
}

const work = createWorkFolder(folder)
const postgres = url === undefined ? await startPostgres(work) : usePostgres(url)
try {
  const about = `${machine}, ${Math.round(syncMicros(work))} µs to sync a page to the disk, database.writers ${writers}`
  report('distances', about, await measureAll(postgres))
} finally {
  await postgres.stop()
}
