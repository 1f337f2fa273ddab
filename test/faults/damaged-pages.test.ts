import { closeSync, openSync, statSync, writeSync } from 'node:fs'
import Sqlite from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { customerStory, deliver, type SentEvent } from '../process/load.js'
import { ask, configuredFolder, type ServedDaemon, serve } from '../process/served.js'
import { latchkey, runProgram } from '../setup/program.js'
import { databaseIn } from './aftermath.js'
import { type Answer, NOT_STORED, send } from './patient-sender.js'

const STORIES = Array.from({ length: 20 }, (_, n) => customerStory(n))
const [NEXT] = customerStory(99).events as [SentEvent]
const PAGE_BYTES = 4096

/** All of it in the database file, and nobody at it. */
async function stoppedStore(): Promise<string> {
  const folder = configuredFolder()
  const daemon = await serve(folder)
  await deliver(
    daemon.url,
    STORIES.flatMap(({ events }) => events),
  )
  daemon.signal('SIGTERM')
  expect(await daemon.exit).toMatchObject({ code: 0 })
  return folder
}

/** The page that leads to all others of a table or an index. */
function rootPage(folder: string, name: string): number {
  const db = new Sqlite(databaseIn(folder), { readonly: true })
  try {
    const query = db.prepare<[string], number>("select pageno from dbstat where name = ? and path = '/'")
    return query.pluck().get(name) as number
  } finally {
    db.close()
  }
}

/** Writes zeros over pages, the first of which is 1. */
function damage(folder: string, from: number, to: number): void {
  const file = openSync(databaseIn(folder), 'r+')
  writeSync(file, Buffer.alloc((to - from + 1) * PAGE_BYTES), 0, undefined, (from - 1) * PAGE_BYTES)
  closeSync(file)
}

/**
 * No customer is told anything else than the truth; answers with how many are told nothing, or that there is no
 * answer. (The first question that meets the damage ends the daemon: the next may find nobody any more.)
 */
async function untold(daemon: ServedDaemon): Promise<number> {
  let count = 0
  for (const { customerId, outcome } of STORIES) {
    const answer = await ask(daemon, `/entitlements/${customerId}`).catch(() => null)
    if (answer?.status === 200) expect(((await answer.json()) as Told).entitlements).toMatchObject([outcome])
    else if (answer !== null) expect(answer.status).toBe(503)
    count += answer?.status === 200 ? 0 : 1
  }
  return count
}

interface Told {
  readonly entitlements: readonly object[]
}

/** What comes now is refused, or finds nobody any more. */
async function expectEnd(daemon: ServedDaemon): Promise<void> {
  expect([NOT_STORED, null]).toContainEqual(statusOf(await send(daemon, NEXT)))
  const { code, stdout, stderr } = await daemon.exit
  expect(code).toBe(1)
  expect(stderr).toMatch(/^error: The store has failed: .*`latchkey doctor`.*`latchkey restore`\.\n$/)
  expect(stdout).toMatch(/"code":"SQLITE_CORRUPT/)
  expect(stdout).not.toContain('"stack"')
}

function statusOf(answer: Answer | null) {
  return answer && { status: answer.status, code: answer.code }
}

describe('a database damaged while nobody served it', () => {
  it.each(['sqlite_schema', 'settings'])('in %s is not served', async (name) => {
    const folder = await stoppedStore()
    damage(folder, rootPage(folder, name), rootPage(folder, name))
    const { code, stdout } = await runProgram(latchkey('serve', '--json'), {
      folder,
      env: { LATCHKEY_PORT: '0' },
    })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  })

  it.each([
    ['sources', STORIES.length],
    ['events', 0],
  ])('in %s takes nothing more, and answers the truth or not at all', async (name, unanswered) => {
    const folder = await stoppedStore()
    damage(folder, rootPage(folder, name), rootPage(folder, name))
    const daemon = await serve(folder)
    expect(await untold(daemon)).toBe(unanswered)
    await expectEnd(daemon)
  })
})

describe('a database damaged under a running daemon', () => {
  it('is answered from no more, and takes nothing more', async () => {
    const folder = await stoppedStore()
    const daemon = await serve(folder)
    damage(folder, 2, statSync(databaseIn(folder)).size / PAGE_BYTES)
    expect(await untold(daemon)).toBe(STORIES.length)
    await expectEnd(daemon)
  })
})
