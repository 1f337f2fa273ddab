import { z } from 'zod'
import type { Issue } from '../errors.js'
import type { DeepReadonly } from '../handlers/answers.js'
import type { Problem } from '../handlers/problem.js'
import { apiSchema, findRepeatedKeys } from './api-keys.js'
import {
  endpointsSchema,
  findBadNames,
  findLiveAhead,
  findSharedSecrets,
  findSharedServiceIds,
  warnOfEndpoints,
} from './endpoints.js'
import { withFallback } from './fields.js'
import { findTypesOfBothKinds, policySchema, warnOfPolicy } from './policy.js'
import { toIssue, usablePart } from './problems.js'
import { backfillSchema, providerSchema, warnOfProvider } from './provider.js'
import { databaseSchema, findSharedPorts, logSchema, type Overrides, serverSchema } from './server.js'
import {
  findSyncConflicts,
  identitySchema,
  productsSchema,
  syncSchema,
  warnOfProducts,
  warnOfSync,
} from './sync.js'
import {
  backupSchema,
  erasureSchema,
  findScheduledTwice,
  retentionSchema,
  warnOfBackup,
  warnOfRetention,
} from './upkeep.js'

/** The config file as written, with references resolved. Unknown keys are problems. */
export const configSchema = z
  .strictObject({
    $schema: z.string().optional(),
    server: serverSchema.prefault({}),
    database: databaseSchema.prefault({}),
    /** Null: no scheduled backups. */
    backup: withFallback(backupSchema, null),
    /** Null: for ever. */
    retention: withFallback(retentionSchema, null),
    erasure: erasureSchema.prefault({}),
    endpoints: endpointsSchema.prefault({}),
    api: apiSchema.prefault({}),
    console: z.boolean().default(true).describe("Whether the operator's console is served at /console."),
    policy: policySchema.prefault({}),
    identity: identitySchema.prefault({}),
    products: productsSchema.prefault({}),
    sync: syncSchema.prefault({}),
    /** The payments service's own API. */
    provider: providerSchema.prefault({}),
    backfill: backfillSchema.prefault({}),
    log: logSchema.prefault({}),
  })
  .transform(({ $schema, api, ...config }) => ({ ...config, apiKeys: api.keys }))

type Sections = DeepReadonly<z.output<typeof configSchema>>

/** The whole configuration, with references resolved and defaults filled in. It contains secrets: never logged. */
export interface Config extends Omit<Sections, 'database'> {
  /** The path of its file, absolute; a few words if there is no file. */
  readonly path: string
  readonly database: {
    readonly url: string
    /** The SQLite file, absolute. With PostgreSQL, only its folder counts: the local socket is there. */
    readonly file: string
    /** If it is PostgreSQL. */
    readonly postgres?: Sections['database']
  }
}

/** The JSON Schema of the config file as written, for editors. */
export function configJsonSchema(): string {
  const schema = z.toJSONSchema(configSchema, { io: 'input' })
  return `${JSON.stringify({ title: 'Latchkey config', ...schema }, null, 2)}\n`
}

/**
 * Checks values against each other in a file with these known problems. It reads the valid parts, so that a problem in
 * one place does not hide a problem between two others.
 */
export function findConflicts(file: unknown, known: readonly Problem[], overrides: Overrides): Problem[] {
  const usable = usablePart<z.input<typeof configSchema>>(file, known)
  return [
    ...findBadNames(usable?.endpoints ?? {}),
    ...findSharedSecrets(usable?.endpoints ?? {}),
    ...findLiveAhead(usable?.endpoints ?? {}),
    ...findSharedServiceIds(usable?.endpoints ?? {}),
    ...findRepeatedKeys(usable?.api ?? {}),
    ...findTypesOfBothKinds(usable?.policy ?? {}),
    ...findSyncConflicts(usable?.products ?? {}, usable?.sync ?? {}),
    ...findSharedPorts(usable?.server ?? {}, overrides),
    ...findScheduledTwice(usable?.backup ?? {}),
  ]
}

/** Settings that are allowed but probably mistakes. */
export function findWarnings(config: Config): Issue[] {
  const { endpoints, policy, backup, database, retention, products, sync, provider } = config
  return [
    ...warnOfEndpoints(endpoints),
    ...warnOfPolicy(policy),
    ...(database.postgres === undefined ? [] : warnOfBackup(backup)),
    ...warnOfRetention(retention),
    ...warnOfProducts(products, endpoints),
    ...warnOfSync(sync, endpoints),
    ...warnOfProvider(provider),
  ].map(toIssue)
}
