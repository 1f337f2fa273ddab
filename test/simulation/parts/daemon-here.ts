/* The daemon on SQLite as a process that can be started, stopped and killed, on files that outlive it. */

import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { loadConfig } from '../../../src/config/load.js'
import { startConfigured } from '../../../src/daemon/configured.js'
import { withoutGaps, withoutGapsInLog } from '../../setup/bytes-in-use.js'
import { closeLeft, type Disk, giveDisk } from '../machine/disk.js'
import { createProcess, currentProcess, kill, runAs, type SimulatedProcess } from '../machine/processes.js'
import { trace } from '../machine/trace.js'
import { elapsed, later, settled, wallTime } from '../machine/virtual-time.js'
import type { Daemon, DaemonOptions, LogLine } from './daemon.js'

export interface DaemonHostOptions extends DaemonOptions {
  /** An empty store of this schema, so that not every world has to migrate one. */
  readonly template: string
}

type Running = Awaited<ReturnType<typeof startConfigured>>

/** After a death or a failed start, the system starts it again. */
const START_AGAIN_MS = 5_000

/** What a kill leaves of the store: of its log, only what was committed counts. */
const KEPT = ['latchkey.db', 'latchkey.db-wal', 'latchkey.db.erasures']

export async function startDaemonHere(options: DaemonHostOptions): Promise<Daemon> {
  const { folder, template, config, onLog, onFailure } = options
  let lives = 0
  let isOver = false
  let running: Running | null = null
  let life: SimulatedProcess | null = null
  /** Resolves at the end of this life: of what it had begun, nothing goes on. */
  let over = Promise.withResolvers<void>()
  const disk: Disk = { isFull: false, onStatement: () => {} }
  /** By how much its clock is wrong. */
  let skew = 0
  /** When its clock was set, in milliseconds since the world began. */
  const clockSetAt: number[] = []
  const folderOf = (number: number): string => join(folder, String(number))
  const databaseIn = (number: number): string => join(folderOf(number), 'data', 'latchkey.db')
  const makeFolder = (number: number): void =>
    void mkdirSync(join(folderOf(number), 'data'), { recursive: true })
  makeFolder(0)
  copyFileSync(template, databaseIn(0))

  /** Dies where it stands. What it committed is what the next one finds. */
  function die(): void {
    const victim = life
    if (victim === null || victim.isDead) return
    trace('the daemon is killed')
    makeFolder(lives + 1)
    for (const name of KEPT) {
      const from = join(folderOf(lives), 'data', name)
      if (existsSync(from)) copyFileSync(from, join(folderOf(lives + 1), 'data', name))
    }
    const left = folderOf(lives)
    lives += 1
    kill(victim)
    running = null
    life = null
    disk.onStatement = () => {}
    over.resolve()
    void settled().then(() => {
      closeLeft(victim)
      rmSync(left, { recursive: true, force: true })
    })
    startSoon()
  }

  /** One start or stop at a time. */
  let turn: Promise<void> = Promise.resolve()
  function inTurn(work: () => Promise<void>): Promise<void> {
    const done = turn.then(work)
    turn = done.catch(() => {})
    return done
  }

  function startSoon(): void {
    later(START_AGAIN_MS, null, () => void inTurn(start).catch(onFailure))
  }

  /** Resolves once it serves, or is dead. */
  async function start(): Promise<void> {
    if (life !== null || isOver) return
    const own = createProcess(`daemon ${lives}`)
    life = own
    giveDisk(own, disk)
    const path = join(folderOf(lives), 'config.json')
    over = Promise.withResolvers()
    const starting = runAs(own, () =>
      startConfigured({
        load: () => loadConfig({ path, value: config(), env: {} }),
        logTo: {
          write(text) {
            if (own.isDead) return
            const line = JSON.parse(text) as LogLine
            trace(`log ${line.level} ${line.msg}`)
            onLog(line)
          },
        },
        clock: () => wallTime() + skew,
        version: 'simulated',
        stop: () => {},
      }),
    ) as Promise<Running>
    const started = starting.then(
      (one) => {
        if (!own.isDead) running = one
      },
      (error: unknown) => {
        if (own.isDead) return
        life = null
        kill(own)
        closeLeft(own)
        if (!disk.isFull) throw error
        trace('the daemon could not start')
        startSoon()
      },
    )
    await Promise.race([started, over.promise])
  }

  /** As SIGTERM does. */
  async function stop(): Promise<void> {
    const [own, stopping] = [life, running]
    if (own === null || stopping === null) return
    const stopped = (runAs(own, () => stopping.daemon.stop()) as Promise<void>).then(
      () => {
        if (own.isDead) return
        kill(own)
        closeLeft(own)
        running = null
        life = null
        over.resolve()
      },
      (error: unknown) => {
        if (!own.isDead) throw error
      },
    )
    await Promise.race([stopped, over.promise])
  }

  function setSkew(ms: number): void {
    if (skew !== ms) clockSetAt.push(elapsed())
    skew = ms
  }

  /** Right before one of its next statements. */
  function dieWithin(statements: number): void {
    let left = statements
    disk.onStatement = () => {
      left -= 1
      if (left <= 0 && currentProcess() === life) die()
    }
  }

  async function restart(): Promise<void> {
    await inTurn(stop)
    await inTurn(start)
  }

  await inTurn(start)
  return {
    faults: {
      async kill() {
        die()
        await inTurn(start)
      },
      async 'kill at a statement'(chance) {
        dieWithin(1 + chance.below(200))
      },
      restart,
      async 'disk full'(chance) {
        disk.isFull = true
        await new Promise((resolve) => setTimeout(resolve, chance.below(20_000)))
        disk.isFull = false
      },
      async 'clock set'(chance) {
        setSkew(chance.below(7_200_000) - 3_600_000)
      },
    },
    clockSetAt,
    isClockRight: () => skew === 0,
    restart,
    /** As SIGHUP does. */
    async reload() {
      const [own, reloading] = [life, running]
      if (own === null || reloading === null) return
      await Promise.race([runAs(own, () => reloading.reload()), over.promise])
    },
    async heal() {
      disk.isFull = false
      disk.onStatement = () => {}
      setSkew(0)
      if (running === null) await inTurn(start)
    },
    async *stored() {
      const bytesOf = (suffix: string) => readFileSync(`${databaseIn(lives)}${suffix}`, { flag: 'a+' })
      // A row that moved may leave a copy in a gap until the file is compacted, as the documents say.
      yield withoutGaps(bytesOf(''))
      yield withoutGapsInLog(bytesOf('-wal'))
      yield bytesOf('.erasures')
    },
    async end() {
      isOver = true
      die()
    },
  }
}
