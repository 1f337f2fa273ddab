import { fork } from 'node:child_process'
import { nextMessage, stopChild, tieToThisProcess } from '../child.js'

export interface RunningServer {
  readonly pid: number
  readonly port: number
  stop(): Promise<void>
}

/** Starts one of the servers beside this file, in a process of its own. */
export async function startServer(
  name: 'bare-http' | 'bare-express' | 'obvious-receiver',
  argument: string,
): Promise<RunningServer> {
  const child = fork(new URL(`${name}.js`, import.meta.url), [argument])
  tieToThisProcess(child)
  const port = await nextMessage<number>(child)
  if (child.pid === undefined) throw new Error(`${name} has no process.`)
  return { pid: child.pid, port, stop: () => stopChild(child) }
}
