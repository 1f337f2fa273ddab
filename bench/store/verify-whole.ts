import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { PROJECT_FOLDER } from '../project.js'
import type { DaemonFolder } from './daemon-folder.js'

/** Folds everything in a stopped store from nothing, by the program's own command. Throws where anything differs. */
export async function verifyWhole({ configFile }: DaemonFolder): Promise<void> {
  const program = join(PROJECT_FOLDER, 'bin', 'latchkey.js')
  await promisify(execFile)(process.execPath, [program, 'rebuild', '--verify', '--config', configFile], {
    env: {},
  })
}
