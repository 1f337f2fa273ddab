import { dirname, resolve } from 'node:path'
import { DOCUMENTED_POLICY, type Policy } from '../entitlements/policy.js'
import { LatchkeyError } from '../errors.js'
import type { ApiKey } from '../handlers/api-key.js'
import type { Endpoint } from '../provider/endpoint.js'
import type { Target } from '../sync/target.js'
import type { ApiKeyFile, EndpointFile } from './access-schema.js'
import { parseDuration } from './duration.js'
import { describeIssue, toIssues } from './issues.js'
import type { Overrides } from './overrides.js'
import { type PolicyFile, policySchema } from './policy-schema.js'
import type { ConfigFile } from './schema.js'
import { sqlitePath } from './server-schema.js'
import type { BackupConfig, BotConfig, Config, OutboundConfig, ProductConfig, SyncConfig } from './types.js'

/** The config as the daemon uses it: overrides applied, defaults filled in, times and paths absolute. */
export function toConfig(file: ConfigFile, overrides: Overrides, path: string): Config {
  const { server, sync, provider } = file
  const url = overrides.databaseUrl ?? file.database.url
  return {
    path,
    server: {
      host: overrides.host ?? server.host,
      port: overrides.port ?? server.port,
      trustProxy: server.trustProxy,
      webhooks: server.webhooks ?? null,
      metrics: server.metrics ?? null,
    },
    database: { url, file: resolve(dirname(path), sqlitePath(url)) },
    backup: toBackup(file.backup, path),
    retention: file.retention ? { bodiesAfterMs: parseDuration(file.retention.bodiesAfter) } : null,
    erasure: file.erasure,
    endpoints: Object.entries(file.endpoints).map(([name, endpoint]) => toEndpoint(name, endpoint)),
    apiKeys: file.api.keys.map(toApiKey),
    policy: toPolicy(file.policy),
    identity: file.identity,
    products: Object.entries(file.products).map(([id, product]) => toProduct(id, product)),
    sync: toSync(sync),
    provider: provider ?? null,
    log: { level: overrides.logLevel ?? file.log.level },
  }
}

function toEndpoint(name: string, { environment, secrets, toleranceSeconds }: EndpointFile): Endpoint {
  return {
    name,
    environment,
    toleranceSeconds,
    secrets: secrets.map((entry) => {
      if (typeof entry === 'string') return { secret: entry, notAfter: null }
      return {
        secret: entry.secret,
        notAfter: entry.notAfter === undefined ? null : Date.parse(entry.notAfter),
      }
    }),
  }
}

function toApiKey({ name, hash, scopes, environments }: ApiKeyFile): ApiKey {
  return { name, sha256: hash.slice('sha256:'.length).toLowerCase(), scopes, environments }
}

/**
 * A policy that is written as in the config file.
 * @throws {LatchkeyError} `invalid_request` with every problem, named as in a body that holds it as `policy`
 */
export function policyFrom(given: unknown): Policy {
  const parsed = policySchema.safeParse(given, { error: describeIssue })
  if (parsed.success) return toPolicy(parsed.data)
  const issues = toIssues(parsed.error).map(({ path, message }) => ({ path: `policy.${path}`, message }))
  throw new LatchkeyError('invalid_request', 'The policy is not valid.', { issues })
}

function toPolicy({ grantOn, revokeOn, ...switches }: PolicyFile): Policy {
  const documented = DOCUMENTED_POLICY
  return {
    grantOn: {
      card: grantOn?.card ?? documented.grantOn.card,
      crypto: grantOn?.crypto ?? documented.grantOn.crypto,
      unknown: grantOn?.unknown ?? documented.grantOn.unknown,
    },
    revokeOn: {
      card: revokeOn?.card ?? documented.revokeOn.card,
      crypto: revokeOn?.crypto ?? documented.revokeOn.crypto,
      unknown: revokeOn?.unknown ?? documented.revokeOn.unknown,
    },
    failedRenewal: switches.failedRenewal ?? documented.failedRenewal,
    canceled: switches.canceled ?? documented.canceled,
    completed: switches.completed ?? documented.completed,
    paidCycle: switches.paidCycle ?? documented.paidCycle,
    lapseAfter:
      typeof switches.lapseAfter === 'string' ? parseDuration(switches.lapseAfter) : documented.lapseAfter,
  }
}

function toBackup(backup: ConfigFile['backup'], path: string): BackupConfig | null {
  if (backup === undefined) return null
  const { folder, every, keep } = backup
  return { folder: resolve(dirname(path), folder), everyMs: parseDuration(every), keep }
}

/** What was pasted from the payments service's own product counts as one more target each, for live access. */
function toProduct(id: string, product: ConfigFile['products'][string]): ProductConfig {
  const { name, targets, communityGuildId, communityRoleId, messengerGroupId } = product
  const environment = 'live'
  const pasted: Target[] = []
  if (communityGuildId !== undefined && communityRoleId !== undefined) {
    pasted.push({ adapter: 'discord', guildId: communityGuildId, roleId: communityRoleId, environment })
  }
  if (messengerGroupId !== undefined) {
    pasted.push({ adapter: 'telegram', groupId: messengerGroupId, environment })
  }
  return { id, name: name ?? null, targets: [...targets, ...pasted] }
}

function toSync({ discord, telegram, webhook, sweepEvery, removals }: ConfigFile['sync']): SyncConfig {
  return {
    discord: discord === undefined ? null : toBot(discord),
    telegram: telegram === undefined ? null : { ...toBot(telegram), updates: telegram.updates ?? null },
    webhook: webhook === undefined ? null : toOutbound(webhook),
    sweepEveryMs: parseDuration(sweepEvery),
    removals,
  }
}

function toOutbound({
  url,
  secret,
  environments,
}: NonNullable<ConfigFile['sync']['webhook']>): OutboundConfig {
  return { url, secrets: typeof secret === 'string' ? [secret] : secret, environments }
}

function toBot({ botToken, apiUrl }: NonNullable<ConfigFile['sync']['discord']>): BotConfig {
  return { botToken, apiUrl: apiUrl ?? null }
}
