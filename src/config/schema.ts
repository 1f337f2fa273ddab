import { z } from 'zod'
import { apiSchema, endpointsSchema } from './access-schema.js'
import { backupSchema } from './backup-schema.js'
import { policySchema } from './policy-schema.js'
import { erasureSchema, retentionSchema } from './privacy-schema.js'
import { databaseSchema, logSchema, serverSchema } from './server-schema.js'
import { identitySchema, productsSchema, providerSchema, syncSchema } from './sync-schema.js'

/** The config file as it is written, its references resolved. An unknown key anywhere is a problem. */
export const configSchema = z.strictObject({
  $schema: z.string().optional(),
  server: serverSchema.prefault({}),
  database: databaseSchema.prefault({}),
  backup: backupSchema.optional(),
  retention: retentionSchema.optional(),
  erasure: erasureSchema.prefault({}),
  endpoints: endpointsSchema.default({}),
  api: apiSchema.prefault({}),
  policy: policySchema.prefault({}),
  identity: identitySchema.prefault({}),
  products: productsSchema.default({}),
  sync: syncSchema.prefault({}),
  provider: providerSchema.optional(),
  log: logSchema.prefault({}),
})
export type ConfigFile = z.infer<typeof configSchema>
