import { expect, it } from 'vitest'
import { writeBeside } from '../daemon/other-writer.js'
import type { RunningDaemon } from '../daemon/running-daemon.js'
import { eventually } from '../setup/eventually.js'
import { accessBy, done, ended, listener, openMarket, start, truthOf } from './market.js'

/** A backfill that waits for the first page of a list, in a store which another writer holds from then on. */
async function meeting() {
  const market = await openMarket()
  const daemon = await listener(market)
  const asked = Promise.withResolvers<void>()
  const page = Promise.withResolvers<boolean>()
  market.relay.before = (path) => {
    if (!path.startsWith('GET /v3/subscriptions')) return false
    asked.resolve()
    return page.promise
  }
  const { id } = await start(daemon)
  await asked.promise
  const whileHeld = (work: () => Promise<void>) => writeBeside(daemon, (db) => db.transaction().execute(work))
  return { market, daemon, id, whileHeld, answerPage: () => page.resolve(false) }
}

const said = (daemon: RunningDaemon, words: string) =>
  eventually(() =>
    expect(daemon.logged().map(({ msg }) => msg)).toContainEqual(expect.stringContaining(words)),
  )

it('a backfill that fails as the store can’t be written says so once it can, and goes on when it is started again', async () => {
  const { market, daemon, id, whileHeld, answerPage } = await meeting()
  await whileHeld(async () => {
    answerPage()
    await said(daemon, 'could not save how a backfill ended')
  })
  expect(await ended(daemon, id)).toMatchObject({ state: 'failed' })
  expect(await done(daemon)).toMatchObject({ stored: { total: 10 } })
  expect(await accessBy(daemon, market)).toEqual(await truthOf(market))
})

it('a backfill whose end could not be saved does not keep a daemon from stopping, and the next one continues it', async () => {
  const { market, daemon, id, whileHeld, answerPage } = await meeting()
  await whileHeld(async () => {
    answerPage()
    await said(daemon, 'could not save how a backfill ended')
    await daemon.stop()
  })
  const next = await listener(market, { folder: daemon.folder })
  expect(await ended(next, id)).toMatchObject({ state: 'done' })
  expect(await accessBy(next, market)).toEqual(await truthOf(market))
})
