import { type MessagePort, parentPort } from 'node:worker_threads'
import { serveWriter } from '../../src/daemon/serve-writer.js'

/** A thread for the writers of one daemon after another: see `kept-threads.ts`. */
parentPort?.on('message', ({ port, file }: { readonly port: MessagePort; readonly file: string }) =>
  serveWriter(port, file),
)
