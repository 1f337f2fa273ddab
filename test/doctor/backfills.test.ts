import { describe, expect, it } from 'vitest'
import { type Backfill, failed, newBackfill, recordOf, wholePlan } from '../../src/backfill/run.js'
import { checkBackfills } from '../../src/doctor/backfills.js'
import { saveBackfill } from '../../src/store/backfill.js'
import { temporaryStore } from '../store/temporary-store.js'

const NOW = Date.UTC(2026, 5, 1, 12)
const HOUR = 3_600_000
const ACCESS = { baseUrl: 'https://api.example.com', apiKey: 'sk_live_key', legacy: false }
const ASKED = {
  provider: { live: ACCESS, sandbox: null, hasUnused: false },
  backfill: { schedule: null, timezone: 'UTC' },
}

const BEGUN = newBackfill({
  ...{ id: 'bkf_1', number: 1, plan: wholePlan('live'), startedAt: NOW - 2 * HOUR },
  ...{ newestSeq: 0, newestChange: 0 },
})
const ACCESS_KEPT = { count: 0, gains: 0, losses: 0, otherwise: 0, sample: [] }
const DONE: Backfill = {
  ...BEGUN,
  found: { ...BEGUN.found, payments: 4, subscriptions: 2 },
  outcome: {
    state: 'done',
    endedAt: NOW - HOUR,
    result: { stored: { 'payment.refunded': 1, 'subscription.renewed': 2 }, access: ACCESS_KEPT },
  },
}
const SHOWN = 'the last one ended at 2026-06-01T11:00:00.000Z, 1h ago: 6 records read, 3 events stored'

/** What the doctor finds after these. */
async function findings(runs: readonly Backfill[], config: Parameters<typeof checkBackfills>[1] = ASKED) {
  const db = await temporaryStore()
  for (const run of runs) {
    const step = { environment: run.plan.environment, id: run.id, record: recordOf(run) }
    await db.transaction().execute((trx) => saveBackfill(trx, step))
  }
  return checkBackfills(db, config, NOW)
}

describe('of backfills, the doctor tells', () => {
  it('nothing where the service may not be asked', async () => {
    expect(await findings([DONE], { ...ASKED, provider: { ...ASKED.provider, live: null } })).toEqual([])
  })

  it('that there was none', async () => {
    expect(await findings([])).toMatchObject([{ level: 'ok', what: 'backfill live' }])
  })

  it('when the last one ended, and what came of it', async () => {
    expect(await findings([DONE])).toMatchObject([{ level: 'ok', detail: `${SHOWN}, 0 differences left` }])
  })

  it('of differences, to look at those with which access may be wrong', async () => {
    const differing = (differences: Backfill['found']['differences'], unknown = 0) =>
      findings([{ ...DONE, found: { ...DONE.found, differences, unknown } }])
    expect(await differing({ status_unexplained: 3 })).toMatchObject([
      { level: 'ok', detail: `${SHOWN}, 3 differences left` },
    ])
    expect(await differing({ status_unexplained: 3, term_end_unknown: 1 }, 1)).toMatchObject([
      {
        level: 'warn',
        detail: `${SHOWN}, 4 differences left; access by 1 record may be other than the service has it; 1 source of access here is not known to the service`,
        todo: '`latchkey backfill --environment live` names them',
      },
    ])
  })

  it('that the newest failed, and when the last complete one was', async () => {
    const next = { ...BEGUN, id: 'bkf_2', number: 2 }
    expect(await findings([DONE, failed(next, new Error('odd'), NOW)])).toMatchObject([
      {
        level: 'warn',
        detail: `the newest one failed: The cause is in the log. Of those before it, ${SHOWN}, 0 differences left`,
      },
    ])
  })

  it('nothing of runs over a part, or of another environment', async () => {
    const part = { ...DONE, plan: { ...DONE.plan, customerId: 'cus_1' } }
    const other = { ...DONE, id: 'bkf_2', plan: wholePlan('sandbox') }
    expect(await findings([part, other])).toMatchObject([
      { level: 'ok', detail: expect.stringMatching(/^none has ended yet/) },
    ])
  })
})
