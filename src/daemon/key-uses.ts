import type { ApiKey } from '../handlers/api-key.js'
import type { KeyUse } from '../handlers/control.js'
import type { Db } from '../store/schema.js'
import { loadKeyUse } from '../store/settings.js'
import type { Writer } from './writer.js'

/**
 * When each API key was last used. Requests only note it in memory; it is saved now and then.
 * @param apiKeys called each time, since a reload may change them
 */
export function createKeyUses(
  db: Db,
  writer: Pick<Writer, 'saveKeyUses'>,
  apiKeys: () => readonly ApiKey[],
  clock: () => number,
) {
  /** By the hashes of the keys. */
  const used = new Map<string, number>()
  let savedAt = 0

  return {
    note({ sha256 }: ApiKey): void {
      used.set(sha256, clock())
    },
    async save(): Promise<void> {
      const now = clock()
      const unsaved = new Map([...used].filter(([, at]) => at >= savedAt))
      if (unsaved.size > 0) await writer.saveKeyUses(unsaved)
      savedAt = now
    },
    /** Those of the config. Another instance may have seen a later use than this one. */
    list: (): Promise<readonly KeyUse[]> =>
      Promise.all(
        apiKeys().map(async (key) => {
          const lastUsedAt = Math.max(used.get(key.sha256) ?? 0, (await loadKeyUse(db, key.sha256)) ?? 0)
          return { ...key, lastUsedAt: lastUsedAt === 0 ? null : lastUsedAt }
        }),
      ),
  }
}
