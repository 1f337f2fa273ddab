import { basename, join } from 'node:path'
import { type LoadGenerator, startLoadGenerator } from './load/generator.js'
import type { Deliveries, Workload } from './load/requests.js'
import { ROUND_DEFAULTS, readOptions, roundOptions } from './options.js'
import { ALONE } from './rebuild/deliveries-meanwhile.js'
import { whileRebuilding } from './rebuild/rebuilding.js'
import { fill } from './renewals.js'
import { machineNow, report, type Section } from './results.js'
import { type Contestant, describeRounds, measureRounds, type RoundOptions } from './rounds.js'
import { startLatchkey } from './servers/latchkey.js'
import { query, type RunningPostgres, startPostgres, usePostgres } from './servers/postgres.js'
import { type RunningServer, startServer } from './servers/running-server.js'
import { API_KEY, createDaemonFolder } from './store/daemon-folder.js'
import { standingsTable } from './table.js'
import { together } from './together.js'
import { createWorkFolder, syncMicros } from './work-folder.js'

/*
 * How fast Latchkey takes deliveries in and answers questions on PostgreSQL, by one instance and by several, beside
 * what one writes on the first day, and beside what keeps the events of another payments service there, in one run.
 * On Linux: it tells what another process costs.
 *
 *   node --import ./scripts/typescript.js bench/postgres.ts [--rounds 3] [--requests 20000] [--warm-up 3000] [--connections 64] [--instances 2]
 *                               [--subscriptions 20000] [--folder F] [--url postgres://...: one that runs already]
 *                               [--against F: where another version of Latchkey is built]
 *                               [--stripe-sync F: after `npm install --prefix F @supabase/stripe-sync-engine`]
 */

const LATCHKEY = 'Latchkey'
const OBVIOUS = 'the obvious receiver'
const STRIPE_SYNC = 'stripe-sync-engine'
const WITHOUT_STRIPE_SYNC = `Without ${STRIPE_SYNC}: to compare with it, run npm install --prefix F @supabase/stripe-sync-engine, and name F with --stripe-sync.`

interface Rival extends Pick<Deliveries, 'sender'> {
  readonly name: string
  readonly server: RunningServer
  readonly databaseUrl: string
}

const machine = machineNow()
const { folder, url, against, stripeSync, numbers } = readOptions({
  ...ROUND_DEFAULTS,
  instances: 2,
  subscriptions: 20_000,
})
const options = roundOptions(numbers)
const { instances, subscriptions } = numbers

interface Part extends Partial<Pick<RoundOptions, 'warmUp' | 'requests'>> {
  readonly title: string
  readonly explanation: string
  readonly workload: Deliveries
}

const NEW_CUSTOMERS: Part = {
  title: 'Deliveries',
  explanation: 'Each is a signed event of its own, of about 1.1 kB, of a new customer.',
  workload: { kind: 'deliveries', returning: null },
}
const PARTS: readonly Part[] = [
  NEW_CUSTOMERS,
  {
    title: 'Renewals',
    explanation: `Each renews a random one of ${subscriptions} subscriptions.`,
    workload: { kind: 'renewals', subscriptions },
  },
  {
    title: 'One subscription',
    explanation: 'All renew one and the same, whose history grows with each.',
    workload: { kind: 'renewals', subscriptions: 1 },
    warmUp: 100,
    requests: 400,
  },
]

/** Daemons that serve one database, as one server. */
async function startInstances(
  use: (server: RunningServer) => RunningServer,
  databaseUrl: string,
  count: number,
  project?: string,
): Promise<RunningServer> {
  const started: RunningServer[] = []
  for (let i = 1; i <= count; i += 1) {
    const { configFile } = createDaemonFolder(join(work, basename(databaseUrl), String(i)), databaseUrl)
    started.push(use(await startLatchkey(configFile, project)))
  }
  const [first, ...beside] = started as [RunningServer, ...RunningServer[]]
  return { ...first, beside }
}

async function measure(
  load: LoadGenerator,
  rivals: readonly Rival[],
  { title, explanation, workload, ...own }: Part,
): Promise<Section> {
  const contestants: Contestant[] = rivals.map(({ name, server, sender }) => ({
    name,
    server,
    workload: { ...workload, ...(sender && { sender }) },
  }))
  const partOptions = { ...options, ...own }
  const standings = await measureRounds(load, contestants, partOptions)
  return {
    title,
    explanation: `${describeRounds(partOptions)} ${explanation} Every answer was 200, and every event was stored.`,
    table: standingsTable(standings, [OBVIOUS, ...(stripeSync === undefined ? [] : [STRIPE_SYNC])]),
    data: standings,
  }
}

