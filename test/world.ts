import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { Command } from 'commander'
import type { Kysely } from 'kysely'
import pg from 'pg'
import { expect, inject, onTestFinished } from 'vitest'
import { processContext } from '../src/cli/context.js'
import { createCommands, runCli } from '../src/cli/program.js'
import { loadConfig } from '../src/config/load.js'
import { startDaemon } from '../src/daemon.js'
import { DOCUMENTED_POLICY } from '../src/entitlements/policy.js'
import { createBatchWriter } from '../src/ingest/commit.js'
import type { Delivery, ManualAct } from '../src/ingest/delivery.js'
import { createLogger } from '../src/log.js'
import { ensureChangeLogEpoch } from '../src/store/changes.js'
import { migrate } from '../src/store/migrate.js'
import { openPostgres, type PostgresOptions } from '../src/store/postgres/dialect.js'
import type { Database } from '../src/store/schema.js'
import { ensurePolicy } from '../src/store/settings.js'
import { openDatabase } from '../src/store/sqlite/dialect.js'
import { createFolder } from './setup/create-folder.js'
import { openKeptThread } from './setup/kept-threads.js'
import { putNewStoreUnlessBegun } from './setup/new-store.js'

// Folders and configs

/** The project's own folder. */
export const ROOT = join(import.meta.dirname, '..')

