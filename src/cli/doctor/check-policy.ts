import type { Kysely } from 'kysely'
import type { Config } from '../../config/types.js'
import { isLatchkeyError } from '../../errors.js'
import type { RebuildJson } from '../../handlers/rebuild-json.js'
import { isSamePolicy, loadPolicy } from '../../store/policy.js'
import { loadJob } from '../../store/recompute-job.js'
import type { Database } from '../../store/schema.js'
import { localApi } from '../api.js'
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
    ...(await checkRebuild(db, config)),
  ]
}

async function checkRebuild(db: Kysely<Database>, config: Config): Promise<readonly Finding[]> {
  const job = await loadJob(db)
  if (job === null || job.endpoints !== null) return []
  const done = `${job.reached} of ${job.newest} events done`
  if (await isRebuilding(config)) return [ok('rebuild', `under way, ${done}`)]
  return [
    job.isMoving
      ? warn(
          'rebuild',
          `interrupted while sources moved to the policy in force, ${done}`,
          'go on with it: `latchkey rebuild`; a daemon goes on when it starts',
        )
      : warn('rebuild', `interrupted, ${done}`, 'go on with it: `latchkey rebuild`'),
  ]
}

async function isRebuilding(config: Config): Promise<boolean> {
  try {
    const status = await localApi(config).get<RebuildJson>('/rebuild')
    return status.state === 'running'
  } catch (error) {
    if (isLatchkeyError(error)) return false
    throw error
  }
}