/** What only Latchkey answers. */
async function measureQuestions(load: LoadGenerator, rivals: readonly Rival[]): Promise<Section> {
  const customers = 2 * subscriptions
  const workload = { kind: 'questions', customers, apiKey: API_KEY } as const
  const contestants = rivals.filter(({ name }) => name.startsWith(LATCHKEY))
  const standings = await measureRounds(
    load,
    contestants.map(({ name, server }) => ({ name, server, workload })),
    options,
  )
  return {
    title: 'Questions',
    explanation: `${describeRounds(options)} Each asks about a random one of ${customers} customers, half of whom subscribe.`,
    table: standingsTable(standings, [LATCHKEY]),
    data: standings,
  }
}

/** Deliveries while one instance compares all that is stored with its events, again and again, and while it does not. */
async function measureMeanwhile(load: LoadGenerator, rivals: readonly Rival[]): Promise<Section> {
  const server = rivals.find(({ name }) => name === LATCHKEY)?.server
  if (server === undefined) throw new Error('No instance was started.')
  const workload: Workload = { kind: 'renewals', subscriptions }
  let verified = 0
  const note = () => {
    verified += 1
  }
  const standings = await measureRounds(
    load,
    [
      { name: ALONE, server, workload },
      {
        name: 'during a verification',
        server,
        workload,
        meanwhile: (work) => whileRebuilding(server, '/rebuild/verification', note, work),
      },
    ],
    options,
  )
  return {
    title: 'Deliveries meanwhile',
    explanation: `${describeRounds(options)} One instance. ${verified} verifications ended meanwhile.`,
    table: standingsTable(standings, [ALONE]),
    data: standings,
  }
}

/** How many deliveries a part makes to each. */
function sentIn({ warmUp = options.warmUp, requests = options.requests }: Partial<RoundOptions>): number {
  return options.rounds * (warmUp + requests)
}

/** What was acknowledged must be there. */
async function assertStored({ name, databaseUrl, sender }: Rival): Promise<void> {
  const tables = sender === 'stripe' ? ['stripe.payment_intents', 'stripe.subscriptions'] : ['events']
  const counts = tables.map((table) => `(select count(*) from ${table})`).join(' + ')
  const row = await query<{ count: string }>(databaseUrl, `select ${counts} as count`)
  const stored = Number(row?.count)
  if (sender === 'stripe') {
    // A copy of Stripe's objects keeps no events: of new customers, two or fewer tell of each object.
    const least = subscriptions + sentIn(NEW_CUSTOMERS) / 2
    if (stored < least) throw new Error(`${name} holds ${stored} objects instead of ${least} or more.`)
    return
  }
  const sent = PARTS.reduce((sum, part) => sum + sentIn(part), subscriptions)
  if (stored !== sent) throw new Error(`${name} holds ${stored} events instead of ${sent}.`)
}

async function measureAll(postgres: RunningPostgres): Promise<Section[]> {
  return together(async (use) => {
    const load = use(startLoadGenerator())
    const rivals: Rival[] = []
    const enter = async (
      name: string,
      database: string,
      start: (url: string) => Promise<RunningServer>,
      sender?: 'stripe',
    ) => {
      const databaseUrl = await postgres.createDatabase(database)
      const server = { ...(await start(databaseUrl)), databasePid: postgres.pid }
      rivals.push({ name, server, databaseUrl, ...(sender && { sender }) })
    }
    await enter(OBVIOUS, 'obvious', async (url) => use(await startServer('obvious-receiver', url)))
    if (against !== undefined)
      await enter(`${LATCHKEY}, the other`, 'other', (url) => startInstances(use, url, 1, against))
    for (let count = 1; count <= instances; count += 1) {
      const name = count === 1 ? LATCHKEY : `${LATCHKEY}, ${count} instances`
      await enter(name, `latchkey_${count}`, (url) => startInstances(use, url, count))
    }
    if (stripeSync === undefined) console.error(WITHOUT_STRIPE_SYNC)
    else
      await enter(
        STRIPE_SYNC,
        'stripe_sync',
        async (url) => use(await startServer('stripe-sync', url, stripeSync)),
        'stripe',
      )
    for (const { server, sender } of rivals)
      await fill(load, server, { subscriptions, events: 1, ...(sender && { sender }) }, options.connections)
    const sections: Section[] = []
    for (const part of PARTS) sections.push(await measure(load, rivals, part))
    for (const rival of rivals) await assertStored(rival)
    sections.push(await measureMeanwhile(load, rivals))
    sections.push(await measureQuestions(load, rivals))
    return sections
  })
}

const work = createWorkFolder(folder)
const postgres = url === undefined ? await startPostgres(work) : usePostgres(url)
try {
  report(
    'postgres',
    `${machine}, ${Math.round(syncMicros(work))} µs to sync a page to the disk`,
    await measureAll(postgres),
  )
} finally {
  await postgres.stop()
}
