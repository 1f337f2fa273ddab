import { join } from 'node:path'
import { assertStored } from './count-events.js'
import { type LoadGenerator, startLoadGenerator } from './load/generator.js'
import type { Deliveries } from './load/requests.js'
import type { Section } from './results.js'
import { type Contestant, describeRounds, measureRounds, type RoundOptions } from './rounds.js'
import { type RunningDaemon, startLatchkey } from './servers/latchkey.js'
import { type RunningServer, startServer } from './servers/running-server.js'
import { createDaemonFolder } from './store/daemon-folder.js'
import { figure, markdownTable, ratio, standingsTable } from './table.js'
import { together } from './together.js'

const ANSWER = JSON.stringify({ received: true })
const SUBSCRIPTIONS = 20_000
/** Fewer where each has many events, which are all delivered before. */
const SUBSCRIPTIONS_WITH_HISTORY = 2_000
const EARLIER_EVENTS = [0, 12, 36]
const LONG_HISTORY = 1_000

interface Filling extends Pick<Deliveries, 'sender'> {
  readonly subscriptions: number
  /** Of each. */
  readonly events: number
}

/** Delivers the first events of every subscription, each by itself. */
export async function fill(
  load: LoadGenerator,
  server: RunningServer,
  { subscriptions, events, sender }: Filling,
  connections: number,
): Promise<number> {
  const workload = { kind: 'subscriptions', subscriptions, ...(sender && { sender }) } as const
  const count = subscriptions * events
  await load.measure(server, { workload, connections, warmUp: 1, requests: count - 1 })
  return count
}

/**
 * Measures renewals of random subscriptions, beside servers that do less for them.
 * @param other the folder of another build of the program, to be measured in the same run
 */
export function measureRenewals(
  folder: string,
  options: RoundOptions,
  other: string | undefined,
): Promise<Section> {
  return together(async (use) => {
    const load = use(startLoadGenerator())
    const obviousFile = join(folder, 'renewals-obvious.db')
    const latchkey = createDaemonFolder(join(folder, 'renewals'))
    const servers = {
      'Express, keeps nothing': use(await startServer('bare-express', ANSWER)),
      'the obvious receiver': use(await startServer('obvious-receiver', obviousFile)),
      ...(other !== undefined && {
        'the other Latchkey': use(
          await startLatchkey(createDaemonFolder(join(folder, 'renewals-other')).configFile, other),
        ),
      }),
      Latchkey: use(await startLatchkey(latchkey.configFile)),
    }
    const size = { subscriptions: SUBSCRIPTIONS, events: 1 }
    for (const server of Object.values(servers)) await fill(load, server, size, options.connections)
    const workload = { kind: 'renewals', subscriptions: SUBSCRIPTIONS } as const
    const contestants = Object.entries(servers).map(([name, server]) => ({ name, server, workload }))
    const standings = await measureRounds(load, contestants, options)
    const sent = SUBSCRIPTIONS + options.rounds * (options.warmUp + options.requests)
    assertStored(obviousFile, sent)
    assertStored(latchkey.databaseFile, sent)
    const others = Object.keys(servers).filter((name) => name !== 'Latchkey')
    return {
      title: 'Renewals',
      explanation: `${describeRounds(options)} Each renews a random one of ${SUBSCRIPTIONS} subscriptions. Every answer was 200, and every event was stored.`,
      table: standingsTable(standings, others),
      data: standings,
    }
  })
}

/** Measures renewals of subscriptions that have had so many events, and of one that has had a thousand. */
export function measureHistories(folder: string, options: RoundOptions): Promise<Section> {
  return together(async (use) => {
    const load = use(startLoadGenerator())
    const contestants: Contestant[] = []
    for (const earlier of EARLIER_EVENTS) {
      const server = use(
        await startLatchkey(createDaemonFolder(join(folder, `earlier-${earlier}`)).configFile),
      )
      const size = { subscriptions: SUBSCRIPTIONS_WITH_HISTORY, events: earlier + 1 }
      await fill(load, server, size, options.connections)
      const workload = { kind: 'renewals', subscriptions: SUBSCRIPTIONS_WITH_HISTORY } as const
      contestants.push({ name: `${earlier} earlier events`, server, workload })
    }
    // Few enough that the histories stay about as long as they are named.
    const requests = Math.min(options.requests, SUBSCRIPTIONS_WITH_HISTORY * 2)
    const standings = await measureRounds(load, contestants, { ...options, requests, warmUp: 500 })
    const long = use(await startLatchkey(createDaemonFolder(join(folder, 'earlier-many')).configFile))
    const newest = await measureLongHistory(load, long)
    const [base] = standings
    const rows = standings.map(({ name, median }) => ({
      sources: name,
      'requests/s': figure(median.requestsPerSecond),
      '× none earlier': ratio(median.requestsPerSecond, base?.median.requestsPerSecond ?? Number.NaN),
      'p50 ms': figure(median.p50Ms),
      'server µs': figure(median.serverMicros),
    }))
    return {
      title: 'Long histories',
      explanation: `Renewals of ${SUBSCRIPTIONS_WITH_HISTORY} subscriptions. The newest events of one with ${LONG_HISTORY}, one at a time: ${figure(newest)} ms each at the median.`,
      table: markdownTable(rows),
      data: { standings, newestOfLongMs: newest },
    }
  })
}

async function measureLongHistory(load: LoadGenerator, server: RunningDaemon): Promise<number> {
  await fill(load, server, { subscriptions: 1, events: LONG_HISTORY }, 64)
  const workload = { kind: 'renewals', subscriptions: 1 } as const
  const assignment = { workload, connections: 1, warmUp: 10, requests: 90 }
  return (await load.measure(server, assignment)).p50Ms
}
