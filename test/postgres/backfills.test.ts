import { expect, it } from 'vitest'
import { accessBy, done, ended, get, listener, openMarket, start, truthOf } from '../backfill/market.js'
import { call } from '../daemon/running-daemon.js'

/** Two daemons on one database; the third page of a list waits. */
async function two() {
  const market = await openMarket()
  const first = await listener(market)
  const second = await listener(market, { folder: first.folder })
  const held = Promise.withResolvers<void>()
  market.relay.before = async (path) => {
    if (!path.includes('/v3/payments?cursor=')) return false
    held.resolve()
    await new Promise(() => {})
    return true
  }
  return { market, first, second, held: held.promise }
}

it('a backfill runs at one instance, and can be seen, joined and stopped at the other', async () => {
  const { first, second, held } = await two()
  const { id } = await start(first)
  await held
  expect(await get(second, `/backfills/${id}`)).toMatchObject({ state: 'running' })
  expect(await start(second)).toMatchObject({ id })
  const other = await call(second, 'POST', '/backfills?environment=sandbox', { dryRun: true })
  expect(other).toMatchObject({ status: 409, json: { code: 'backfill_running' } })
  // The request that waits is given up.
  const stopped = await call(second, 'DELETE', `/backfills/${id}`)
  expect(stopped).toMatchObject({ status: 200, json: { id, state: 'stopped' } })
})

it('a backfill whose instance ends is continued by another', async () => {
  const { market, first, second, held } = await two()
  const { id } = await start(first)
  await held
  market.relay.before = () => false
  await first.stop()
  expect(await ended(second, id)).toMatchObject({ state: 'done', summary: { stored: { total: 10 } } })
  expect(await accessBy(second, market)).toEqual(await truthOf(market))
  expect(market.relay.asked.filter((path) => path === 'GET /v3/subscriptions')).toHaveLength(1)
  expect(await done(second)).toMatchObject({ stored: { total: 0 } })
})
