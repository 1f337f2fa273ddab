import { join } from 'node:path'
import { assertStored } from './count-events.js'
import { startLoadGenerator } from './load/generator.js'
import type { Section } from './results.js'
import { describeRounds, measureRounds, type RoundOptions } from './rounds.js'
import { startLatchkey } from './servers/latchkey.js'
import { startServer } from './servers/running-server.js'
import { createDaemonFolder } from './store/daemon-folder.js'
import { standingsTable } from './table.js'
import { together } from './together.js'

const ANSWER = JSON.stringify({ received: true })

/** Measures how fast signed deliveries are acknowledged, beside servers that do less for it. */
export function measureIngest(folder: string, options: RoundOptions): Promise<Section> {
  return together(async (use) => {
    const load = use(startLoadGenerator())
    const obviousFile = join(folder, 'obvious.db')
    const latchkey = createDaemonFolder(join(folder, 'ingest'))
    const servers = {
      'node:http, keeps nothing': use(await startServer('bare-http', ANSWER)),
      'Express, keeps nothing': use(await startServer('bare-express', ANSWER)),
      'the obvious receiver': use(await startServer('obvious-receiver', obviousFile)),
      Latchkey: use(await startLatchkey(latchkey.configFile)),
    }
    const workload = { kind: 'deliveries', returning: null } as const
    const contestants = Object.entries(servers).map(([name, server]) => ({ name, server, workload }))
    const standings = await measureRounds(load, contestants, options)

    const sent = options.rounds * (options.warmUp + options.requests)
    assertStored(obviousFile, sent)
    assertStored(latchkey.databaseFile, sent)
    return {
      title: 'Deliveries',
      explanation: `${describeRounds(options)} Each is a signed event of its own, of about 1.1 kB. Every answer was 200, and every event was stored.`,
      table: standingsTable(standings, ['Express, keeps nothing', 'the obvious receiver']),
      data: standings,
    }
  })
}
