/* What worlds in virtual time are built on: one daemon on SQLite, in this process. */

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { migrate } from '../../src/store/migrate.js'
import { openDatabase } from '../../src/store/sqlite/dialect.js'
import { createFolder } from '../setup/create-folder.js'
import { mixed, reseed } from './machine/chance.js'
import { restartNetwork } from './machine/network.js'
import { provideThreads } from './machine/threads.js'
import { BEGINNING, elapsed, pass, settled, standStill, until } from './machine/virtual-time.js'
import { startDaemonHere } from './parts/daemon-here.js'
import { DAEMON_THREADS } from './parts/daemon-threads.js'
import type { SimulatedService } from './parts/service.js'
import { DAY_MS, HOUR_MS, SOON_MS } from './story.js'
import { type Ground, MINUTE_MS } from './world.js'

let template: string | null = null

/** Made once: what each world begins with. */
export async function prepareWorlds(): Promise<() => void> {
  const folder = createFolder()
  template = join(folder, 'template.db')
  const db = openDatabase(template, { readOnly: false })
  const done = migrate(db).then(() => db.destroy())
  await until('the schema', done, MINUTE_MS)
  provideThreads(DAEMON_THREADS)
  return () => rmSync(folder, { recursive: true, force: true })
}

export async function virtualGround(seed: number): Promise<Ground> {
  restartNetwork()
  reseed(mixed(seed, 3))
  const schema = template
  if (schema === null) throw new Error('prepareWorlds comes first')
  return {
    url: 'http://127.0.0.1:4680',
    serviceOptions: { from: BEGINNING },
    startDaemon: (options) => startDaemonHere({ ...options, template: schema }),
    reach,
    // What was held back is at most a day late.
    catchUp: (service) => reach(service, elapsed() + DAY_MS + HOUR_MS),
    mayRunAhead: false,
    expectedErrors: [],
    // With the world, its network goes.
    atEnd() {},
    async end() {
      // What libraries keep between requests ends by itself: the next world finds nothing of it.
      await pass(10 * MINUTE_MS)
      await settled()
    },
  }
}

/** The machine stands still if it is long. */
async function reach({ sandbox }: SimulatedService, at: number): Promise<void> {
  const left = at - elapsed()
  if (left > SOON_MS) standStill(left)
  else if (left > 0) await pass(left)
  await until('what fell due at the service', sandbox.advance({ to: Date.now() }), DAY_MS)
}
