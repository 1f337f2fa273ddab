/* Two daemons as processes of the built program, on one PostgreSQL. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import pLimit from 'p-limit'
import pg from 'pg'
import { type Instance, type Fault as InstanceFault, startInstance } from '../../postgres/instance.js'
import type { AtEnd } from '../../world.js'
import type { Chance } from '../machine/chance.js'
import { lasting, untilHolds } from '../machine/time.js'
import { trace } from '../machine/trace.js'
import { HOUR_MS } from '../story.js'
import { BrokenPromise, OPERATOR_KEY } from '../world.js'
import type { Daemon, DaemonOptions, LogLine } from './daemon.js'

interface Options extends DaemonOptions {
  readonly databaseUrl: string
  /** Hears where both serve, once they do. */
  readonly onServing: (both: readonly Instance[]) => void
  readonly atEnd: AtEnd
}

const BEGUN_WITHIN_MS = 400
const READ_LOG_EVERY_MS = 500
const RELOAD_AGAIN_MS = 250
const RELOADS = 80

/** One of them, and what happens to it: one thing after the other. */
interface Troubled {
  readonly instance: Instance
  readonly inTurn: ReturnType<typeof pLimit>
}

export async function startDaemonProcesses(options: Options): Promise<Daemon> {
  const { folder, config, onLog, onFailure, databaseUrl, onServing, atEnd } = options
  const names = ['one', 'two']
  const writeConfigs = (): void => {
    for (const name of names) writeFileSync(join(folder, name, 'config.json'), JSON.stringify(config()))
  }
  for (const name of names) mkdirSync(join(folder, name))
  writeConfigs()
  const start = (name: string) => startInstance({ name, folder: join(folder, name), databaseUrl, atEnd })
  const both = (await Promise.all(names.map(start))).map(
    (instance): Troubled => ({ instance, inTurn: pLimit(1) }),
  )
  onServing(both.map(({ instance }) => instance))
  // Each has a process group of its own, which no signal to this process reaches.
  const killAll = (): void => {
    for (const { instance } of both) instance.daemon().signal('SIGKILL')
  }
  process.once('exit', killAll)
  const reading = setInterval(readLogs, READ_LOG_EVERY_MS)

  /** How far the log of each process was read. */
  const readUpTo = new Map<object, number>()
  function readLogs(): void {
    for (const { instance } of both) {
      for (const daemon of instance.daemons) {
        const from = readUpTo.get(daemon) ?? 0
        const end = daemon.stdout().lastIndexOf('\n') + 1
        readUpTo.set(daemon, end)
        for (const text of daemon.stdout().slice(from, end).split('\n')) {
          if (text === '') continue
          const line = JSON.parse(text) as LogLine
          trace(`${instance.name} log ${line.level} ${line.msg}`)
          onLog(line)
        }
      }
    }
  }

  const happens = (fault: InstanceFault, leastMs: number) => async (chance: Chance) => {
    const { instance, inTurn } = chance.pick(both)
    const ms = leastMs + chance.below(lasting(HOUR_MS))
    // In the middle of what the other steps of its moment begin.
    await wait(chance.below(BEGUN_WITHIN_MS))
    trace(`${instance.name}: ${fault} for ${ms} ms`)
    await inTurn(() => instance.fail(fault, ms))
  }

  async function restart({ instance, inTurn }: Troubled): Promise<void> {
    await inTurn(async () => {
      trace(`${instance.name}: restart`)
      const { code, stderr } = await instance.restart()
      if (code !== 0) onFailure(new BrokenPromise('a daemon stops in order', `${code} ${stderr}`))
    })
  }

  async function reload({ instance }: Troubled): Promise<void> {
    const headers = { Authorization: `Bearer ${OPERATOR_KEY}`, 'Content-Type': 'application/json' }
    for (let left = RELOADS; left > 0; left -= 1) {
      const asked = { method: 'POST', headers, body: '{}' }
      const answer = await fetch(`${instance.daemon().url}/reload`, asked).catch(() => null)
      if (answer?.ok) return
      // Refused, and not only too early or too late.
      if (answer !== null && answer.status < 500) throw new Error(await answer.text())
      await wait(RELOAD_AGAIN_MS)
    }
  }

  async function assertReady({ instance }: Troubled): Promise<void> {
    const { url, exit, stderr } = instance.daemon()
    const ended = await Promise.race([exit, wait(0, null)])
    if (ended !== null) onFailure(new BrokenPromise('a daemon goes on', `${ended.code} ${stderr()}`))
    const { status } = await fetch(`${url}/readyz`)
    if (status !== 200) throw new BrokenPromise('a daemon serves', `${instance.name} answered ${status}`)
  }

  return {
    faults: {
      kill: happens('kill', 0),
      async restart(chance) {
        await restart(chance.pick(both))
      },
      'stand still': happens('stop', 200),
      'cut off': happens('cut', 20),
      'held up': happens('freeze', 200),
      'far away': happens('slow', 1_000),
    },
    clockSetAt: [],
    isClockRight: () => true,
    async restart() {
      await Promise.all(both.map(restart))
    },
    async reload() {
      writeConfigs()
      await Promise.all(both.map(reload))
    },
    async heal() {
      for (const one of both) {
        await one.inTurn(() => {})
        await untilHolds(() => assertReady(one))
      }
    },
    async *stored() {
      const client = new pg.Client({ connectionString: databaseUrl })
      await client.connect()
      try {
        const tables = await client.query<{ name: string }>(
          `select quote_ident(tablename) as name from pg_tables where schemaname = 'public'`,
        )
        for (const { name } of tables.rows) {
          const { rows } = await client.query<{ text: string }>(`select one::text as text from ${name} one`)
          yield Buffer.from(rows.map(({ text }) => readable(text)).join('\n'))
        }
      } finally {
        await client.end()
      }
    },
    async end() {
      // One that is being started again would outlive its world.
      for (const { inTurn } of both) await inTurn(() => {})
      clearInterval(reading)
      process.off('exit', killAll)
    },
  }
}

/** With the bytes of its columns as text. */
function readable(row: string): string {
  return row.replace(/\\+x((?:[0-9a-f]{2})+)/g, (_, hex: string) => Buffer.from(hex, 'hex').toString())
}
