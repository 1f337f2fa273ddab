import { createHash, randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { DOCUMENTED_POLICY, type Policy } from '../entitlements/policy.js'
import { bulkLookup, bulkUpsert } from './bulk.js'
import type { Db, Tx } from './schema.js'

/** Prepared once: every batch reads some. */
const select = bulkLookup(['key'], sql<{ value: string }>`select value from settings where`)

/** Null if the setting was never saved. */
export async function getSetting(db: Db, key: string): Promise<string | null> {
  const [row] = await select(db, [[key]])
  return row?.value ?? null
}

export function setSetting(trx: Tx, key: string, value: string): Promise<void> {
  return upsert(trx, [{ key, value }])
}

const upsert = bulkUpsert('settings', ['key'])

/** The beginning of a hash names a key as well as the whole. */
const keyUsed = (sha256: string): string => `key_used ${sha256.slice(0, 16)}`

/** @param uses when API keys were last used, in epoch milliseconds, by the hashes of the keys */
export function saveKeyUses(trx: Tx, uses: ReadonlyMap<string, number>): Promise<void> {
  const rows = [...uses].map(([sha256, at]) => ({ key: keyUsed(sha256), value: String(at) }))
  return upsert(trx, rows)
}

/** Null for a key that was never used. */
export async function loadKeyUse(db: Db, sha256: string): Promise<number | null> {
  const at = await getSetting(db, keyUsed(sha256))
  return at === null ? null : Number(at)
}

const CONSOLE_SECRET = 'console_secret'

/** Gives the store what seals the console's sessions, if it has nothing so far. */
export function ensureConsoleSecret(db: Db): Promise<void> {
  return db.transaction().execute(async (trx) => {
    if ((await getSetting(trx, CONSOLE_SECRET)) === null)
      await setSetting(trx, CONSOLE_SECRET, randomBytes(32).toString('hex'))
  })
}

/** Of a store that has been opened for writing. */
export async function consoleSecret(db: Db): Promise<Buffer> {
  const secret = await getSetting(db, CONSOLE_SECRET)
  if (secret === null) throw new Error('the store has no console secret: it is made when the store is opened')
  return Buffer.from(secret, 'hex')
}

const SETTING = 'policy'

/**
 * Puts the configured policy in force, but only while nothing is stored that it could change: no source may mix two
 * policies.
 */
export function ensurePolicy(db: Db, configured: Policy): Promise<void> {
  return db.transaction().execute(async (trx) => {
    const anyEvent = await trx.selectFrom('events').select('seq').limit(1).executeTakeFirst()
    if (anyEvent === undefined || (await loadPolicy(trx)) === null) await savePolicy(trx, configured)
  })
}

const RULES = 'rules_version'

/** The version of the rules that all sources were folded by; 1 in a store of Latchkey 1.0.0. */
export async function loadRulesVersion(db: Db): Promise<number> {
  return Number((await getSetting(db, RULES)) ?? 1)
}

export function saveRulesVersion(trx: Tx, version: number): Promise<void> {
  return setSetting(trx, RULES, String(version))
}

/** The last policy read: every batch asks, and a fold prepares each policy object only once. */
let lastRead: { readonly text: string; readonly policy: Policy } | null = null

/** The policy in force; null in a store that no daemon has opened yet. */
export async function loadPolicy(db: Db): Promise<Policy | null> {
  const text = await getSetting(db, SETTING)
  if (text === null) return null
  if (lastRead?.text !== text)
    lastRead = { text, policy: { ...DOCUMENTED_POLICY, ...(JSON.parse(text) as Partial<Policy>) } }
  return lastRead.policy
}

/** The policy in force of a store that has been opened for writing. */
export async function policyInForce(db: Db): Promise<Policy> {
  const policy = await loadPolicy(db)
  if (policy === null) throw new Error('the store has no policy: it is settled when the store is opened')
  return policy
}

/** Must be written together with the sources that were folded under it. */
export function savePolicy(trx: Tx, policy: Policy): Promise<void> {
  return setSetting(trx, SETTING, JSON.stringify(policy))
}

/** A short hash by which two processes see whether they mean the same policy. */
export function policyFingerprint(policy: Policy): string {
  return createHash('sha256').update(JSON.stringify(policy)).digest('hex').slice(0, 16)
}
