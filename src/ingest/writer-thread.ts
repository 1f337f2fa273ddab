import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { packError, type ThreadRequest, type ThreadResponse, unpackBatch } from './thread-messages.js'
import { openWriter } from './writer.js'

/*
 * The thread that writes: it has the one connection that does, and does what the request thread asks. Reading
 * JSON, folding and committing keep it busy while the other one reads requests and checks signatures.
 */

serve(parentPort as MessagePort, (workerData as { readonly file: string }).file)

function serve(port: MessagePort, file: string): void {
  let now = 0
  const writer = openWriter(file, () => now)
  /** By the id of the call that waits. */
  const waiting = new Map<number, (isStopping: boolean) => void>()

  async function perform(request: ThreadRequest): Promise<unknown> {
    switch (request.call) {
      case 'writeBatch':
        return writer.writeBatch(unpackBatch(request.batch))
      case 'refreshDue':
        return writer.refreshDue()
      case 'canWrite':
        return writer.canWrite()
      case 'rebuild':
        return rebuild(request.id, request.policy)
      case 'goOn':
        return waiting.get(request.id)?.(request.isStopping)
      case 'close':
        return writer.close()
      default:
        return request satisfies never
    }
  }

  function rebuild(id: number, policy: Parameters<typeof writer.rebuild>[0]) {
    let folded = 0
    let total = 0
    return writer.rebuild(policy, {
      onProgress: (...progress) => {
        ;[folded, total] = progress
      },
      isStopping: () =>
        new Promise((resolve) => {
          waiting.set(id, resolve)
          answer({ id, kind: 'progress', folded, total })
        }),
    })
  }

  function answer(response: ThreadResponse): void {
    port.postMessage(response)
  }

  port.on('message', async (request: ThreadRequest) => {
    const { id, call } = request
    now = request.now
    try {
      const result = await perform(request)
      if (call !== 'goOn') answer({ id, kind: 'done', result })
    } catch (error) {
      answer({ id, kind: 'failed', error: packError(error) })
    }
    if (call === 'close') port.close()
  })
}
