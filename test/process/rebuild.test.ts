import { expect, it } from 'vitest'
import { latchkey, runProgram, startProgram } from '../setup/program.js'
import { customerStory, deliver } from './load.js'
import {
  API_KEY,
  ask,
  CONFIG,
  configuredFolder,
  keyEntry,
  kill,
  readStore,
  rewriteConfig,
  serve,
} from './served.js'

const STORIES = Array.from({ length: 1_000 }, (_, n) => customerStory(n))
const NOTHING_GRANTS = {
  ...CONFIG,
  api: {
    keys: [
      { ...keyEntry('operator', API_KEY), scopes: ['read', 'admin'], environments: ['live', 'sandbox'] },
    ],
  },
  policy: { grantOn: { card: [], crypto: [], unknown: [] }, paidCycle: 'informs' },
}
const WITHOUT_DAEMON = latchkey('policy', 'apply', '--json')

function count(
  folder: string,
  table: 'next_sources' | 'rebuild_marks' | 'next_dispositions',
): Promise<number> {
  return readStore(folder, async (db) => (await db.selectFrom(table).selectAll().execute()).length)
}

/** What the rebuild wrote to the change log: whose access, to what. */
function told(folder: string): Promise<unknown[]> {
  return readStore(folder, (db) =>
    db
      .selectFrom('changes')
      .select(['customer_id', 'product_id', 'after'])
      .where('cause_kind', '=', 'rebuild')
      .orderBy('customer_id')
      .orderBy('product_id')
      .execute(),
  )
}

it('ends as if it had run once, killed in the middle and given the same command again', async () => {
  const folder = configuredFolder()
  const daemon = await serve(folder)
  const events = STORIES.flatMap((story) => story.events)
  expect((await deliver(daemon.url, events)).refused).toEqual([])
  daemon.signal('SIGTERM')
  await daemon.exit
  rewriteConfig(folder, NOTHING_GRANTS)

  const first = startProgram(WITHOUT_DAEMON, { folder })
  while ((await count(folder, 'next_sources')) === 0) await new Promise((resolve) => setImmediate(resolve))
  await kill(first)
  expect(await count(folder, 'next_sources')).toBeGreaterThan(0)
  expect(await told(folder)).toEqual([])

  const between = await serve(folder)
  const interrupted = await (await ask(between, '/rebuild')).json()
  expect(interrupted).toEqual({ state: 'interrupted', folded: expect.any(Number) })
  await kill(between)

  const again = await runProgram(WITHOUT_DAEMON, { folder })
  expect({ code: again.code, stderr: again.stderr }).toEqual({ code: 0, stderr: '' })
  const lost = STORIES.filter(({ outcome }) => outcome.active)
  expect(JSON.parse(again.stdout)).toMatchObject({ gains: 0, losses: lost.length })
  expect(await told(folder)).toHaveLength(STORIES.length)
  for (const table of ['next_sources', 'next_dispositions', 'rebuild_marks'] as const)
    expect(await count(folder, table)).toBe(0)
  expect(await runProgram(latchkey('rebuild', '--verify'), { folder })).toMatchObject({ code: 0 })
})
