import { EventEmitter } from 'node:events'
import type { MessagePort } from 'node:worker_threads'
import { expect, it } from 'vitest'
import { serveWriter } from '../../src/daemon/serve-writer.js'
import { type ThreadResponse, unpackError } from '../../src/daemon/thread-messages.js'
import { isSyncPaused } from '../../src/store/sync-state.js'
import { open, temporaryFile, temporaryStore } from '../store/temporary-store.js'

it('the writer ends what it has begun before it closes the store, and begins nothing more', async () => {
  const file = temporaryFile()
  await (await temporaryStore(file)).destroy()
  const answers: ThreadResponse[] = []
  const { promise: closed, resolve: close } = Promise.withResolvers<void>()
  const port = Object.assign(new EventEmitter({ captureRejections: true }), {
    postMessage: (answer: ThreadResponse) => answers.push(answer),
    close,
  })
  const failures: unknown[] = []
  port.on('error', (error: unknown) => failures.push(error))
  await serveWriter(port as unknown as MessagePort, file)

  port.emit('message', { id: 1, now: 0, call: 'writeSync', args: ['setSyncPaused', true] })
  port.emit('message', { id: 2, now: 0, call: 'close' })
  port.emit('message', { id: 3, now: 0, call: 'writeSync', args: ['setSyncPaused', false] })
  await closed

  expect(answers.map((one) => (one.kind === 'failed' ? unpackError(one.error) : one))).toMatchObject([
    { id: 1, kind: 'done' },
  ])
  expect(failures).toEqual([])
  expect(await isSyncPaused(open(file, true))).toBe(true)
})
