import { join } from 'node:path'
import { startLoadGenerator } from './load/generator.js'
import type { Section } from './results.js'
import { describeRounds, measureRounds, type RoundOptions } from './rounds.js'
import { anyStoredCustomer } from './sample/customers.js'
import { startLatchkey } from './servers/latchkey.js'
import { type RunningServer, startServer } from './servers/running-server.js'
import { API_KEY } from './store/daemon-folder.js'
import { generateStore } from './store/generate.js'
import { standingsTable } from './table.js'
import { together } from './together.js'

const CUSTOMERS = 10_000
const EVENTS_PER_CUSTOMER = 4

/** Measures how fast the question of who has access is answered, beside servers that answer a constant. */
export function measureReads(folder: string, options: RoundOptions): Promise<Section> {
  return together(async (use) => {
    const size = { customers: CUSTOMERS, eventsPerCustomer: EVENTS_PER_CUSTOMER }
    const store = await generateStore(join(folder, 'reads'), size)
    const load = use(startLoadGenerator())
    const latchkey = use(await startLatchkey(store.configFile))
    const answer = await askForAccess(latchkey, CUSTOMERS)
    const servers = {
      'node:http, a constant': use(await startServer('bare-http', answer)),
      'Express, a constant': use(await startServer('bare-express', answer)),
      Latchkey: latchkey,
    }
    const workload = { kind: 'questions', customers: CUSTOMERS, apiKey: API_KEY } as const
    const contestants = Object.entries(servers).map(([name, server]) => ({ name, server, workload }))
    const standings = await measureRounds(load, contestants, options)
    return {
      title: 'Questions',
      explanation: `${describeRounds(options)} Each asks about a random one of ${CUSTOMERS} customers; an answer has ${answer.length} bytes.`,
      table: standingsTable(standings, ['node:http, a constant', 'Express, a constant']),
      data: standings,
    }
  })
}

/** The answer about a random customer. Throws unless they have access: everybody in a generated store has. */
export async function askForAccess({ port }: RunningServer, customers: number): Promise<string> {
  const { key } = anyStoredCustomer(customers)
  const url = `http://127.0.0.1:${port}/entitlements/cus_${key}`
  const response = await fetch(url, { headers: { Authorization: `Bearer ${API_KEY}` } })
  const text = await response.text()
  const { entitlements } = JSON.parse(text) as { entitlements?: { active: boolean }[] }
  if (entitlements?.[0]?.active !== true) throw new Error(`cus_${key} should have access: ${text}`)
  return text
}
