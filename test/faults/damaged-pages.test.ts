import { statSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { deliver, eventsOf, NOT_STORED, type SentEvent, send, storiesOf } from '../stories.js'
import { ask, configuredFolder, databaseIn, type ServedDaemon, serve, serveHere } from '../world.js'
import { overwritePages, PAGE_BYTES, rootPage } from './pages.js'

const STORIES = storiesOf(0, 20)
const [NEXT] = eventsOf(storiesOf(99, 1)) as [SentEvent]

/** All of it in the database file, and nobody at it. */
async function stoppedStore(): Promise<string> {
  const folder = configuredFolder()
  const daemon = await serveHere(folder)
  await deliver(daemon.url, eventsOf(STORIES))
  await daemon.stop()
  return folder
}

/**
 * No customer is told anything else than the truth; answers with how many are told nothing, or that there is no
 * answer. (The first question that meets the damage ends the daemon: the next may find nobody any more.)
 */
async function untold(daemon: ServedDaemon): Promise<number> {
  let count = 0
  for (const { customerId, outcome } of STORIES) {
    const answer = await ask(daemon, `/entitlements/${customerId}`).catch(() => null)
    if (answer?.status === 200) expect(await answer.json()).toMatchObject({ entitlements: [outcome] })
    else if (answer !== null) expect(answer.status).toBe(503)
    count += answer?.status === 200 ? 0 : 1
  }
  return count
}

/** What comes now is refused, or finds nobody any more. */
async function expectEnd(daemon: ServedDaemon): Promise<void> {
  const answer = await send(daemon.url, NEXT)
  if (answer !== null) expect(answer).toMatchObject(NOT_STORED)
  const { code, stdout, stderr } = await daemon.exit
  expect(code).toBe(1)
  expect(stderr).toMatch(/^error: The store has failed: .*`latchkey doctor`.*`latchkey restore`\.\n$/)
  expect(stdout).toMatch(/"code":"SQLITE_CORRUPT/)
  expect(stdout).not.toContain('"stack"')
}

describe('a database damaged while nobody served it', () => {
  it.each(['sqlite_schema', 'settings'])('in %s is not served', async (name) => {
    const folder = await stoppedStore()
    overwritePages(databaseIn(folder), rootPage(databaseIn(folder), name))
    await expect(serveHere(folder)).rejects.toMatchObject({ code: 'store_unavailable' })
  })

  it.each([
    ['sources', STORIES.length],
    ['events', 0],
  ])('in %s takes nothing more, and answers the truth or not at all', async (name, unanswered) => {
    const folder = await stoppedStore()
    overwritePages(databaseIn(folder), rootPage(databaseIn(folder), name))
    const daemon = await serve(folder)
    expect(await untold(daemon)).toBe(unanswered)
    await expectEnd(daemon)
  })
})

it('a database damaged under a running daemon is answered from no more, and takes nothing more', async () => {
  const folder = await stoppedStore()
  const daemon = await serve(folder)
  overwritePages(databaseIn(folder), 2, statSync(databaseIn(folder)).size / PAGE_BYTES)
  expect(await untold(daemon)).toBe(STORIES.length)
  await expectEnd(daemon)
})
