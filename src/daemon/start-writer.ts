import type { EventEmitter } from 'node:events'
import { Worker } from 'node:worker_threads'
import { LatchkeyError } from '../errors.js'
import { threadFile } from '../package-file.js'
import type { WorkOptions } from '../recompute/run.js'
import {
  PLAIN_CALLS,
  type PlainCall,
  packBatch,
  type ThreadCall,
  type ThreadResponse,
  unpackError,
} from './thread-messages.js'
import type { OpenWriter } from './writer.js'

export interface StartWriterDeps {
  readonly file: string
  /** Epoch milliseconds. */
  readonly clock: () => number
  /** Called once if the thread ends by itself: nothing can be stored any more. */
  readonly onEnded: (error: LatchkeyError) => void
  readonly openThread?: OpenThread | undefined
}

/** Opens what runs `serveWriter` on this database: it emits what a thread does, and exits once it is asked to close. */
export type OpenThread = (file: string) => EventEmitter & Pick<Worker, 'postMessage'>

const openOwnThread: OpenThread = (file) =>
  new Worker(threadFile('daemon/writer-thread'), { workerData: { file } })

interface Call {
  readonly resolve: (result: never) => void
  readonly reject: (error: unknown) => void
  readonly options: WorkOptions
}

/**
 * Starts the writer thread on a database whose schema is up to date. Once it has ended, every call fails with
 * `writer_ended`.
 */
export function startWriter({
  file,
  clock,
  onEnded,
  openThread = openOwnThread,
}: StartWriterDeps): OpenWriter {
  const thread = openThread(file)
  const calls = new Map<number, Call>()
  let lastId = 0
  let ended: LatchkeyError | null = null
  let isClosing = false

  function end(cause?: unknown): void {
    if (ended !== null) return
    ended = new LatchkeyError('writer_ended', 'The writer thread has ended.', { cause })
    for (const { reject } of calls.values()) reject(ended)
    calls.clear()
    if (!isClosing) onEnded(ended)
  }

  function call<Result>(body: ThreadCall, options: WorkOptions = {}, handedOver: ArrayBuffer[] = []) {
    return new Promise<Result>((resolve, reject) => {
      if (ended !== null) return reject(ended)
      lastId += 1
      calls.set(lastId, { resolve, reject, options })
      post(lastId, body, handedOver)
    })
  }

  function post(id: number, body: ThreadCall, handedOver: ArrayBuffer[] = []): void {
    thread.postMessage({ ...body, id, now: clock() }, handedOver)
  }

  async function proceed(id: number, { onProgress, isStopping }: WorkOptions, progress: [number, number]) {
    onProgress?.(...progress)
    // It waits in the thread until it may continue or must stop, also if nobody can say which.
    let stops = true
    try {
      stops = (await isStopping?.()) ?? false
    } finally {
      post(id, { call: 'proceed', isStopping: stops })
    }
  }

  thread.on('message', (response: ThreadResponse) => {
    const { id, kind } = response
    const waiting = calls.get(id)
    if (waiting === undefined) return
    if (kind === 'progress') {
      proceed(id, waiting.options, [response.reached, response.total]).catch(waiting.reject)
      return
    }
    calls.delete(id)
    if (kind === 'done') waiting.resolve(response.result as never)
    else waiting.reject(unpackError(response.error))
  })
  thread.on('error', end)
  const exited = new Promise<void>((resolve) => {
    thread.on('exit', () => {
      end()
      resolve()
    })
  })

  const plain = Object.fromEntries(
    PLAIN_CALLS.map((name) => [name, (...args: readonly unknown[]) => call({ call: name, args })]),
  ) as Record<PlainCall, unknown> as Pick<OpenWriter, PlainCall>
  return {
    writeBatch(deliveries) {
      const batch = packBatch(deliveries)
      return call({ call: 'writeBatch', batch }, {}, [batch.bytes.buffer])
    },
    recompute: (plan, options) => call({ call: 'recompute', plan }, options),
    ...plain,
    async close() {
      isClosing = true
      if (ended === null) post(0, { call: 'close' })
      await exited
    },
  }
}
