/*
 * The threads of the daemon, in this one: each does what its file in `src` does, and hears and answers in turns of its
 * own.
 */

import { EventEmitter } from 'node:events'
import { createRequire, syncBuiltinESMExports } from 'node:module'
import { basename } from 'node:path'
import type { MessagePort } from 'node:worker_threads'

type Message = unknown

/** What a thread is given to talk to the one that began it. */
export type ThreadPort = EventEmitter & Pick<MessagePort, 'postMessage' | 'close'>

/** The work of a thread; it has ended when this resolves and its port is closed. */
export type ThreadWork = (port: ThreadPort, data: never) => Promise<void>

let works: Readonly<Record<string, ThreadWork>> = {}

/** @param byFile by the names of their files, without the extension */
export function provideThreads(byFile: Readonly<Record<string, ThreadWork>>): void {
  works = byFile
}

class ThreadHere extends EventEmitter {
  readonly #port: ThreadPort
  #isOver = false

  constructor(file: string, { workerData }: { readonly workerData?: unknown } = {}) {
    super()
    const work = works[basename(file, '.js')]
    if (work === undefined) throw new Error(`${file} is no thread that is known here`)
    this.#port = Object.assign(new EventEmitter(), {
      postMessage: (message: Message) => this.#hand(this, message),
      close: () => this.#end(),
    }) as unknown as ThreadPort
    setImmediate(() => {
      if (this.#isOver) return
      work(this.#port, workerData as never).catch((error: unknown) => {
        this.emit('error', error)
        this.#end()
      })
    })
  }

  #hand(to: EventEmitter, message: Message): void {
    const copy = structuredClone(message)
    setImmediate(() => {
      if (!this.#isOver) to.emit('message', copy)
    })
  }

  #end(): void {
    setImmediate(() => {
      if (this.#isOver) return
      this.#isOver = true
      this.emit('exit', 0)
    })
  }

  postMessage(message: Message): void {
    this.#hand(this.#port, message)
  }

  async terminate(): Promise<void> {
    this.#isOver = true
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }
}

/** Replaces the threads of this process. */
export function replaceThreads(): void {
  Object.assign(createRequire(import.meta.url)('node:worker_threads'), { Worker: ThreadHere })
  syncBuiltinESMExports()
}
