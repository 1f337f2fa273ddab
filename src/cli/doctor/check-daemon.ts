import type { Config } from '../../config/types.js'
import { isLatchkeyError } from '../../errors.js'
import { socketFileOf } from '../../handlers/local-access.js'
import { isStoreBusy } from '../../store/sqlite/connection.js'
import { isStoreServed } from '../../store/sqlite/file.js'
import { AS_ITS_USER, isOfAnotherUser, refusalText } from '../system-refusal.js'
import { instantText } from './amounts.js'
import { type DaemonFacts, readDaemonFacts } from './daemon-facts.js'
import { type Finding, fail, ok, warn } from './finding.js'

/** What is known of the daemon. */
export interface ExaminedDaemon {
  readonly finding: Finding
  /** Null where none answers. */
  readonly facts: DaemonFacts | null
  /** Whether some process works on the database; also where that can't be told. */
  readonly isServed: boolean
}

/** Whether a daemon serves the database, and what it alone knows. */
export async function checkDaemon(config: Config): Promise<ExaminedDaemon> {
  try {
    const facts = await readDaemonFacts(config)
    if (facts === null) return withoutAnswer(config)
    const since = facts.startedAt === null ? '' : ` since ${instantText(facts.startedAt)}`
    return { finding: ok('daemon', `running${since}`), facts, isServed: true }
  } catch (error) {
    const refused = isLatchkeyError(error, 'daemon_failed') ? error.cause : error
    if (isOfAnotherUser(refused) || isStoreBusy(refused)) {
      const socket = socketFileOf(config.database.file)
      const detail = `whether one runs can’t be told at ${socket}, ${refusalText(refused)}`
      return { finding: fail('daemon', detail, AS_ITS_USER), facts: null, isServed: true }
    }
    if (!isLatchkeyError(error, 'daemon_failed')) throw error
    const finding = fail('daemon', error.message, 'look into its log, and start it again')
    return { finding, facts: null, isServed: true }
  }
}

function withoutAnswer({ database: { file } }: Config): ExaminedDaemon {
  const unknown = 'refused deliveries and the sender’s clock are not known'
  if (!isStoreServed(file)) {
    const finding = warn('daemon', `not running, so that ${unknown}`, 'start it: `latchkey serve`')
    return { finding, facts: null, isServed: false }
  }
  const detail = `a process has the database, and none answers at ${socketFileOf(file)}, so that ${unknown}`
  const todo = 'wait for the command that works on it, or look into the daemon’s log'
  return { finding: warn('daemon', detail, todo), facts: null, isServed: true }
}
