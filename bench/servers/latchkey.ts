import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { stopChild, tieToThisProcess } from '../child.js'
import { PROJECT_FOLDER } from '../project.js'
import type { RunningServer } from './running-server.js'

/** What is of another level is worth a look. */
const QUIET = ['trace', 'debug', 'info']

export interface RunningDaemon extends RunningServer {
  /** From the start of the process to the first 200 of `/readyz`. */
  readonly readyAfterMs: number
}

/**
 * The built daemon, as a user runs it. Its environment is empty: nothing of the caller's may steer it.
 * @param project where it is built: here, or in the folder of another version
 */
export async function startLatchkey(configFile: string, project = PROJECT_FOLDER): Promise<RunningDaemon> {
  const startedAt = performance.now()
  const program = join(project, 'bin', 'latchkey.js')
  // As `npm start` does.
  const flags = ['--max-semi-space-size=4']
  const child = spawn(process.execPath, [...flags, program, 'serve', '--config', configFile], {
    env: {},
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  tieToThisProcess(child)
  const url = await servingUrl(child)
  const ready = await fetch(`${url}/readyz`)
  if (ready.status !== 200 || child.pid === undefined) throw new Error(`Not ready: ${await ready.text()}`)
  return {
    pid: child.pid,
    port: Number(new URL(url).port),
    readyAfterMs: performance.now() - startedAt,
    stop: () => stopChild(child),
  }
}

/** From the daemon's log; warnings and errors are passed on. */
function servingUrl(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`latchkey serve ended with ${code ?? 'a signal'}`)))
    if (child.stdout === null) throw new Error('The log of the daemon cannot be read.')
    createInterface({ input: child.stdout }).on('line', (line) => {
      const { level, url } = JSON.parse(line) as { level: string; url?: string }
      if (!QUIET.includes(level)) console.error(line)
      if (url !== undefined) resolve(url)
    })
  })
}
