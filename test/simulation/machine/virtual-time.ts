/*
 * Virtual time. Every timer of this process waits here, in one queue, and the world advances the clock when nothing else
 * is left to do.
 */

import { createRequire, syncBuiltinESMExports } from 'node:module'
import { currentProcess, runAs, type SimulatedProcess } from './processes.js'

const require = createRequire(import.meta.url)
const timers = require('node:timers') as Record<string, unknown>
const performanceHooks = require('node:perf_hooks') as Record<string, unknown>
const timersPromises = require('node:timers/promises') as Record<string, unknown>

/** The program's own, before they are replaced. */
const realImmediate = setImmediate
const RealDate = Date

/** The processor time of this process, in milliseconds: it has nothing to do with the world. */
export const processorTime = (): number => process.cpuUsage().user / 1_000

interface Waiting {
  at: number
  /** Of two at one instant, the one that was begun first goes first. */
  order: number
  readonly owner: SimulatedProcess | null
  readonly run: () => void
  isOver: boolean
}

/** Wherever a history begins. */
export const BEGINNING = RealDate.parse('2026-01-01T00:00:00.000Z')

let now = 0
let begun = 0
let queue: Waiting[] = []

function isBefore(one: Waiting, other: Waiting): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order)
}

function push(one: Waiting): void {
  let at = queue.push(one) - 1
  while (at > 0) {
    const parent = (at - 1) >> 1
    const above = queue[parent] as Waiting
    if (!isBefore(one, above)) break
    queue[at] = above
    at = parent
  }
  queue[at] = one
}

function pop(): Waiting | undefined {
  const first = queue[0]
  const last = queue.pop()
  if (first === undefined || last === undefined || queue.length === 0) return first
  let at = 0
  for (;;) {
    const left = at * 2 + 1
    if (left >= queue.length) break
    const right = left + 1
    const least =
      right < queue.length && isBefore(queue[right] as Waiting, queue[left] as Waiting) ? right : left
    if (!isBefore(queue[least] as Waiting, last)) break
    queue[at] = queue[least] as Waiting
    at = least
  }
  queue[at] = last
  return first
}

/** Has something happen so many milliseconds from now, as the work of a process. */
export function later(ms: number, owner: SimulatedProcess | null, run: () => void): Waiting {
  begun += 1
  const one = { at: now + ms, order: begun, owner, run, isOver: false }
  push(one)
  return one
}

/** Milliseconds since the world began. No process can set this clock. */
export const elapsed = (): number => now

/** What a right clock on the wall shows, in epoch milliseconds. */
export const wallTime = (): number => BEGINNING + now

/** Forgets all that waits, for another world. */
export function restartTime(): void {
  now = 0
  begun = 0
  queue = []
}

/** The machine stood still for so long: what is overdue comes next, each thing once. */
export function standStill(ms: number): void {
  now += ms
}

/** Resolves once nothing goes on at this instant: no microtask, no tick is left. */
export function settled(): Promise<void> {
  return new Promise((resolve) => realImmediate(resolve))
}

let happened = 0
/** How many things have happened since the process started: each is a turn of its own. */
export const turns = (): number => happened

/** When the next thing happens; null: nothing waits. */
export function nextAt(): number | null {
  while (queue[0]?.isOver || queue[0]?.owner?.isDead) pop()
  return queue[0]?.at ?? null
}

/** Has the next thing happen, and all that follows from it at once. All must be settled before it. */
async function step(): Promise<void> {
  if (nextAt() === null) return
  const one = pop() as Waiting
  now = Math.max(now, one.at)
  one.isOver = true
  happened += 1
  try {
    runAs(one.owner, one.run)
  } catch (error) {
    if (!one.owner?.isDead) throw error
  }
  await settled()
}

/** Nothing is left that could end what is waited for, or it takes too long. */
export class StuckError extends Error {
  constructor(what: string) {
    super(what)
    this.name = 'StuckError'
  }
}

/** Has time pass until a promise is settled. @param withinMs of virtual time */
export async function until<Value>(what: string, promise: Promise<Value>, withinMs: number): Promise<Value> {
  let isSettled = false
  const settle = (): void => {
    isSettled = true
  }
  promise.then(settle, settle)
  const end = now + withinMs
  for (await settled(); !isSettled; await step()) {
    const at = nextAt()
    if (at === null || at > end) throw new StuckError(`${what} has not ended within ${withinMs} ms`)
  }
  return promise
}

/** Has so much time pass, with everything that happens in it. */
export async function pass(ms: number): Promise<void> {
  const end = now + ms
  for (await settled(); (nextAt() ?? Number.POSITIVE_INFINITY) <= end; ) await step()
  now = Math.max(now, end)
}

// What a program finds instead of Node's own

