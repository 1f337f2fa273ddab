import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { serveWriter } from './serve-writer.js'

await serveWriter(parentPort as MessagePort, (workerData as { readonly file: string }).file)
