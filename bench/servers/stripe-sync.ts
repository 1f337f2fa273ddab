import { createRequire } from 'node:module'
import { join } from 'node:path'
import express from 'express'
import { SECRET } from '../sample/signing.js'
import { serveAndAnnounce } from './announce.js'

/*
 * @supabase/stripe-sync-engine as its documentation serves it: each webhook becomes rows that copy Stripe's objects.
 * It asks Stripe for nothing here. It looks for the items of a subscription without an index: the more there are, the
 * longer a renewal takes. Loaded from a folder into which the user has installed it.
 */

interface StripeSync {
  processWebhook(body: Buffer, signature: string | undefined): Promise<void>
}

interface StripeSyncPackage {
  readonly StripeSync: new (config: object) => StripeSync
  runMigrations(config: object): Promise<void>
}

/** As many as a daemon opens. */
const CONNECTIONS = 16
const SCHEMA = 'stripe'
const [, , databaseUrl = '', folder = ''] = process.argv

const load = createRequire(join(folder, 'package.json'))
const { StripeSync, runMigrations } = load('@supabase/stripe-sync-engine') as StripeSyncPackage
await runMigrations({ databaseUrl, schema: SCHEMA })
const sync = new StripeSync({
  poolConfig: { connectionString: databaseUrl, max: CONNECTIONS },
  schema: SCHEMA,
  stripeSecretKey: 'sk_test_none',
  stripeWebhookSecret: SECRET,
  autoExpandLists: false,
  backfillRelatedEntities: false,
})

const app = express()
app.post('/webhooks/:endpoint', express.raw({ type: 'application/json' }), async (req, res) => {
  await sync.processWebhook(req.body as Buffer, req.get('Stripe-Signature'))
  res.json({ received: true })
})
serveAndAnnounce(app)
