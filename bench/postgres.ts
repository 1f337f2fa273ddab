import { join } from 'node:path'
import { type LoadGenerator, startLoadGenerator } from './load/generator.js'
import type { Workload } from './load/requests.js'
import { ROUND_DEFAULTS, readOptions, roundOptions } from './options.js'
import { fill } from './renewals.js'
import { machineNow, report, type Section } from './results.js'
import { type Contestant, describeRounds, measureRounds } from './rounds.js'
import { startLatchkey } from './servers/latchkey.js'
import { query, type RunningPostgres, startPostgres, usePostgres } from './servers/postgres.js'
import { type RunningServer, startServer } from './servers/running-server.js'
import { createDaemonFolder } from './store/daemon-folder.js'
import { standingsTable } from './table.js'
import { together } from './together.js'
import { createWorkFolder } from './work-folder.js'

/*
 * How fast Latchkey takes deliveries in on PostgreSQL, by one instance and by several, beside what one writes on the
 * first day, and beside what keeps the events of another payments service in PostgreSQL, in the same run.
 * On Linux: it tells what another process costs.
 *
 *   node dist/bench/postgres.js [--rounds 3] [--requests 20000] [--warm-up 3000] [--connections 64] [--instances 2]
 *                               [--subscriptions 20000] [--folder F] [--url postgres://...: one that runs already]
 *                               [--stripe-sync F: after `npm install --prefix F @supabase/stripe-sync-engine`]
 */

const OBVIOUS = 'the obvious receiver'

interface Rival {
  readonly name: string
  readonly server: RunningServer
  readonly databaseUrl: string
}

const machine = machineNow()
const { folder, url, numbers } = readOptions({ ...ROUND_DEFAULTS, instances: 2, subscriptions: 20_000 })
const options = roundOptions(numbers)
const { instances, subscriptions } = numbers

/** Daemons that serve one database, as one server. */
async function startInstances(
  use: (server: RunningServer) => RunningServer,
  databaseUrl: string,
  count: number,
): Promise<RunningServer> {
  const started: RunningServer[] = []
  for (let i = 1; i <= count; i += 1) {
    const { configFile } = createDaemonFolder(join(work, `${count}-${i}`), databaseUrl)
    started.push(use(await startLatchkey(configFile)))
  }
  const [first, ...beside] = started as [RunningServer, ...RunningServer[]]
  return { ...first, beside }
}

async function measure(
  load: LoadGenerator,
  rivals: readonly Rival[],
  workload: Workload,
  what: { readonly title: string; readonly explanation: string },
): Promise<Section> {
  const contestants: Contestant[] = rivals.map(({ name, server }) => ({ name, server, workload }))
  const standings = await measureRounds(load, contestants, options)
  return {
    title: what.title,
    explanation: `${describeRounds(options)} ${what.explanation} Every answer was 200, and every event was stored.`,
    table: standingsTable(standings, [OBVIOUS]),
    data: standings,
  }
}

/** What was acknowledged must be there. */
async function assertStored({ name, databaseUrl }: Rival, expected: number): Promise<void> {
  const row = await query<{ count: string }>(databaseUrl, 'select count(*) from events')
  if (Number(row?.count) !== expected)
    throw new Error(`${name} stored ${row?.count} events instead of ${expected}.`)
}

async function measureAll(postgres: RunningPostgres): Promise<Section[]> {
  return together(async (use) => {
    const load = use(startLoadGenerator())
    const rivals: Rival[] = []
    const enter = async (name: string, database: string, start: (url: string) => Promise<RunningServer>) => {
      const databaseUrl = await postgres.createDatabase(database)
      const server = { ...(await start(databaseUrl)), databasePid: postgres.pid }
      rivals.push({ name, server, databaseUrl })
    }
    await enter(OBVIOUS, 'obvious', async (url) => use(await startServer('obvious-receiver', url)))
    for (let count = 1; count <= instances; count += 1) {
      const name = count === 1 ? 'Latchkey' : `Latchkey, ${count} instances`
      await enter(name, `latchkey_${count}`, (url) => startInstances(use, url, count))
    }
    const size = { subscriptions, events: 1 }
    for (const { server } of rivals) await fill(load, server, size, options.connections)
    const sections = [
      await measure(
        load,
        rivals,
        { kind: 'deliveries', returning: null },
        {
          title: 'Deliveries',
          explanation: 'Each is a signed event of its own, of about 1.1 kB, of a new customer.',
        },
      ),
      await measure(
        load,
        rivals,
        { kind: 'renewals', subscriptions },
        {
          title: 'Renewals',
          explanation: `Each renews a random one of ${subscriptions} subscriptions.`,
        },
      ),
    ]
    const sent = subscriptions + sections.length * options.rounds * (options.warmUp + options.requests)
    for (const rival of rivals) await assertStored(rival, sent)
    return sections
  })
}

const work = createWorkFolder(folder)
const postgres = url === undefined ? await startPostgres(work) : usePostgres(url)
try {
  report('postgres', machine, await measureAll(postgres))
} finally {
  await postgres.stop()
}
