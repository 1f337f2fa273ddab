import { expect, it } from 'vitest'
import { loadJob } from '../../src/store/recompute-job.js'
import { latchkey, runProgram, startProgram } from '../setup/program.js'
import { runHere } from './in-process.js'
import { customerStory, deliver } from './load.js'
import {
  API_KEY,
  CONFIG,
  configuredFolder,
  keyEntry,
  kill,
  readStore,
  rewriteConfig,
  serve,
} from './served.js'

const STORIES = Array.from({ length: 2_000 }, (_, n) => customerStory(n))
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
  const job = () => readStore(folder, loadJob)
  while (!((await job())?.reached ?? 0)) await new Promise((resolve) => setImmediate(resolve))
  await kill(first)
  const interrupted = await job()
  expect(interrupted).toMatchObject({ isMoving: true })
  expect(interrupted?.reached).toBeLessThan(Number(interrupted?.newest))

  const notYet = /^error: Not every source has been moved to the policy in force yet: .*policy apply/
  for (const args of [['rebuild', '--verify'], ['replay'], ['replay', '--dry-run']]) {
    const refused = await runHere(folder, args)
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(notYet) })
  }
  const again = await runProgram(WITHOUT_DAEMON, { folder })
  expect({ code: again.code, stderr: again.stderr }).toEqual({ code: 0, stderr: '' })
  const lost = STORIES.filter(({ outcome }) => outcome.active)
  expect(JSON.parse(again.stdout)).toMatchObject({ gains: 0, losses: lost.length })
  expect(await told(folder)).toHaveLength(STORIES.length)
  expect(await job()).toBeNull()
  expect(await runProgram(latchkey('rebuild', '--verify'), { folder })).toMatchObject({ code: 0 })
})
