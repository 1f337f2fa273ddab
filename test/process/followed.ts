import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { BOT_TOKEN, GOLD_ROLE_ID, GUILD_ID } from '../platforms/discord-ids.js'
import type { LocalDiscord } from '../platforms/discord-server.js'
import { latchkey, type ProgramExit, runProgram } from '../setup/program.js'
import { type Receiver, SECRET as WEBHOOK_SECRET } from '../sync/webhook/receiver.js'
import { PRODUCT } from './members.js'
import {
  API_KEY,
  ask,
  CONFIG,
  configuredFolder,
  keyEntry,
  SECRET,
  type ServedDaemon,
  serve,
} from './served.js'

export const TARGET = `discord:${GUILD_ID}:${GOLD_ROLE_ID}`

/** All that nobody may ever see, in each form that somebody could read it in. */
const SECRETS: readonly Buffer[] = [
  BOT_TOKEN,
  BOT_TOKEN.split('.').at(-1) ?? '',
  SECRET,
  WEBHOOK_SECRET,
  WEBHOOK_SECRET.slice('whsec_'.length),
  Buffer.from(WEBHOOK_SECRET.slice('whsec_'.length), 'base64').toString(),
].flatMap((text) => [Buffer.from(text), Buffer.from(Buffer.from(text).toString('base64'))])

interface FollowedOptions {
  readonly removals: { readonly atMost: number; readonly percent: number }
  readonly receiver?: Receiver
}

/** A folder whose product gives a role, and whose secrets stand in the environment alone. */
export function followedFolder(discord: LocalDiscord, { removals, receiver }: FollowedOptions): string {
  return configuredFolder({
    ...CONFIG,
    endpoints: { live: { environment: 'live', secrets: [`\${env:ENDPOINT_SECRET}`] } },
    api: { keys: [{ ...keyEntry('operator', API_KEY), scopes: ['read', 'metrics', 'admin'] }] },
    products: { [PRODUCT]: { targets: [{ adapter: 'discord', guildId: GUILD_ID, roleId: GOLD_ROLE_ID }] } },
    sync: {
      discord: { botToken: `\${env:DISCORD_BOT_TOKEN}`, apiUrl: discord.url },
      ...(receiver && { webhook: { url: receiver.url, secret: `\${env:WEBHOOK_SECRET}` } }),
      removals,
    },
    log: { level: 'trace' },
  })
}

const ENV = { ENDPOINT_SECRET: SECRET, DISCORD_BOT_TOKEN: BOT_TOKEN, WEBHOOK_SECRET, DEBUG: '*' }

export const serveFollowed = (folder: string): Promise<ServedDaemon> => serve(folder, ENV)

/** Runs a command in the folder. */
export const command = (folder: string, ...args: readonly string[]): Promise<ProgramExit> =>
  runProgram(latchkey(...args), { folder, env: ENV })

export interface FollowedState {
  readonly platforms: readonly { readonly state: string; readonly reason: { readonly code: string } | null }[]
  readonly targets: readonly { readonly memberships: Readonly<Record<string, number>> }[]
  readonly webhook: { readonly messages: readonly unknown[] } | null
}

export async function stateOf(daemon: ServedDaemon): Promise<FollowedState> {
  return (await ask(daemon, '/sync')).json() as Promise<FollowedState>
}

/** What operators and machines are told of it, as text. */
export async function toldBy(daemon: ServedDaemon): Promise<string> {
  const paths = ['/sync', '/sync/plan', '/sync/memberships?limit=100', '/metrics', '/readyz', '/healthz']
  const answers = await Promise.all(paths.map(async (path) => (await ask(daemon, path)).text()))
  return answers.join('\n')
}

/** Where a secret can be read: in the texts, by their number, or in any file of the folder. */
export function secretsSeen(folder: string, texts: readonly string[]): readonly string[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    statSync(join(folder, name)).isFile(),
  )
  const seen: (readonly [string, Buffer])[] = [
    ...texts.map((text, n) => [`text ${n}`, Buffer.from(text)] as const),
    ...files.map((name) => [name, readFileSync(join(folder, name))] as const),
  ]
  return seen.filter(([, bytes]) => SECRETS.some((secret) => bytes.includes(secret))).map(([name]) => name)
}
