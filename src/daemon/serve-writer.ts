import type { MessagePort } from 'node:worker_threads'
import { erasureListOf } from '../people/erasure-list.js'
import type { WorkOptions } from '../recompute/run.js'
import { startCheckpoints } from '../store/sqlite/checkpoint.js'
import { openDatabase } from '../store/sqlite/dialect.js'
import { packError, type ThreadRequest, type ThreadResponse, unpackBatch } from './thread-messages.js'
import { createWriter, type Writer } from './writer.js'

/**
 * The writer thread's work: it has the only writing connection, and executes what the request thread asks for. JSON
 * parsing, folding and commits run here, while the other thread reads requests and checks signatures.
 */
export async function serveWriter(port: MessagePort, file: string): Promise<void> {
  const db = openDatabase(file, { readOnly: false })
  const checkpoints = await startCheckpoints(db, file)
  let now = 0
  const writer = createWriter({ db, clock: () => now, erasureList: erasureListOf(file) })
  const perform = createPerform(writer, (response) => port.postMessage(response))

  async function close(): Promise<void> {
    await checkpoints.close()
    await db.destroy()
    port.close()
  }

  const underWay = new Set<Promise<void>>()
  let isClosing = false
  async function work(request: ThreadRequest): Promise<void> {
    await perform(request)
    await checkpoints.look()
  }

  port.on('message', async (request: ThreadRequest) => {
    now = request.now
    // Without an answer: the other thread hears that this one has ended.
    if (isClosing && request.call !== 'proceed') return
    if (request.call === 'close') {
      isClosing = true
      // A stop does not wait for every write that it finds under way.
      await Promise.allSettled(underWay)
      return close()
    }
    const working = work(request)
    underWay.add(working)
    await working.finally(() => underWay.delete(working))
  })
}

type Answer = (response: ThreadResponse) => void

/** Executes one request, and answers it. */
function createPerform(writer: Writer, answer: Answer): (request: ThreadRequest) => Promise<void> {
  /** By the id of the call that waits for permission to continue. */
  const waiting = new Map<number, (isStopping: boolean) => void>()

  function run(request: ThreadRequest): Promise<unknown> | null {
    switch (request.call) {
      case 'writeBatch':
        return writer.writeBatch(unpackBatch(request.batch))
      case 'recompute':
        return underWay(request.id, (options) => writer.recompute(request.plan, options))
      case 'proceed':
        waiting.get(request.id)?.(request.isStopping)
        return null
      case 'close':
        return null
      default:
        return (writer[request.call] as (...args: readonly unknown[]) => Promise<unknown>)(...request.args)
    }
  }

  /** Reports its progress wherever it could stop, and waits for permission to continue. */
  function underWay(id: number, work: (options: WorkOptions) => Promise<unknown>): Promise<unknown> {
    let reached = 0
    let total = 0
    return work({
      onProgress: (...progress) => {
        ;[reached, total] = progress
      },
      isStopping: () =>
        new Promise((resolve) => {
          waiting.set(id, resolve)
          answer({ id, kind: 'progress', reached, total })
        }),
    })
  }

  return async (request) => {
    const { id } = request
    try {
      const running = run(request)
      if (running !== null) answer({ id, kind: 'done', result: await running })
    } catch (error) {
      answer({ id, kind: 'failed', error: packError(error) })
    }
  }
}
