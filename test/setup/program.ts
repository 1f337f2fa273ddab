import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** The project's own folder. */
export const ROOT = join(import.meta.dirname, '..', '..')

/** The command line that runs the built program. */
export function latchkey(...args: readonly string[]): readonly string[] {
  return [process.execPath, join(ROOT, 'bin', 'latchkey.js'), ...args]
}

export interface ProgramOptions {
  /** Where it runs, and what it takes for its home. */
  readonly folder: string
  /** All that it finds in its environment, beside `PATH` and `HOME`. */
  readonly env?: Readonly<Record<string, string>>
}

export interface ProgramExit {
  /** Null if a signal ended it. */
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunningProgram {
  readonly stdout: () => string
  readonly stderr: () => string
  /** Resolves once standard output matches; rejects, with all that was written, if the program ends first. */
  readonly until: (pattern: RegExp) => Promise<RegExpExecArray>
  /** Signals the program and whatever it started. */
  readonly signal: (name: NodeJS.Signals) => void
  readonly exit: Promise<ProgramExit>
}

/** Starts a program in a process group of its own, which is killed when the test ends. */
export function startProgram(
  command: readonly string[],
  { folder, env = {} }: ProgramOptions,
): RunningProgram {
  const [file = '', ...args] = command
  const child = spawn(file, args, {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const exit = once(child, 'close').then(([code]): ProgramExit => ({ code, stdout, stderr }))
  const signal = (name: NodeJS.Signals): void => {
    if (child.pid !== undefined) signalGroup(child.pid, name)
  }
  onTestFinished(async () => {
    signal('SIGKILL')
    await exit
  })

  return {
    stdout: () => stdout,
    stderr: () => stderr,
    until: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(stdout)
          if (match) resolve(match)
        }
        child.stdout.on('data', look)
        child.once('close', (code) => {
          look()
          reject(new Error(`${command.join(' ')} ended with ${code} before ${pattern}:\n${stdout}${stderr}`))
        })
        look()
      }),
    signal,
    exit,
  }
}

/** Runs a program to its end. */
export function runProgram(command: readonly string[], options: ProgramOptions): Promise<ProgramExit> {
  return startProgram(command, options).exit
}

function signalGroup(leader: number, name: NodeJS.Signals): void {
  try {
    process.kill(-leader, name)
  } catch (error) {
    // Nobody is left in the group.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

/** A folder that goes when the test ends, by the path that a process in it would report. */
export function temporaryFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'latchkey-program-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A port that nobody listens on. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
