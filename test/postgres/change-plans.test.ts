import { CompiledQuery, type Kysely, sql } from 'kysely'
import { expect, it, onTestFinished } from 'vitest'
import { type Change, loadChanges, loadChangesOfTime } from '../../src/store/changes.js'
import { openPostgres } from '../../src/store/postgres/dialect.js'
import { placeBehind } from '../../src/store/postgres/numbers.js'
import type { Database } from '../../src/store/schema.js'
import { postgresAt } from '../world.js'

const FIRST_AT = Date.parse('2026-03-01T00:00:00Z')
const CHANGES = 100_000
/** The default of `jit_above_cost`. */
const JIT_FROM = 100_000

it('reads the changes of a customer or a stretch of time from 100,000 by index, without sorting many', async () => {
  const db = await storeOfChanges()
  const [from, to] = [FIRST_AT + 50_000_000, FIRST_AT + 60_000_000]
  const questions: readonly (readonly [
    index: string,
    ask: (db: Kysely<Database>) => Promise<readonly Change[]>,
  ])[] = [
    ['changes_by_customer', (one) => loadChanges(one, 'live', 0, 20, { customerId: 'cus_7' })],
    ['changes_by_time', (one) => loadChangesOfTime(one, 'live', 0, 20, { from, to })],
    ['changes_by_time', (one) => loadChangesOfTime(one, 'live', 50_010, 20, { from, to })],
  ]
  for (const [index, ask] of questions) {
    expect(await ask(db)).toHaveLength(20)
    const plans = await plansOf(db, ask)
    expect(plans).toContain(index)
    expect(plans).not.toMatch(/Seq Scan on change_log\b/)
    // From there on, the server would compile each of these statements first.
    for (const [, cost] of plans.matchAll(/cost=[\d.]+\.\.([\d.]+)/g))
      expect(Number(cost)).toBeLessThan(JIT_FROM)
  }
})

/** A second apart, of a thousand customers. */
async function storeOfChanges(): Promise<Kysely<Database>> {
  const db = openPostgres(await postgresAt('change plans'), 'write')
  onTestFinished(() => db.destroy())
  await sql`
    insert into change_log (cursor, at, environment, customer_id, product_id, before, after, cause_kind)
    select n, ${FIRST_AT}::bigint + n * 1000, 'live', 'cus_' || (n % 1000), 'pro_1', '{}', '{}', 'clock'
    from generate_series(1, ${CHANGES}::int) as n`.execute(db)
  await db.transaction().execute(placeBehind)
  await sql`analyze change_log`.execute(db)
  return db
}

/** How the server finds the rows of every statement. */
async function plansOf(db: Kysely<Database>, ask: (db: Kysely<Database>) => Promise<unknown>) {
  const statements: CompiledQuery[] = []
  const recorded = db.withPlugin({
    transformQuery: ({ node, queryId }) => {
      statements.push(db.getExecutor().compileQuery(node, queryId))
      return node
    },
    transformResult: async ({ result }) => result,
  })
  await ask(recorded)
  const plans = statements.map(async ({ sql: text, parameters }) => {
    const { rows } = await db.executeQuery(CompiledQuery.raw(`explain ${text}`, [...parameters]))
    return JSON.stringify(rows)
  })
  return (await Promise.all(plans)).join('\n')
}
