import type { Config } from '../config/types.js'
import type { Policy } from '../entitlements/policy.js'
import { type RebuildJson, rebuildJson } from '../handlers/rebuild-json.js'
import { openWriter } from '../ingest/writer.js'
import type { Environment } from '../provider/event.js'
import { policyInForce } from '../store/policy.js'
import { openStore } from '../store/store.js'
import { assertDatabase } from './assert-database.js'
import type { CliContext } from './context.js'

/** `configured`: from then on the configured policy is in force. `in force`: it stays the one it is. */
export type RebuildUnder = 'configured' | 'in force'

export type ShowRebuild = (folded: number, total: number) => void

export interface RebuildReporting {
  readonly show: ShowRebuild
  /** The environment whose changes are reported; undefined: both. */
  readonly only: Environment | undefined
}

/** Holds the store's lock meanwhile, so that no daemon starts. */
export async function rebuildHere(
  under: RebuildUnder,
  { database: { file }, policy: configured }: Config,
  { now }: CliContext,
  { show, only }: RebuildReporting,
): Promise<RebuildJson> {
  assertDatabase(file, 'write')
  const store = await openStore(file, configured, now, (place) => openWriter(place, now))
  try {
    const policy: Policy = under === 'configured' ? configured : await policyInForce(store.reader)
    const summary = await store.writer.rebuild(policy, { onProgress: show })
    return rebuildJson({ state: 'done', summary }, only)
  } finally {
    await store.close()
  }
}
