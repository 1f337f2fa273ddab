import type { Config } from '../../config/types.js'
import { isLatchkeyError } from '../../errors.js'
import { socketFileOf } from '../../handlers/local-access.js'
import { isStoreBusy } from '../../store/connection.js'
import { isStoreServed } from '../../store/served.js'
import { AS_ITS_USER, isOfAnotherUser, refusalText } from '../system-refusal.js'
import { instantText } from './amounts.js'
import { type DaemonFacts, readDaemonFacts } from './daemon-facts.js'
import { type Finding, fail, ok, warn } from './finding.js'

/** Whether a daemon serves the database, and what it alone knows. */
export async function checkDaemon(
  config: Config,
): Promise<{ readonly finding: Finding; readonly facts: DaemonFacts | null }> {
  try {
    const facts = await readDaemonFacts(config)
    if (facts === null) return { finding: withoutAnswer(config), facts }
    const since = facts.startedAt === null ? '' : ` since ${instantText(facts.startedAt)}`
    return { finding: ok('daemon', `running${since}`), facts }
  } catch (error) {
    const refused = isLatchkeyError(error, 'daemon_failed') ? error.cause : error
    if (isOfAnotherUser(refused) || isStoreBusy(refused)) {
      const socket = socketFileOf(config.database.file)
      const detail = `whether one runs can’t be told at ${socket}, ${refusalText(refused)}`
      return { finding: fail('daemon', detail, AS_ITS_USER), facts: null }
    }
    if (!isLatchkeyError(error, 'daemon_failed')) throw error
    return { finding: fail('daemon', error.message, 'look into its log, and start it again'), facts: null }
  }
}

function withoutAnswer({ database: { file } }: Config): Finding {
  const unknown = 'refused deliveries and the sender’s clock are not known'
  if (!isStoreServed(file)) {
    return warn('daemon', `not running, so that ${unknown}`, 'start it: `latchkey serve`')
  }
  const detail = `a process has the database, and none answers at ${socketFileOf(file)}, so that ${unknown}`
  return warn('daemon', detail, 'wait for the command that works on it, or look into the daemon’s log')
}
