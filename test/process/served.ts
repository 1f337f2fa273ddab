import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Kysely } from 'kysely'
import type { Database } from '../../src/store/schema.js'
import { openDatabase } from '../../src/store/sqlite/dialect.js'
import { latchkey, type RunningProgram, startProgram, temporaryFolder } from '../setup/program.js'

export const SECRET = 'whsec_process_0123456789'
export const API_KEY = 'lk_process_key'

/** The entry of an API key that may read what is live. */
export function keyEntry(name: string, key: string) {
  const hash = `sha256:${createHash('sha256').update(key).digest('hex')}`
  return { name, hash, scopes: ['read'], environments: ['live'] }
}

/** One live endpoint, one key, and the documented policy. */
export const CONFIG = {
  endpoints: { live: { environment: 'live', secrets: [SECRET] } },
  api: { keys: [keyEntry('app', API_KEY)] },
}

/** A folder with a config file in it. */
export function configuredFolder(config: unknown = CONFIG): string {
  const folder = temporaryFolder()
  rewriteConfig(folder, config)
  return folder
}

/** Takes a value, or the text of the file as it is. */
export function rewriteConfig(folder: string, config: unknown): void {
  writeFileSync(join(folder, 'config.json'), typeof config === 'string' ? config : JSON.stringify(config))
}

export interface ServedDaemon extends RunningProgram {
  readonly url: string
  readonly pid: number
  /** Everything logged so far, a record each. */
  readonly logged: () => readonly Readonly<Record<string, unknown>>[]
}

/** Starts `latchkey serve` on a free port of its own, and resolves once it serves. */
export async function serve(
  folder: string,
  env: Readonly<Record<string, string>> = {},
  command = latchkey('serve'),
): Promise<ServedDaemon> {
  const program = startProgram(command, { folder, env: { LATCHKEY_PORT: '0', ...env } })
  // As a line of JSON, or on a terminal with the same fields behind the message.
  const [line] = await program.until(/^.*serving on http.*$/m)
  const url = /"url":"([^"]+)"/.exec(line)?.[1] ?? ''
  const [, inJson, inText] = /"pid":(\d+)|\((\d+)\)/.exec(line) ?? []
  const pid = Number(inJson ?? inText)
  return { ...program, url, pid, logged: () => recordsIn(program.stdout()) }
}

function recordsIn(text: string): Record<string, unknown>[] {
  const lines = text.split('\n').filter((line) => line.startsWith('{') && line.endsWith('}'))
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
}

/** kill -9, and gone when this resolves. */
export async function kill(daemon: RunningProgram): Promise<void> {
  daemon.signal('SIGKILL')
  await daemon.exit
}

/** Asks the API. */
export async function ask(daemon: ServedDaemon, path: string, key = API_KEY): Promise<Response> {
  return fetch(`${daemon.url}${path}`, { headers: { Authorization: `Bearer ${key}`, Connection: 'close' } })
}

export interface SeenEntitlement {
  readonly productId: string
  readonly active: boolean
  readonly status: string
}

/** What the API says that a customer may use. */
export async function entitlementsOf(
  daemon: ServedDaemon,
  customerId: string,
  key = API_KEY,
): Promise<readonly SeenEntitlement[]> {
  const answer = (await (await ask(daemon, `/entitlements/${customerId}`, key)).json()) as {
    entitlements: readonly SeenEntitlement[]
  }
  return answer.entitlements.map(({ productId, active, status }) => ({ productId, active, status }))
}

/** Reads the folder's database from outside, beside a daemon or with none. */
export async function readStore<T>(folder: string, query: (db: Kysely<Database>) => Promise<T>): Promise<T> {
  const db = openDatabase(join(folder, 'data', 'latchkey.db'), { readOnly: true })
  try {
    return await query(db)
  } finally {
    await db.destroy()
  }
}
