import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import { API_SCOPES } from '../handlers/api-key.js'
import { createApiKey } from './api-keys.js'
import { loadConfig } from './load.js'
import { EXAMPLE_POLICY } from './policy.js'
import { reasonOf } from './references.js'
import { DEFAULT_HOST, DEFAULT_PORT, readOverrides } from './server.js'
import { writePrivateFile } from './write-file.js'

export interface FirstConfigOptions {
  /** The new file, absolute. */
  readonly path: string
  /** Whether standard output is a terminal; if not, the key goes to a separate file. */
  readonly isTerminal: boolean
  /** The daemon's future address; an override by the environment is kept in the file, for the commands. */
  readonly host?: string | undefined
  readonly port?: string | undefined
  /** The JSON Schema of the file, for editors; absolute. */
  readonly schema: string
  /** What runs a command: `latchkey`, or `npx latchkey`. */
  readonly program: string
}

export const FIRST_EVENT = 'trigger payment.authorized --customer cus_1 --product pro_1'

/**
 * Creates the config of a first start: one sandbox endpoint, the example policy, one API key. Never overwrites.
 * @returns the key, and the absolute path of its file (null on a terminal); what was created, and what to try `next`, for
 * the terminal and never for a log: there they contain the key
 * @throws {LatchkeyError} `config_invalid` if there is such a file, or if it would not load at this address
 */
export function createFirstConfig(options: FirstConfigOptions) {
  const { path, isTerminal, schema, program, ...given } = options
  const host = given.host || DEFAULT_HOST
  const override = { LATCHKEY_PORT: given.port }
  // With 0 the system chooses one, and another every time.
  const port = readOverrides(override).overrides.port || DEFAULT_PORT
  const url = `http://${reachable(host)}:${port}`
  const { key, entry } = createApiKey({ name: 'first', scopes: [...API_SCOPES], environments: ['sandbox'] })
  const secret = `whsec_${randomBytes(32).toString('base64url')}`
  const config = {
    $schema: relative(dirname(path), schema).replace(/^(?!\.)/, './'),
    server: { host, port },
    database: { url: 'sqlite:./data/latchkey.db' },
    // `latchkey sandbox` begins with the real time, and its clock is moved ahead from there.
    endpoints: { sandbox: { environment: 'sandbox', secrets: [secret], aheadAtMost: '10y' } },
    api: { keys: [entry] },
    policy: EXAMPLE_POLICY,
  }
  assertLoads(path, config, override)
  createConfigFile(path, `${JSON.stringify(config, null, 2)}\n`)
  const created = `Created ${path} with a sandbox endpoint named "sandbox", the example policy and an API key.`
  const answer = (keyFile: string | null, keyLine: string, token: string) => ({
    key,
    keyFile,
    created: `${created}\n${keyLine}\n`,
    next: [
      'Try next, in a second terminal while this runs:',
      `  export LATCHKEY_API_KEY=${token}`,
      `  ${program} ${FIRST_EVENT}`,
      `  ${program} check cus_1`,
      `  curl -H "Authorization: Bearer $LATCHKEY_API_KEY" ${url}/entitlements/cus_1`,
      '',
    ].join('\n'),
  })
  if (isTerminal) return answer(null, `API key (shown only now): ${key}`, key)
  const keyFile = join(dirname(path), 'data', 'first-key.txt')
  mkdirSync(dirname(keyFile), { recursive: true, mode: 0o700 })
  writePrivateFile(keyFile, `${key}\n`, { replace: true })
  const shown = relative(dirname(path), keyFile)
  return answer(keyFile, `API key: in ${shown}`, `$(cat ${shown})`)
}

/** The host for a URL: nobody can call the address that stands for all of a machine's. */
function reachable(host: string): string {
  const called = host.replace(/^0\.0\.0\.0$/, '127.0.0.1').replace(/^::$/, '::1')
  return called.includes(':') ? `[${called}]` : called
}

/** The address comes from the environment. */
function assertLoads(path: string, config: object, env: Parameters<typeof readOverrides>[0]): void {
  try {
    loadConfig({ path, value: config, env })
  } catch (cause) {
    if (!isLatchkeyError(cause)) throw cause
    const message = `${path} was not created: correct LATCHKEY_HOST and LATCHKEY_PORT`
    throw new LatchkeyError('config_invalid', message, { cause, issues: cause.issues })
  }
}

function createConfigFile(path: string, text: string): void {
  try {
    writePrivateFile(path, text, { replace: false })
  } catch (error) {
    if (reasonOf(error) !== 'EEXIST') throw error
    const message = `the config file ${path} already exists: start the daemon with \`latchkey serve\``
    throw new LatchkeyError('config_invalid', message, { cause: error })
  }
}
