/* Four daemons on one PostgreSQL, behind a balancer, each of which is killed, stopped and cut off at random. */

import { setTimeout as wait } from 'node:timers/promises'
import pLimit from 'p-limit'
import { onTestFinished } from 'vitest'
import { configuredFolder, databaseIn, standFor, temporaryFolder } from '../world.js'
import { FAULTS, type Instance, startInstance } from './instance.js'
import { type OwnServer, startOwnServer } from './own-server.js'
import { openWay, type Way } from './way.js'

/** From 0 up to 1, the same for the same seed (Park and Miller). */
export function randomFrom(seed: number): () => number {
  let state = (seed % 2_147_483_646) + 1
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

/** A request to a platform, by the instance that made it. Epoch milliseconds. */
export interface PlatformCall {
  readonly instance: string
  /** `PUT /api/v10/guilds/…`. */
  readonly line: string
  readonly from: number
  /** When it was answered, or its connection ended. */
  until: number
}

/** One daemon with its own ways to the database and to the platforms. */
export interface TroubledInstance extends Instance {
  /** Has it fail at random until the time, at least once, and serve again then. */
  trouble(random: () => number, until: number, longest: () => number): Promise<void>
}

export interface Chaos {
  readonly instances: readonly TroubledInstance[]
  readonly calls: readonly PlatformCall[]
  readonly faults: Record<(typeof FAULTS)[number], number>
  /** A folder whose commands use the database that all share. */
  readonly folder: string
  readonly server: OwnServer
  /** Of the balancer. */
  readonly url: string
}

/** @param configOf the config of each, by how it reaches the platforms at these ports */
export async function startChaos(
  configOf: (byWay: (port: number) => number) => object,
  platformPorts: readonly number[],
): Promise<Chaos> {
  const calls: PlatformCall[] = []
  /** One of them can always serve. */
  const inTrouble = pLimit(3)
  const faults = { kill: 0, stop: 0, cut: 0, freeze: 0 }
  const shared = temporaryFolder()
  const server = await startOwnServer()
  standFor(databaseIn(shared), { url: server.url, connections: 12, statementTimeoutMs: 30_000 })

  async function start(name: string): Promise<TroubledInstance> {
    const onSent = (data: Buffer) => {
      const line = /^[A-Z]+ \S+(?= HTTP)/.exec(data.toString('latin1'))?.[0]
      if (line === undefined) return undefined
      const call = { instance: name, line, from: Date.now(), until: Number.POSITIVE_INFINITY }
      calls.push(call)
      return () => {
        call.until = Math.min(call.until, Date.now())
      }
    }
    const ways = new Map<number, Way>()
    for (const port of platformPorts) ways.set(port, await openWay(() => port, onSent))
    const folder = configuredFolder(configOf((port) => ways.get(port)?.port ?? 0))
    const instance = await startInstance({ name, folder, databaseUrl: server.url })

    return {
      ...instance,
      async trouble(random, until, longest) {
        do {
          await wait(300 + random() * 4_000)
          const fault = FAULTS[Math.floor(random() * FAULTS.length)] ?? 'kill'
          const isLong = random() < 0.3
          const ms = isLong ? 16_000 + random() * 9_000 : 50 + random() * 3_000
          await inTrouble(() => {
            faults[fault] += 1
            return instance.fail(fault, Math.min(longest(), ms))
          })
        } while (Date.now() < until)
      },
    }
  }

  const instances = await Promise.all(['one', 'two', 'three', 'four'].map(start))
  return {
    instances,
    calls,
    faults,
    folder: shared,
    server,
    url: `http://127.0.0.1:${(await openBalancer(instances)).port}`,
  }
}

/** To each instance in turn, except those that were not ready twice in a row. */
async function openBalancer(instances: readonly Instance[]): Promise<Way> {
  const failures = new Map<Instance, number>()
  const stopping = new AbortController()
  onTestFinished(() => stopping.abort())
  async function look(instance: Instance): Promise<void> {
    while (!stopping.signal.aborted) {
      const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(2_500)])
      const answer = await fetch(`${instance.daemon().url}/readyz`, { signal }).catch(() => null)
      failures.set(instance, answer?.ok === true ? 0 : (failures.get(instance) ?? 0) + 1)
      await wait(250)
    }
  }
  for (const instance of instances) void look(instance)
  let turn = 0
  return openWay(() => {
    turn += 1
    const ready = instances.filter((one) => (failures.get(one) ?? 0) < 2)
    const next = ready[turn % ready.length]
    return next === undefined ? null : Number(new URL(next.daemon().url).port)
  })
}
