import { randomBytes } from 'node:crypto'
import type { Transaction } from 'kysely'
import type { Database } from './schema.js'
import { getSetting, setSetting } from './settings.js'

const SETTING = 'fingerprint_key'
const KEY_BYTES = 32

/** The store's own key for fingerprints of those who are erased; made when it is first asked for. */
export async function fingerprintKey(trx: Transaction<Database>): Promise<string> {
  const known = await getSetting(trx, SETTING)
  if (known !== null) return known
  const made = randomBytes(KEY_BYTES).toString('base64url')
  await setSetting(trx, SETTING, made)
  return made
}

/** Goes on with the key of the store that this one takes the place of, unless it has one already. */
export async function keepFingerprintKey(trx: Transaction<Database>, key: string): Promise<void> {
  if ((await getSetting(trx, SETTING)) === null) await setSetting(trx, SETTING, key)
}