/** A folder that goes when the test ends, by the path that a process in it would report. */
export function temporaryFolder(): string {
  const folder = createFolder()
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

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

/** The same, and the key may do everything. */
export const MAY_ALL = {
  ...CONFIG,
  api: {
    keys: [
      {
        ...keyEntry('operator', API_KEY),
        scopes: ['read', 'write', 'events', 'metrics', 'admin'],
        environments: ['live', 'sandbox'],
      },
    ],
  },
}

/** A folder with a config file in it. */
export function configuredFolder(config: unknown = CONFIG): string {
  const folder = temporaryFolder()
  rewriteConfig(folder, config)
  return folder
}

/** Takes a value, or the text of the file as it is; answers with its path. */
export function rewriteConfig(folder: string, config: unknown): string {
  const path = join(folder, 'config.json')
  writeFileSync(path, typeof config === 'string' ? config : JSON.stringify(config))
  return path
}

export const databaseIn = (folder: string): string => join(folder, 'data', 'latchkey.db')

// The engines

export const ENGINES = ['sqlite', 'postgres'] as const

/** What holds the stores of this run: each suite that `vitest.config.ts` lists for both runs once on each. */
export const ENGINE = ENGINES.find((one) => one === process.env.TEST_ENGINE) ?? 'sqlite'

/** Takes what ends it. */
export type AtEnd = (end: () => unknown) => void
export const whenTestEnds: AtEnd = (end) => onTestFinished(async () => void (await end()))

/** By the path of the database that each stands for. */
const made = new Map<string, Promise<PostgresOptions>>()

/**
 * Where tests run on PostgreSQL: the database that stands for the file at this path, made at the first call.
 * @param template what it begins with: by default the schema
 */
export function postgresAt(
  file: string,
  atEnd = whenTestEnds,
  template = inject('postgresTemplate'),
): Promise<PostgresOptions> {
  const known = made.get(file)
  if (known !== undefined) return known
  const name = `latchkey_${createHash('sha256').update(file).digest('hex').slice(0, 32)}`
  const url = new URL(inject('postgresUrl'))
  url.pathname = `/${name}`
  const options = onServer(`create database ${name} template ${template} ${inject('postgresCopying')}`).then(
    () => {
      atEnd(() => onServer(`drop database ${name} with (force)`))
      return { url: url.href, connections: 12, statementTimeoutMs: 30_000 }
    },
  )
  made.set(file, options)
  return options
}

/** From now on, this database stands for the file at this path. */
export function standFor(file: string, options: PostgresOptions): void {
  made.set(file, Promise.resolve(options))
}

async function onServer(command: string): Promise<void> {
  const client = new pg.Client({ connectionString: inject('postgresUrl') })
  await client.connect()
  await client.query(command)
  await client.end()
}

/** What has a program use the database that stands for the folder's, where tests run on PostgreSQL. */
async function databaseEnv(folder: string): Promise<Readonly<Record<string, string>>> {
  return ENGINE === 'sqlite' ? {} : { LATCHKEY_DATABASE_URL: (await postgresAt(databaseIn(folder))).url }
}

/** Opens the store at this path beside a daemon, or with none. */
export async function openStoreAt(
  file: string,
  { readOnly }: { readonly readOnly: boolean },
  atEnd = whenTestEnds,
): Promise<Kysely<Database>> {
  if (ENGINE === 'sqlite') return openDatabase(file, { readOnly })
  return openPostgres(await postgresAt(file, atEnd), readOnly ? 'read' : 'write')
}

// The database, from outside

/** Works on the folder's database beside a daemon, or with none. */
export async function onStore<T>(folder: string, work: (db: Kysely<Database>) => Promise<T>): Promise<T> {
  return useDatabase(databaseIn(folder), false, work)
}

export async function readStore<T>(folder: string, query: (db: Kysely<Database>) => Promise<T>): Promise<T> {
  return useDatabase(databaseIn(folder), true, query)
}

async function useDatabase<T>(file: string, readOnly: boolean, use: (db: Kysely<Database>) => Promise<T>) {
  const db = await openStoreAt(file, { readOnly })
  try {
    return await use(db)
  } finally {
    await db.destroy()
  }
}

/** Has the folder's database take these in, as a daemon would have. */
export async function takeIn(
  folder: string,
  incoming: readonly (Delivery | ManualAct)[],
  now = Date.now,
): Promise<void> {
  await onStore(folder, async (db) => {
    await migrate(db)
    await ensurePolicy(db, DOCUMENTED_POLICY)
    await ensureChangeLogEpoch(db)
    if (incoming.length > 0)
      await createBatchWriter({ db, policy: () => DOCUMENTED_POLICY, clock: now })(incoming)
  })
}

// Commands

export interface Exit {
  /** Null if a signal ended it. */
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly now?: () => number
  readonly isTerminal?: boolean
  /** What is piped in. */
  readonly input?: readonly Buffer[]
}

/** A command line as one types it, where no word holds a space. */
type Words = string | readonly string[]

const wordsOf = (words: Words): readonly string[] =>
  typeof words === 'string' ? words.split(' ').filter((word) => word !== '') : words

/** Runs a command in this process, as the program would in that folder. */
export async function run(
  folder: string,
  words: Words,
  { env = {}, now = Date.now, isTerminal = false, input = [] }: RunOptions = {},
): Promise<Exit> {
  let stdout = ''
  let stderr = ''
  const context = {
    env: { ...(await databaseEnv(folder)), ...env },
    folder,
    now,
    isTerminal,
    out: (content: string | Uint8Array) => {
      stdout += content
    },
    err: (text: string) => {
      stderr += text
    },
  }
  const commands = createCommands({ openInput: () => Readable.from(input) })
  const code = await runCli(wordsOf(words), context, commands)
  return { code, stdout, stderr }
}

/** The same, with a daemon that serves the folder meanwhile, for a command that changes something. */
export async function runServed(folder: string, words: Words, options: RunOptions = {}): Promise<Exit> {
  const daemon = await serveHere(folder, options)
  const exit = await run(folder, words, options)
  await daemon.stop()
  return exit
}

/** What a command that ends well answers in JSON. */
export async function answerOf(folder: string, words: Words, options: RunOptions = {}) {
  return toldBy(await run(folder, [...wordsOf(words), '--json'], options))
}

/** The same of one that has ended. */
export function toldBy({ code, stdout, stderr }: Exit) {
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}

/** What a command that fails says of it in JSON. */
export async function failureOf(
  folder: string,
  words: Words,
  options: RunOptions = {},
): Promise<{ code: number | null; error: { code: string; message: string } }> {
  const { code, stdout, stderr } = await run(folder, [...wordsOf(words), '--json'], options)
  expect(stdout).toBe('')
  return { code, error: JSON.parse(stderr).error }
}

/** Every command that does something, by its words. */
export function everyCommand(): readonly string[] {
  const program = new Command()
  for (const register of createCommands({ openInput: () => process.stdin })) {
    register(program, processContext())
  }
  const namesIn = (command: Command): string[] =>
    command.commands.flatMap((one) =>
      one.commands.length === 0 ? [one.name()] : namesIn(one).map((name) => `${one.name()} ${name}`),
    )
  return namesIn(program)
}

// Processes

/** The command line that runs the built program. */
export function latchkey(...args: readonly string[]): readonly string[] {
  return [process.execPath, join(ROOT, 'bin', 'latchkey.js'), ...args]
}

/** What all programs find in their environment. */
export const SHARED_ENV = { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }

export interface ProgramOptions {
  /** Where it runs, and what it takes for its home. */
  readonly folder: string
  /** All that it finds in its environment, beside what all find, and `HOME`. */
  readonly env?: Readonly<Record<string, string>>
  /** Takes what kills it; by default it is killed when the test ends. */
  readonly atEnd?: AtEnd
}

export interface RunningProgram {
  readonly stdout: () => string
  readonly stderr: () => string
  /** Resolves once standard output matches; rejects, with all that was written, if the program ends first. */
  readonly until: (pattern: RegExp) => Promise<RegExpExecArray>
  /** Signals the program and whatever it started. */
  readonly signal: (name: NodeJS.Signals) => void
  readonly exit: Promise<Exit>
}

/** Starts a program in a process group of its own. */
export function startProgram(
  command: readonly string[],
  { folder, env = {}, atEnd = whenTestEnds }: ProgramOptions,
): RunningProgram {
  const [file = '', ...args] = command
  const child = spawn(file, args, {
    cwd: folder,
    env: { ...SHARED_ENV, HOME: folder, ...env },
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
  const exit = once(child, 'close').then(([code]): Exit => ({ code, stdout, stderr }))
  const signal = (name: NodeJS.Signals) => signalGroup(child, name)
  atEnd(async () => {
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

function signalGroup({ pid }: ChildProcess, name: NodeJS.Signals): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, name)
  } catch (error) {
    // Nobody is left in the group.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

/** Runs a program to its end. */
export function runProgram(command: readonly string[], options: ProgramOptions): Promise<Exit> {
  return startProgram(command, options).exit
}

/** Runs a command as the built program. */
export function built(
  folder: string,
  words: Words,
  env: Readonly<Record<string, string>> = {},
): Promise<Exit> {
  return runProgram(latchkey(...wordsOf(words)), { folder, env })
}

/** The same where no file may grow beyond so many blocks, of 512 bytes or, in some shells, of 1024. */
export const limited = (blocks: number, ...args: readonly string[]): readonly string[] => [
  ...['sh', '-c', `ulimit -f ${blocks}; exec "$@"`, 'sh'],
  ...latchkey(...args),
]

// Daemons

export interface AskedDaemon {
  readonly url: string
  /** Everything logged so far, a record each. */
  readonly logged: () => readonly Readonly<Record<string, unknown>>[]
  /** Has it stop in order, as SIGTERM does. */
  readonly stop: () => Promise<void>
}

/** A daemon in this process: for all that a process of its own is not needed for. */
export interface DaemonHere extends AskedDaemon {
  /** Takes over the config of the folder, as SIGHUP has it do. */
  readonly reload: () => Promise<boolean>
}

export async function serveHere(
  folder: string,
  {
    env = {},
    now = Date.now,
    atEnd = whenTestEnds,
  }: Pick<RunOptions, 'env' | 'now'> & { readonly atEnd?: AtEnd } = {},
): Promise<DaemonHere> {
  const given = { LATCHKEY_PORT: '0', ...(await databaseEnv(folder)), ...env }
  if (ENGINE === 'sqlite') await putNewStoreUnlessBegun(databaseIn(folder))
  const load = () => loadConfig({ path: join(folder, 'config.json'), env: given }).config
  const lines: string[] = []
  const log = createLogger('debug', { write: (line) => void lines.push(line) })
  const { url, stop, reload } = await startDaemon(load(), { clock: now, log, openThread: openKeptThread })
  atEnd(stop)
  return { url, stop, reload: () => reload(load()), logged: () => recordsIn(lines.join('')) }
}

export interface ServedDaemon extends RunningProgram, AskedDaemon {
  readonly pid: number
}

/** Starts `latchkey serve` on a free port of its own, and resolves once it serves. */
export async function serve(
  folder: string,
  env: Readonly<Record<string, string>> = {},
  command = latchkey('serve'),
  atEnd = whenTestEnds,
): Promise<ServedDaemon> {
  const program = startProgram(command, { folder, env: { LATCHKEY_PORT: '0', ...env }, atEnd })
  // As a line of JSON, or on a terminal with the same fields behind the message.
  const [line] = await program.until(/^.*serving on http.*$/m)
  const url = /"url":"([^"]+)"/.exec(line)?.[1] ?? ''
  const [, inJson, inText] = /"pid":(\d+)|\((\d+)\)/.exec(line) ?? []
  const pid = Number(inJson ?? inText)
  return {
    ...program,
    url,
    pid,
    logged: () => recordsIn(program.stdout()),
    async stop() {
      program.signal('SIGTERM')
      expect(await program.exit).toMatchObject({ code: 0 })
    },
  }
}

function recordsIn(text: string): Record<string, unknown>[] {
  const lines = text.split('\n').filter((line) => line.startsWith('{') && line.endsWith('}'))
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
}

/** kill -9, and gone when this resolves. */
export async function kill(program: RunningProgram): Promise<void> {
  program.signal('SIGKILL')
  await program.exit
}

/** Asks the API. */
export async function ask({ url }: Pick<AskedDaemon, 'url'>, path: string, key = API_KEY): Promise<Response> {
  return fetch(`${url}${path}`, { headers: { Authorization: `Bearer ${key}`, Connection: 'close' } })
}

/** Has the API do something; answers with its JSON. */
export async function act({ url }: AskedDaemon, method: string, path: string, body?: object) {
  const answer = await fetch(`${url}${path}`, {
    method,
    headers: {
      Authorization: `Bearer ${API_KEY}`,
      'Content-Type': 'application/json',
      Connection: 'close',
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  expect(answer.ok).toBe(true)
  return JSON.parse(await answer.text())
}

export interface SeenEntitlement {
  readonly productId: string
  readonly active: boolean
  readonly status: string
}

/** What the API says that a customer may use. */
export async function entitlementsOf(
  daemon: Pick<AskedDaemon, 'url'>,
  customerId: string,
  key = API_KEY,
): Promise<readonly SeenEntitlement[]> {
  const answer = (await (await ask(daemon, `/entitlements/${customerId}`, key)).json()) as {
    entitlements: readonly SeenEntitlement[]
  }
  return answer.entitlements.map(({ productId, active, status }) => ({ productId, active, status }))
}
