import { EventEmitter } from 'node:events'
import { join } from 'node:path'
import { MessageChannel, type Transferable, Worker } from 'node:worker_threads'
import type { OpenThread } from '../../src/daemon/start-writer.js'

const idle: Worker[] = []

/**
 * Has the writer of a daemon run in a thread that another has left: to start one, and to load the program into it, takes
 * longer than most tests. No two have the same one at a time.
 */
export const openKeptThread: OpenThread = (file) => {
  const worker = idle.pop() ?? startWorker()
  const { port1, port2 } = new MessageChannel()
  const thread = Object.assign(new EventEmitter(), {
    postMessage: (value: unknown, handedOver?: readonly Transferable[]) =>
      port1.postMessage(value, handedOver),
  })
  let hasFailed = false
  const onError = (error: unknown) => {
    hasFailed = true
    thread.emit('error', error)
  }
  worker.on('error', onError)
  port1.on('message', (response) => thread.emit('message', response))
  port1.on('close', () => {
    worker.off('error', onError)
    if (!hasFailed) idle.push(worker)
    thread.emit('exit')
  })
  worker.postMessage({ file, port: port2 }, [port2])
  return thread
}

function startWorker(): Worker {
  const worker = new Worker(join(import.meta.dirname, 'writer-thread.ts'), {
    execArgv: [
      '--disable-warning=ExperimentalWarning',
      '--import',
      join(import.meta.dirname, '..', '..', 'scripts', 'typescript.js'),
    ],
  })
  // The tests may end while it waits for the next daemon.
  worker.unref()
  return worker
}
