import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { createFolder } from '../setup/create-folder.js'
import { newPostgres } from '../setup/postgres-server.js'
import { whenTestEnds } from '../world.js'

/** A PostgreSQL for one test alone. */
export interface OwnServer {
  readonly url: string
  /** `stop`: as its administrator would; `crash`: without a word to anybody, so that it recovers at its next start. */
  restart(how: 'stop' | 'crash', downMs: number): Promise<void>
}

/** @param atEnd takes what ends it; by default it ends with the test */
export async function startOwnServer(atEnd = whenTestEnds): Promise<OwnServer> {
  const folder = createFolder()
  const { postgres, data, url } = await newPostgres(folder)
  await postgres.start()
  atEnd(async () => {
    await postgres.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  return {
    url,
    async restart(how, downMs) {
      const [pid] = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')
      if (how === 'crash') process.kill(Number(pid), 'SIGQUIT')
      await postgres.stop()
      await wait(downMs)
      await postgres.start()
    },
  }
}
