import { fork } from 'node:child_process'
import { nextMessage, stopChild, tieToThisProcess } from '../child.js'

export interface RunningServer {
  readonly pid: number
  readonly port: number
  /** Instances that share the load with it. */
  readonly beside?: readonly RunningServer[]
  /** Of the database server that it writes to, if that is a process of its own. */
  readonly databasePid?: number | undefined
  stop(): Promise<void>
}

/** Starts one of the servers beside this file, in a process of its own. */
export async function startServer(
  name: 'bare-http' | 'bare-express' | 'distance' | 'payment-records' | 'obvious-receiver' | 'stripe-sync',
  ...args: string[]
): Promise<RunningServer> {
  const child = fork(new URL(`${name}.ts`, import.meta.url), args)
  tieToThisProcess(child)
  const port = await nextMessage<number>(child)
  if (child.pid === undefined) throw new Error(`${name} has no process.`)
  return { pid: child.pid, port, stop: () => stopChild(child) }
}
