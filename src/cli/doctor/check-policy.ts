import type { Kysely } from 'kysely'
import type { Config } from '../../config/types.js'
import type { Policy } from '../../entitlements/policy.js'
import { isLatchkeyError } from '../../errors.js'
import type { RebuildJson } from '../../handlers/rebuild-json.js'
import { isSamePolicy, loadPolicy } from '../../store/policy.js'
import { loadRebuildProgress } from '../../store/rebuild-progress.js'
import type { Database } from '../../store/schema.js'
import { localDaemon } from '../daemon-client.js'
import { type Finding, ok, warn } from './finding.js'

/** Whether what stands was folded under the configured policy, and whether a rebuild has been left unfinished. */
export async function checkPolicy(db: Kysely<Database>, config: Config): Promise<readonly Finding[]> {
  const inForce = await loadPolicy(db)
  const isInForce = inForce === null || isSamePolicy(inForce, config.policy)
  return [
    isInForce
      ? ok('policy', 'the configured one is in force')
      : warn(
          'policy',
          'the configured one is not in force',
          'see whom it would concern: `latchkey policy diff`',
        ),
    ...(await checkRebuild(db, config, inForce)),
  ]
}

async function checkRebuild(
  db: Kysely<Database>,
  config: Config,
  inForce: Policy | null,
): Promise<readonly Finding[]> {
  const progress = await loadRebuildProgress(db)
  if (progress === null) return []
  const done = `${progress.folded} sources folded`
  if (await isRebuilding(config)) return [ok('rebuild', `under way, ${done}`)]
  return [warn('rebuild', `interrupted, ${done}`, goOn(progress.policy, config.policy, inForce))]
}

/** Either command goes on with a rebuild under its own policy alone, and begins anew in the place of any other. */
function goOn(under: Policy, configured: Policy, inForce: Policy | null): string {
  if (inForce !== null && isSamePolicy(under, inForce)) return 'go on with it: `latchkey rebuild`'
  if (isSamePolicy(under, configured)) return 'go on with it: `latchkey policy apply`'
  return 'its policy is configured no more: begin anew with `latchkey rebuild`'
}

async function isRebuilding(config: Config): Promise<boolean> {
  try {
    const status = (await localDaemon(config)({ method: 'GET', path: '/rebuild' })) as RebuildJson
    return status.state === 'running'
  } catch (error) {
    if (isLatchkeyError(error)) return false
    throw error
  }
}
