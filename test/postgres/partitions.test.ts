import pg from 'pg'
import { expect, it } from 'vitest'
import { ask, runDaemon, send } from '../daemon/running-daemon.js'
import { wireEvent } from '../daemon/wire-events.js'
import { blocks } from '../process/readme.js'
import { postgresAt } from '../world.js'

const CUSTOMERS = 6
const ids = Array.from({ length: CUSTOMERS }, (_, n) => ({ customer: `cus_${n}`, payment: `pay_${n}` }))

it('partitions by the statements on the page keep every event once, and every change in order', async () => {
  const first = await runDaemon()
  const sendAll = async (daemon: typeof first, bodies: readonly string[]) => {
    const answers: { disposition: string }[] = []
    for (const body of bodies) answers.push((await (await send(daemon, body)).json()) as (typeof answers)[0])
    return [...new Set(answers.map(({ disposition }) => disposition))]
  }
  const paid = ids.map((one) => wireEvent('payment.authorized', one))
  const refunded = ids.map((one) => wireEvent('payment.refunded', { ...one, minutes: 1 }))
  expect(await sendAll(first, paid)).toEqual(['applied'])
  await first.stop()

  const database = new pg.Client({ connectionString: (await postgresAt(first.databaseFile)).url })
  await database.connect()
  const [block] = blocks('sql', ['docs/scaling.md'])
  // So that the next event and the next change go into the second partitions.
  const { rows: places } = await database.query<{ place: string }>('select change_log_place() as place')
  const statements = block?.text
    .replaceAll(' (10000001)', ` (${CUSTOMERS + 1})`)
    .replaceAll('with 10000001', `with ${CUSTOMERS + 1}`)
    .replaceAll('(40960000001)', `(${places[0]?.place})`)
  await database.query(statements ?? '')

  const second = await runDaemon({ folder: first.folder })
  expect(await sendAll(second, refunded)).toEqual(['applied'])
  expect(await sendAll(second, [...paid, ...refunded])).toEqual(['duplicate'])
  const { items } = (await (await ask(second, '/changes')).json()) as { items: { customerId: string }[] }
  const customers = ids.map(({ customer }) => customer)
  expect(items.map(({ customerId }) => customerId)).toEqual([...customers, ...customers])
  for (const table of ['events', 'change_log']) {
    const { rows } = await database.query(
      `select tableoid::regclass::text as name, count(*)::integer as count from ${table} group by 1 order by 1`,
    )
    expect(rows).toEqual([1, 2].map((n) => ({ name: `${table}_${n}`, count: CUSTOMERS })))
  }
  await second.stop()
  await database.query('alter table change_log detach partition change_log_1')
  await database.end()
})
