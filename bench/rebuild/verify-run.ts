import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { tieToThisProcess } from '../child.js'
import { cpuSeconds, hasEnded, memoryUse, readFromDiskMb } from '../process-usage.js'
import { PROJECT_FOLDER } from '../project.js'
import type { Effort } from './effort.js'

/** Its memory only grows at the beginning: what is missed of it at the end is little. */
const LOOK_EVERY_MS = 100

/** Runs `latchkey rebuild --verify`, from the start of the process to its end. Throws if anything differs. */
export function measureVerifying(configFile: string): Promise<Effort> {
  const program = join(PROJECT_FOLDER, 'bin', 'latchkey.js')
  const startedAt = performance.now()
  const child = spawn(process.execPath, [program, 'rebuild', '--verify', '--config', configFile], {
    env: {},
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  tieToThisProcess(child)
  return new Promise((resolve, reject) => {
    const { pid } = child
    if (pid === undefined) return reject(new Error('latchkey rebuild --verify could not be started.'))
    let seen = { cpuSeconds: 0, diskMb: 0, peakMb: 0 }
    const looking = setInterval(() => {
      try {
        seen = { cpuSeconds: cpuSeconds(pid), diskMb: readFromDiskMb(pid), peakMb: memoryUse(pid).peakMb }
      } catch (error) {
        if (!hasEnded(pid)) throw error
      }
    }, LOOK_EVERY_MS)
    child.once('exit', (code) => {
      clearInterval(looking)
      const seconds = (performance.now() - startedAt) / 1000
      if (code === 0) resolve({ seconds, ...seen })
      else reject(new Error(`latchkey rebuild --verify ended with ${code ?? 'a signal'}`))
    })
  })
}