type Callback = (...args: unknown[]) => void

/** One timer that a library shares among all who load it: it belongs to none of them. */
const SHARED = 'onTick'

/** What programs get for a timer. None ends before its world, so it does not matter which of them keep one alive. */
abstract class Handle {
  abstract close(): unknown

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  hasRef(): boolean {
    return true
  }

  [Symbol.dispose](): void {
    this.close()
  }
}

class Timer extends Handle {
  readonly #ms: number
  readonly #repeats: boolean
  readonly #run: () => void
  readonly #owner: SimulatedProcess | null
  #waiting: Waiting

  constructor(callback: Callback, ms: unknown, args: unknown[], repeats: boolean) {
    super()
    const asked = Math.trunc(Number(ms))
    this.#ms = asked >= 1 && asked < 2 ** 31 ? asked : 1
    this.#repeats = repeats
    this.#owner = callback.name === SHARED ? null : currentProcess()
    this.#run = () => {
      if (this.#repeats) this.#waiting = later(this.#ms, this.#owner, this.#run)
      callback(...args)
    }
    this.#waiting = later(this.#ms, this.#owner, this.#run)
  }

  close(): this {
    this.#waiting.isOver = true
    return this
  }

  refresh(): this {
    this.#waiting.isOver = true
    this.#waiting = later(this.#ms, this.#owner, this.#run)
    return this
  }

  [Symbol.toPrimitive](): number {
    return this.#waiting.order
  }
}

class Immediate extends Handle {
  readonly #waiting: Waiting

  constructor(callback: Callback, args: unknown[]) {
    super()
    this.#waiting = later(0, currentProcess(), () => callback(...args))
  }

  close(): void {
    this.#waiting.isOver = true
  }
}

function clear(timer: unknown): void {
  if (timer instanceof Handle) timer.close()
}

interface WaitOptions {
  readonly signal?: AbortSignal
}

function abortError({ reason }: AbortSignal): Error {
  return Object.assign(new Error('The operation was aborted', { cause: reason }), {
    name: 'AbortError',
    code: 'ABORT_ERR',
  })
}

function waiting<Value>(
  begin: (done: () => void) => { close(): unknown },
  value: Value,
  signal: AbortSignal | undefined,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(abortError(signal))
    const end = (): void => {
      timer.close()
      if (signal !== undefined) reject(abortError(signal))
    }
    const timer = begin(() => {
      signal?.removeEventListener('abort', end)
      resolve(value)
    })
    signal?.addEventListener('abort', end, { once: true })
  })
}

class VirtualDate extends RealDate {
  constructor(...args: unknown[]) {
    super(...((args.length === 0 ? [wallTime()] : args) as [number]))
  }

  static override now(): number {
    return wallTime()
  }
}

/** Sees nothing: how long the real process waits or cleans up is nobody's business here, and each life would add one. */
class NoObserver {
  static readonly supportedEntryTypes: readonly string[] = []

  observe(): void {}

  disconnect(): void {}
}

/** Likewise: a real one looks at the clock a hundred times a second. */
const NO_DELAY = {
  ...{ min: 0, max: 0, mean: 0, stddev: 0 },
  enable: () => true,
  disable: () => true,
  reset: () => {},
  percentile: () => 0,
}

/** Replaces every clock and timer of this process. */
export function replaceTime(): void {
  const given = {
    setTimeout: (callback: Callback, ms?: unknown, ...args: unknown[]) =>
      new Timer(callback, ms, args, false),
    setInterval: (callback: Callback, ms?: unknown, ...args: unknown[]) =>
      new Timer(callback, ms, args, true),
    setImmediate: (callback: Callback, ...args: unknown[]) => new Immediate(callback, args),
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
  }
  Object.assign(globalThis, given, { Date: VirtualDate })
  Object.assign(timers, given)
  Object.assign(timersPromises, {
    setTimeout: <Value>(ms: number, value: Value, { signal }: WaitOptions = {}) =>
      waiting((done) => new Timer(done, ms, [], false), value, signal),
    setImmediate: <Value>(value: Value, { signal }: WaitOptions = {}) =>
      waiting((done) => new Immediate(done, []), value, signal),
  })
  AbortSignal.timeout = (ms: number) => {
    const controller = new AbortController()
    new Timer(
      () => controller.abort(new DOMException('The operation timed out', 'TimeoutError')),
      ms,
      [],
      false,
    )
    return controller.signal
  }
  Object.assign(performanceHooks, { PerformanceObserver: NoObserver, monitorEventLoopDelay: () => NO_DELAY })
  performance.now = () => now
  performance.eventLoopUtilization = () => ({ idle: 1, active: 0, utilization: 0 })
  syncBuiltinESMExports()
}
