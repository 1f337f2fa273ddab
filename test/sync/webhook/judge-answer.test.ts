import { describe, expect, it } from 'vitest'
import { type Answer, judgeAnswer, retryAfter } from '../../../src/sync/outbound/message.js'

const NOON = Date.parse('2026-03-01T12:00:00.000Z')
const HOUR = 3_600_000
const DAY = 24 * HOUR

const NEW = { attempts: 0, firstAttemptAt: null, dueAt: NOON }

function answered(status: number, header: string | null = null): Answer {
  return { status, reason: `answered ${status}`, closedUntil: retryAfter(header, NOON) }
}

/** How long each attempt of a message waits that is never taken, and how it ends. */
function attemptsOf(random: number) {
  const waits: number[] = []
  let message: Parameters<typeof judgeAnswer>[1] = NEW
  for (let now = NOON; ; ) {
    const failed = { status: null, reason: 'no connection', closedUntil: null }
    const result = judgeAnswer(failed, message, now, random)
    if (result.kind !== 'retry') return { waits, result, lasted: now - NOON }
    waits.push(result.nextAttemptAt - now)
    const { firstAttemptAt, nextAttemptAt: dueAt } = result
    message = { attempts: message.attempts + 1, firstAttemptAt, dueAt }
    now = dueAt
  }
}

describe('an answer of the receiver', () => {
  it.each([200, 202, 204, 299])('delivers by the status %i', (status) => {
    expect(judgeAnswer(answered(status), NEW, NOON, 0)).toEqual({ kind: 'delivered' })
  })

  it.each([199, 302, 308, 400, 401, 404, 409, 429, 500, 503])(
    'is to be tried again by the status %i',
    (status) => {
      expect(judgeAnswer(answered(status), NEW, NOON, 1)).toEqual({
        kind: 'retry',
        error: `answered ${status}`,
        firstAttemptAt: NOON,
        nextAttemptAt: NOON + 1_000,
      })
    },
  )

  it('doubles the wait up to an hour, for three days', () => {
    const { waits, result, lasted } = attemptsOf(1)
    expect(waits.slice(0, 5)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000])
    expect(Math.max(...waits)).toBe(HOUR)
    expect(result).toEqual({ kind: 'failed', error: 'no connection', reason: 'given_up' })
    expect(lasted).toBeGreaterThanOrEqual(3 * DAY)
    expect(lasted).toBeLessThan(3 * DAY + HOUR)
  })

  it('counts no time for which the message was held back', () => {
    const paused = { attempts: 1, firstAttemptAt: NOON - 4 * DAY, dueAt: NOON - 4 * DAY + 1_000 }
    expect(judgeAnswer(answered(503), paused, NOON, 1)).toMatchObject({
      kind: 'retry',
      firstAttemptAt: NOON - 1_000,
    })
  })

  it('leaves the wait to chance, within that', () => {
    expect(attemptsOf(0.5).waits.slice(0, 3)).toEqual([500, 1_000, 2_000])
    expect(Math.max(...attemptsOf(0.5).waits)).toBe(HOUR / 2)
  })

  it.each([
    ['120', NOON + 120_000],
    ['Sun, 01 Mar 2026 13:00:00 GMT', NOON + HOUR],
    ['99999999', NOON + DAY],
  ])('is obeyed where it says Retry-After: %s', (header, until) => {
    expect(judgeAnswer(answered(503, header), NEW, NOON, 1)).toMatchObject({
      nextAttemptAt: until,
    })
  })

  it.each(['soon', '', '-5', '1.5e3 s'])('is an ordinary failure where it says Retry-After: %s', (header) => {
    expect(judgeAnswer(answered(503, header), NEW, NOON, 1)).toMatchObject({
      nextAttemptAt: NOON + 1_000,
    })
  })

  it('never makes a message due before its back-off, whatever the date says', () => {
    const result = judgeAnswer(answered(503, 'Sun, 01 Mar 2020 13:00:00 GMT'), NEW, NOON, 1)
    expect(result).toMatchObject({ nextAttemptAt: NOON + 1_000 })
  })
})
