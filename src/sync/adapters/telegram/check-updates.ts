import type { WebhookInfo } from 'grammy/types'
import { failedCheck } from '../../failed-check.js'
import type { CheckFinding } from '../../platform.js'
import type { Call } from './calls.js'
import { isConflict, type Reception } from './reception.js'
import { Refusal } from './refusal.js'

/** What such a finding is about. */
export const UPDATES = 'telegram:updates'

/** Telegram tells of the last failed delivery for ever; it tries again far sooner than this. */
const FAILURE_LASTS_SECONDS = 3_600

export interface CheckUpdatesDeps {
  readonly call: Call
  readonly reception: Pick<Reception, 'agreedAt' | 'failure'>
  /** Where updates are delivered; null: they are fetched. */
  readonly webhookUrl: string | null
  /** Epoch milliseconds. */
  readonly clock: () => number
}

/**
 * Asks Telegram how the updates of the bot come, on which every join and every deep link depends.
 * @throws what `Call` does
 */
export type CheckUpdates = () => Promise<CheckFinding>

export function createCheckUpdates({ call, reception, webhookUrl, clock }: CheckUpdatesDeps): CheckUpdates {
  const isDelivered = webhookUrl !== null
  const findProblem = isDelivered ? problemOfDelivery(webhookUrl) : problemOfFetching

  return async () => {
    const info = await call((api) => api.getWebhookInfo())
    const [failure, agreedAt] = [reception.failure(), reception.agreedAt()]
    // Until it is agreed on how they are to come, what an earlier process or program agreed on is no finding.
    const problem = agreedAt === null ? null : findProblem(info, { failure, agreedAt, now: clock() })
    if (problem !== null) return { about: UPDATES, isFine: false, message: problem }
    if (failure instanceof Refusal && isDelivered) return refused(failure)
    if (failure !== null) return failedCheck(UPDATES, failure)
    return { about: UPDATES, isFine: true, message: `Updates are ${isDelivered ? 'delivered' : 'fetched'}.` }
  }
}

interface Standing {
  readonly failure: unknown
  /** Epoch milliseconds. */
  readonly agreedAt: number
  /** Epoch milliseconds. */
  readonly now: number
}

type FindProblem = (info: WebhookInfo, standing: Standing) => string | null

const problemOfFetching: FindProblem = ({ url = '' }, { failure }) => {
  if (url !== '') {
    return 'Another program has the updates of this bot delivered: stop it and start the daemon anew, or give this one a bot of its own.'
  }
  if (!isConflict(failure)) return null
  return 'Another program fetches the updates of this bot: stop it, or give this one a bot of its own.'
}

function problemOfDelivery(ownUrl: string): FindProblem {
  return (info, { agreedAt, now }) => {
    if (!isSameUrl(info.url ?? '', ownUrl)) {
      return 'Another program has changed where the updates of this bot are delivered: stop it and start the daemon anew, or give this one a bot of its own.'
    }
    const { last_error_date: failedAt, last_error_message: reason, pending_update_count: waiting } = info
    const since = Math.max(agreedAt / 1_000, now / 1_000 - FAILURE_LASTS_SECONDS)
    // What has been delivered since is no problem any more.
    if (failedAt === undefined || failedAt < Math.floor(since) || waiting === 0) return null
    return `Telegram can't deliver updates (${reason}): see that your proxy publishes POST /platforms/telegram/updates under sync.telegram.updates.url, and leaves the header X-Telegram-Bot-Api-Secret-Token as it is.`
  }
}

/** Telegram tells an address in its own spelling. */
function isSameUrl(told: string, own: string): boolean {
  return URL.canParse(told) && new URL(told).href === new URL(own).href
}

function refused({ description }: Refusal): CheckFinding {
  const message = `Telegram refuses what sync.telegram.updates asks for (${description}): mend it.`
  return { about: UPDATES, isFine: false, message }
}
