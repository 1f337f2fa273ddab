/* The daemon as a process that can be started, stopped and killed, on files that outlive it. */

import { copyFileSync, existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { loadConfig } from '../../../src/config/load.js'
import { startConfigured } from '../../../src/daemon/configured.js'
import { closeLeft, type Disk, giveDisk } from '../machine/disk.js'
import { createProcess, currentProcess, kill, runAs, type SimulatedProcess } from '../machine/processes.js'
import { elapsed, later, settled, wallTime } from '../machine/time.js'
import { trace } from '../machine/trace.js'

export interface LogLine {
  readonly level: string
  readonly msg: string
  readonly [field: string]: unknown
}

export interface DaemonHostOptions {
  /** Where its folders go. */
  readonly folder: string
  /** An empty store of this schema, so that not every world has to migrate one. */
  readonly template: string
  /** Read at each start and reload. */
  readonly config: () => object
  readonly onLog: (line: LogLine) => void
  /** Hears why it could not start or stop. */
  readonly onFailure: (error: unknown) => void
}

type Running = Awaited<ReturnType<typeof startConfigured>>

/** After a death or a failed start, the system starts it again. */
const START_AGAIN_MS = 5_000

/** What a kill leaves of the store: of its log, only what was committed counts. */
const KEPT = ['latchkey.db', 'latchkey.db-wal', 'latchkey.db.erasures']

export type DaemonHost = ReturnType<typeof createDaemonHost>

export function createDaemonHost({ folder, template, config, onLog, onFailure }: DaemonHostOptions) {
  let lives = 0
  let isOver = false
  let running: Running | null = null
  let life: SimulatedProcess | null = null
  let whenOver: (() => void) | null = null
  const disk: Disk = { isFull: false, onStatement: () => {} }
  /** By how much its clock is wrong. */
  let skew = 0
  /** When its clock was set, in milliseconds since the world began. */
  const setAt: number[] = []
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
    whenOver?.()
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
    const over = new Promise<void>((resolve) => {
      whenOver = resolve
    })
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
    await Promise.race([started, over])
  }

  /** As SIGTERM does. */
  async function stop(): Promise<void> {
    const [own, stopping] = [life, running]
    if (own === null || stopping === null) return
    const over = new Promise<void>((resolve) => {
      whenOver = resolve
    })
    const stopped = (runAs(own, () => stopping.daemon.stop()) as Promise<void>).then(
      () => {
        if (own.isDead) return
        kill(own)
        closeLeft(own)
        running = null
        life = null
      },
      (error: unknown) => {
        if (!own.isDead) throw error
      },
    )
    await Promise.race([stopped, over])
  }

  return {
    disk,
    isRunning: () => running !== null,
    database: () => databaseIn(lives),
    setSkew(ms: number): void {
      if (skew !== ms) setAt.push(elapsed())
      skew = ms
    },
    clockSetAt: setAt as readonly number[],
    /** What its clock shows. */
    clock: () => wallTime() + skew,
    /** Whether its clock is right. */
    isRight: () => skew === 0,
    /** Resolves once it serves, or is dead. */
    start: () => inTurn(start),
    /** As SIGTERM does. */
    stop: () => inTurn(stop),
    /** As SIGHUP does. Rejects if the config is refused. */
    async reload(): Promise<void> {
      const [own, reloading] = [life, running]
      if (own === null || reloading === null) return
      const over = new Promise<void>((resolve) => {
        whenOver = resolve
      })
      await Promise.race([runAs(own, () => reloading.reload()), over])
    },
    die,
    /** For good. */
    end(): void {
      isOver = true
      die()
    },
    /** Right before one of its next statements. */
    dieWithin(statements: number): void {
      let left = statements
      disk.onStatement = () => {
        left -= 1
        if (left <= 0 && currentProcess() === life) die()
      }
    },
    failure: (): Promise<unknown> | null => running?.daemon.failure ?? null,
  }
}
