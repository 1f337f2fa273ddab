/* While the daemon does not answer: questions fail at once, and one request at a time finds out when it is back. */

import { type Api, isUnavailable, LatchkeyError, sleep } from './request.js'

/** A question about nobody: if it is answered, others are. */
const PROBE = '/entitlements/probe'
const FIRST_WAIT_MS = 100
const LONGEST_WAIT_MS = 1_000
/** Most often only one question has failed: others wait this long for the probe that shows it. */
const PATIENCE_MS = 50
/** By which probes and timers may be late. */
const SLACK_MS = 1_000

interface Outage {
  /** What questions fail with. */
  readonly failure: LatchkeyError
  readonly over: AbortController
  /** When the newest probe was sent. */
  probedAt: number
  /** Whether it was answered. */
  verdict: Promise<boolean>
}

/**
 * The same, but once a question was not answered, later ones fail at once, until a probe is answered.
 *
 * What is known must be new: where nothing runs between two questions, as on the edge, or in a machine that slept, the
 * next question is asked as ever.
 */
export function withBreaker(api: Api, closing: AbortSignal): Api {
  const { now, timeout } = api
  let outage: Outage | null = null

  const isOn = ({ probedAt }: Outage): boolean => now() - probedAt <= timeout + LONGEST_WAIT_MS + SLACK_MS

  function end(): void {
    outage?.over.abort()
    outage = null
  }
  closing.addEventListener('abort', end)

  function begin(failure: LatchkeyError): void {
    if (closing.aborted || (outage !== null && isOn(outage))) return
    end()
    outage = { failure, over: new AbortController(), probedAt: now(), verdict: Promise.resolve(false) }
    void keepProbing(outage)
  }

  async function keepProbing(own: Outage): Promise<void> {
    const { signal } = own.over
    for (let failures = 0; !signal.aborted; failures += 1) {
      own.probedAt = now()
      own.verdict = isAnswered(signal)
      if ((await own.verdict) && outage === own) end()
      else await sleep(api.backoff(failures, FIRST_WAIT_MS, LONGEST_WAIT_MS), signal, { isIdle: true })
    }
  }

  /** Also by a refusal: then questions say why. */
  async function isAnswered(over: AbortSignal): Promise<boolean> {
    const attempt = new AbortController()
    const giveUp = (): void => attempt.abort()
    const timer = setTimeout(giveUp, timeout)
    over.addEventListener('abort', giveUp)
    try {
      const init = { signal: attempt.signal, headers: { 'Cache-Control': 'max-age=0' } }
      await (await api.send(PROBE, init)).text()
      return true
    } catch (error) {
      return error instanceof LatchkeyError && !isUnavailable(error)
    } finally {
      clearTimeout(timer)
      over.removeEventListener('abort', giveUp)
    }
  }

  return {
    ...api,
    async ask(path, init, read) {
      const known = outage
      if (known !== null && isOn(known)) {
        const patience = known.probedAt + PATIENCE_MS - now()
        if (patience > 0) await Promise.race([known.verdict, sleep(patience, closing)])
        const { message, retryAfterMs } = known.failure
        if (outage === known)
          throw new LatchkeyError('unavailable', message, { cause: known.failure, retryAfterMs })
      }
      try {
        const answer = await api.ask(path, init, read)
        end()
        return answer
      } catch (error) {
        if (isUnavailable(error)) begin(error)
        else end()
        throw error
      }
    },
  }
}
