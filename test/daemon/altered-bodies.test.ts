import { describe, expect, it } from 'vitest'
import { alterBody } from '../setup/alter-body.js'
import { erase } from './erasing.js'
import { writeBeside } from './other-writer.js'
import { ask, call, type RunningDaemon, runDaemon, send } from './running-daemon.js'
import { storedUnder } from './stored.js'
import { GRANT, HELD } from './stored-events.js'
import { CUSTOMER, PRODUCT, wireEvent } from './wire-events.js'

const REFUND = wireEvent('payment.refunded', { id: 'evt_1' })

/** Something else than what was delivered, of the same id. */
const alter = (daemon: RunningDaemon, body: string) =>
  writeBeside(daemon, (db) => alterBody(db, 'evt_1', body))

describe('a body that was altered in the database', () => {
  it.each([true, false])('is not read by a replay, which says how many (on trial: %s)', async (dryRun) => {
    const daemon = await runDaemon()
    for (const one of [GRANT, HELD]) await send(daemon, one)
    await alter(daemon, REFUND)
    const rows = () => daemon.stored((db) => db.selectFrom('events').selectAll().orderBy('seq').execute())
    const before = await rows()
    const { status, json } = await call(daemon, 'POST', '/replays', { filter: {}, dryRun })
    expect(status).toBe(202)
    const told = async () => (await call(daemon, 'GET', `/replays/${json.id}`)).json
    await expect.poll(told).toMatchObject({
      state: 'done',
      summary: { read: 1, altered: 1, notReplayable: 0, changed: 0, gains: 0, losses: 0 },
    })
    expect(await rows()).toEqual(before)
    const { json: access } = await call(daemon, 'GET', `/entitlements/${CUSTOMER}/${PRODUCT}`)
    expect(access).toMatchObject({ active: true })
  })

  it('goes as a whole with the erasure of whom it names, so that no part of it passes for what came', async () => {
    const daemon = await runDaemon()
    await send(daemon, GRANT)
    await alter(daemon, GRANT.replace('cus_1', 'cus_other'))
    expect((await erase(daemon, CUSTOMER)).status).toBe(200)
    expect(await storedUnder(daemon, 'evt_1')).toMatchObject([{ body: null, body_removed: 'erased' }])
  })

  it('is a duplicate still of what is delivered again', async () => {
    const daemon = await runDaemon()
    await send(daemon, GRANT)
    await alter(daemon, REFUND)
    expect(await (await send(daemon, GRANT)).json()).toMatchObject({ disposition: 'duplicate' })
    expect(await (await ask(daemon, '/events/evt_1')).json()).toMatchObject({ deliveries: 2, conflicts: 0 })
  })
})
