import { expect, it } from 'vitest'
import { EXAMPLE_POLICY } from '../../src/config/policy.js'
import { type Market, openMarket } from '../backfill/market.js'
import { killAtCommit } from '../faults/injected-faults.js'
import { type Json, KEY } from '../sandbox/service.js'
import { eventually } from '../setup/eventually.js'
import { deliver } from '../stories.js'
import { type AskedDaemon, act, configuredFolder, MAY_ALL, type ServedDaemon, serve } from '../world.js'

const SECRET = 'whsec_killed_0123456789'
/**
 * What is killed with which commit. What is stored before one of them was stored after an earlier one, so each is tried
 * at one moment; `BOTH_MOMENTS=1` tries both.
 */
const POINTS = [
  ['chargebacks are known', "select 1 from backfill_records where kind = 'chargeback'"],
  ['a page of subscriptions is read', "select 1 from backfill_records where kind = 'subscription'"],
  ['events of payments are stored', "select 1 from events where type = 'payment.refunded'"],
  ['a page of payments is done', "select 1 from backfill_records where kind = 'payment'"],
  ['events of subscriptions are stored', "select 1 from events where type = 'subscription.canceled'"],
  ['the subscriptions are done', 'select 1 from settings where value like \'%"phase":"unlisted"%\''],
  ['what no list showed was asked for', "select 1 from backfill_records where id = 'HIDDEN'"],
  ['it is to be added up', 'select 1 from settings where value like \'%"phase":"result"%\''],
] as const
const MOMENTS = ['before', 'after'] as const

/** A daemon that heard what was told. */
async function listening({ relay, told }: Market, env: Readonly<Record<string, string>> = {}) {
  const folder = configuredFolder({
    ...MAY_ALL,
    endpoints: { sandbox: { environment: 'sandbox', secrets: [SECRET], aheadAtMost: '10y' } },
    provider: { sandbox: { baseUrl: relay.url, apiKey: KEY, legacy: true } },
    policy: EXAMPLE_POLICY,
  })
  const daemon = await serve(folder, env)
  const events = told.map((event) => ({ id: String(event.id), body: JSON.stringify(event) }))
  const { refused } = await deliver(daemon.url, events, { endpoint: 'sandbox', secret: SECRET })
  expect(refused).toEqual([])
  return { folder, daemon }
}

const begin = (daemon: AskedDaemon) => act(daemon, 'POST', '/backfills?environment=sandbox', {})

/** What a backfill says in the end, and what is stored by then. */
async function outcome(daemon: ServedDaemon, id: string): Promise<Json> {
  const { summary } = await eventually(async () => {
    const run = await act(daemon, 'GET', `/backfills/${id}`)
    expect(run.state).toBe('done')
    return run
  })
  const { items } = await act(daemon, 'GET', '/events?environment=sandbox&endpoint=backfill&limit=100')
  const events = items.map(({ type, customerId }: Json) => `${type} ${customerId}`).sort()
  await daemon.stop()
  const { sample, ...counts } = summary.access
  // A chargeback counts from when it was read.
  const changed = sample.map(({ customerId, after }: Json) => `${customerId} ${after.status}`)
  return { summary: { ...summary, access: { ...counts, changed } }, events }
}

it('a backfill that is killed goes on, and ends as one that was not', async () => {
  const market = await openMarket()
  const hidden = String(market.ids.settled?.id)
  market.relay.after = (_, json) => {
    const items = json.data?.items?.filter(({ id }: Json) => id !== hidden)
    return items === undefined ? json : { ...json, data: { ...json.data, items } }
  }
  const { daemon: whole } = await listening(market)
  const wanted = await outcome(whole, (await begin(whole)).id)
  expect(wanted.summary).toMatchObject({ stored: { total: 10 }, read: { payments: 11, subscriptions: 4 } })

  const kills = POINTS.flatMap(([point, query], at) => {
    const moments: readonly (typeof MOMENTS)[number][] = process.env.BOTH_MOMENTS
      ? MOMENTS
      : [at % 2 === 0 ? 'before' : 'after']
    return moments.map((moment) => ({ moment, point, query: query.replace('HIDDEN', hidden) }))
  })
  for (const { moment, point, query } of kills) {
    const when = `killed ${moment} the commit with which ${point}`
    const { env, arm } = killAtCommit(moment, query)
    const { folder, daemon } = await listening(market, env)
    arm()
    const { id } = await begin(daemon)
    expect(await daemon.exit, when).toMatchObject({ code: null })
    expect(await outcome(await serve(folder), id), when).toEqual(wanted)
  }
})
