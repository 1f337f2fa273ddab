import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { BOT_TOKEN, GOLD_ROLE_ID, GUILD_ID } from '../platforms/discord-ids.js'
import type { LocalDiscord } from '../platforms/discord-server.js'
import { type Receiver, SECRET as WEBHOOK_SECRET } from '../sync/webhook/receiver.js'
import { configuredFolder, MAY_ALL, SECRET, type ServedDaemon, serve } from '../world.js'

/** The product that gives the role. */
export const PRODUCT = 'pro_1'

/**
 * A folder whose product gives a role in a local Discord, whose secrets are in the environment alone, and whose
 * removals are never held back.
 */
export function followedFolder(discord: LocalDiscord, receiver: Pick<Receiver, 'url'>): string {
  return configuredFolder({
    ...MAY_ALL,
    endpoints: { live: { environment: 'live', secrets: [`\${env:ENDPOINT_SECRET}`] } },
    products: { [PRODUCT]: { targets: [{ adapter: 'discord', guildId: GUILD_ID, roleId: GOLD_ROLE_ID }] } },
    sync: {
      discord: { botToken: `\${env:DISCORD_BOT_TOKEN}`, apiUrl: discord.url },
      webhook: { url: receiver.url, secret: `\${env:WEBHOOK_SECRET}` },
      removals: { atMost: 1_000, percent: 100 },
    },
    log: { level: 'trace' },
  })
}

const ENV = { ENDPOINT_SECRET: SECRET, DISCORD_BOT_TOKEN: BOT_TOKEN, WEBHOOK_SECRET, DEBUG: '*' }

export const serveFollowed = (folder: string, env: Record<string, string> = {}): Promise<ServedDaemon> =>
  serve(folder, { ...ENV, ...env })

/** Every file of the folder that holds any of the texts. */
export function filesWith(folder: string, texts: readonly string[]): readonly string[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  return files.filter((name) => {
    const file = join(folder, name)
    if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return false
    const bytes = readFileSync(file)
    return texts.some((text) => bytes.includes(text))
  })
}

/** All that nobody may ever see, in each form that somebody could read it in. */
export const SECRETS: readonly string[] = [
  BOT_TOKEN,
  BOT_TOKEN.split('.').at(-1) ?? '',
  SECRET,
  WEBHOOK_SECRET,
  WEBHOOK_SECRET.slice('whsec_'.length),
  Buffer.from(WEBHOOK_SECRET.slice('whsec_'.length), 'base64').toString(),
].flatMap((text) => [text, Buffer.from(text).toString('base64')])
