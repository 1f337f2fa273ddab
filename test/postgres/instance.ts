/* One of several daemons on a PostgreSQL, as a process that is killed, stopped and cut off. */

import { setTimeout as wait } from 'node:timers/promises'
import { type Exit, kill, type ServedDaemon, serve, whenTestEnds } from '../world.js'
import { openWay, urlBy } from './way.js'

export const FAULTS = ['kill', 'stop', 'cut', 'freeze'] as const
/** `slow`: the way to the database is, and so transactions take long. */
export type Fault = (typeof FAULTS)[number] | 'slow'

export interface InstanceOptions {
  /** What the database knows it by. */
  readonly name: string
  /** Where its config is. */
  readonly folder: string
  readonly databaseUrl: string
  /** Takes what ends it; by default it ends with the test. */
  readonly atEnd?: typeof whenTestEnds
}

export interface Instance {
  readonly name: string
  readonly folder: string
  /** The newest one. */
  daemon(): ServedDaemon
  /** All that have served here, one after the other. */
  readonly daemons: readonly ServedDaemon[]
  /** When it stood still: from the signal that stopped it to the one that let it go on. */
  readonly stops: { readonly from: number; until: number }[]
  /** Resolves once it is over, and the daemon serves. A killed one is started again after a second at most. */
  fail(fault: Fault, ms: number): Promise<void>
  /** Has the daemon stop in order, and starts it again. @returns how the old one ended */
  restart(): Promise<Exit>
}

export async function startInstance(options: InstanceOptions): Promise<Instance> {
  const { name, folder, databaseUrl, atEnd = whenTestEnds } = options
  const toDatabase = await openWay(() => Number(new URL(databaseUrl).port), undefined, atEnd)
  const url = new URL(urlBy(toDatabase, databaseUrl))
  // What triggers and lists of connections in the database show.
  url.searchParams.set('application_name', name)
  const start = () => serve(folder, { LATCHKEY_DATABASE_URL: url.href }, undefined, atEnd)
  const daemons = [await start()]
  const daemon = () => daemons.at(-1) as ServedDaemon
  const stops: Instance['stops'] = []

  return {
    name,
    folder,
    daemon,
    daemons,
    stops,
    async fail(fault, ms) {
      if (fault === 'kill') {
        await kill(daemon())
        await wait(Math.min(ms, 1_000))
        daemons.push(await startAgain(start))
      } else if (fault === 'stop') {
        const stop = { from: Date.now(), until: Number.POSITIVE_INFINITY }
        stops.push(stop)
        daemon().signal('SIGSTOP')
        await wait(ms)
        stop.until = Date.now()
        daemon().signal('SIGCONT')
      } else {
        toDatabase.become(fault === 'freeze' ? 'frozen' : fault)
        await wait(ms)
        toDatabase.become('open')
      }
    },
    async restart() {
      daemon().signal('SIGTERM')
      const exit = await daemon().exit
      daemons.push(await startAgain(start))
      return exit
    },
  }
}

/** As a supervisor would: the machine may be busy, and the database be restarted meanwhile. */
async function startAgain(start: () => Promise<ServedDaemon>, left = 20): Promise<ServedDaemon> {
  try {
    return await start()
  } catch (error) {
    if (left === 0) throw error
    await wait(500)
    return startAgain(start, left - 1)
  }
}
