import { expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { loadJob, NOTHING_READ, saveJob } from '../../src/store/recompute.js'
import { savePolicy } from '../../src/store/settings.js'
import { eventually } from '../setup/eventually.js'
import { openStoreAt } from '../world.js'
import { ask, type RunningDaemon, runDaemon, send } from './running-daemon.js'
import { CUSTOMER, PRODUCT, wireEvent } from './wire-events.js'

const NOTHING_GRANTS = {
  ...DOCUMENTED_POLICY,
  grantOn: { card: [], crypto: [], unknown: [] },
  paidCycle: 'informs',
} as const

async function isActive(daemon: RunningDaemon): Promise<unknown> {
  const answer = await (await ask(daemon, `/entitlements/${CUSTOMER}/${PRODUCT}`)).json()
  return (answer as { active: unknown }).active
}

it('goes on by itself at the start where a policy was put in force and not everything was moved to it', async () => {
  const before = await runDaemon()
  await send(before, wireEvent('payment.authorized', { id: 'evt_paid', payment: 'pay_1' }))
  expect(await isActive(before)).toBe(true)
  await before.stop()
  const db = await openStoreAt(before.databaseFile, { readOnly: false })
  await db.transaction().execute(async (trx) => {
    await savePolicy(trx, NOTHING_GRANTS)
    await saveJob(trx, {
      scope: ['live', 'sandbox'],
      endpoints: null,
      policy: NOTHING_GRANTS,
      isMoving: true,
      normalizerVersion: 1,
      newest: 1,
      reached: 0,
      changesAfter: 0,
      counts: NOTHING_READ,
    })
  })
  await db.destroy()

  const daemon = await runDaemon({ folder: before.folder })
  await eventually(async () => expect(await daemon.stored(loadJob)).toBeNull())
  expect(await isActive(daemon)).toBe(false)
  expect(daemon.logged().map(({ msg }) => msg)).toContain('rebuilt from the stored events')
})
