import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openDatabase } from '../../src/store/sqlite/dialect.js'
import type { ProgramExit } from '../setup/program.js'
import { runHere } from './in-process.js'
import { customerStory, deliver } from './load.js'
import {
  API_KEY,
  ask,
  CONFIG,
  configuredFolder,
  keyEntry,
  readStore,
  rewriteConfig,
  type ServedDaemon,
  serve,
} from './served.js'

const MAY_ALL = {
  ...CONFIG,
  api: {
    keys: [
      {
        ...keyEntry('operator', API_KEY),
        scopes: ['read', 'write', 'admin'],
        environments: ['live', 'sandbox'],
      },
    ],
  },
}
const NOTHING_GRANTS = { ...MAY_ALL, policy: { grantOn: { card: [], crypto: [], unknown: [] } } }

/** A payment, and the subscription that it pays. */
const { customerId, events, outcome } = customerStory(0)
const { productId } = outcome

interface Damaged {
  readonly folder: string
  readonly eventId: string
  /** As a regular expression finds it. */
  readonly reason: string
}

async function stop(daemon: ServedDaemon): Promise<void> {
  daemon.signal('SIGTERM')
  await daemon.exit
}

/** What the daemon has taken in, and one event of it whose form is no JSON any more. */
async function damagedStore(): Promise<Damaged> {
  const folder = configuredFolder(MAY_ALL)
  const daemon = await serve(folder)
  await deliver(daemon.url, events)
  await runHere(folder, ['block', customerId, productId, '--reason', 'under review'])
  await stop(daemon)
  const eventId = String(events[0]?.id)
  await damage(folder, eventId)
  return { folder, eventId, reason: `The normalised form of the event ${eventId} is damaged: ` }
}

async function damage(folder: string, eventId: string): Promise<void> {
  const db = openDatabase(join(folder, 'data', 'latchkey.db'), { readOnly: false })
  await db.updateTable('events').set({ normalized: 'not json' }).where('event_id', '=', eventId).execute()
  await db.destroy()
}

const blockIn = (folder: string): Promise<string> =>
  readStore(folder, async (db) => {
    const found = db.selectFrom('events').select('event_id').where('type', '=', 'manual.blocked')
    return (await found.executeTakeFirstOrThrow()).event_id
  })

/** One line, without a stack, that begins as told. */
function expectReason({ code, stderr }: ProgramExit, reason: string): void {
  expect(code).toBe(1)
  expect(stderr).toMatch(new RegExp(`^error: ${reason}[^\\n]*\\n$`))
}

it('is named by the commands that need it, and mended by a replay, with no daemon', async () => {
  const { folder, reason } = await damagedStore()
  expectReason(await runHere(folder, ['explain', customerId, productId]), reason)
  expectReason(await runHere(folder, ['policy', 'diff']), reason)
  expectReason(await runHere(folder, ['rebuild', '--verify']), reason)

  const replayed = await runHere(folder, ['replay', '--json'])
  expect({ ...replayed, stdout: JSON.parse(replayed.stdout) }).toMatchObject({
    code: 0,
    stdout: { changed: 1 },
  })
  expect(await runHere(folder, ['rebuild', '--verify'])).toMatchObject({ code: 0 })
})

it('is mended by a rebuild, also under another policy', async () => {
  const { folder } = await damagedStore()
  rewriteConfig(folder, NOTHING_GRANTS)
  expect(await runHere(folder, ['policy', 'apply'])).toMatchObject({ code: 0 })
  expect(await runHere(folder, ['rebuild', '--verify'])).toMatchObject({ code: 0 })
})

it('is named by a daemon’s rebuild, in its status and its log, without a stack, where it was done by hand', async () => {
  const { folder } = await damagedStore()
  const block = await blockIn(folder)
  await damage(folder, block)
  const reason = `The normalised form of the event ${block} is damaged: `
  const daemon = await serve(folder)
  expectReason(await runHere(folder, ['rebuild']), reason)
  const status = { state: 'failed', reason: expect.stringMatching(`^${reason}`) }
  expect(await (await ask(daemon, '/rebuild')).json()).toEqual(status)
  const failed = daemon.logged().find(({ msg }) => msg === 'the rebuild failed')
  expect(failed?.err).toMatchObject({ code: 'store_unavailable', message: status.reason })
  expect(failed?.err).not.toHaveProperty('stack')
})

it('is told to whoever acts by hand on the customer whom it keeps from being written', async () => {
  const { folder } = await damagedStore()
  const block = await blockIn(folder)
  await damage(folder, block)
  const reason = `The normalised form of the event ${block} is damaged`
  expectReason(await runHere(folder, ['erase', customerId, '--yes']), reason)
  expectReason(await runHere(folder, ['unblock', customerId, productId]), reason)
  await serve(folder)
  expectReason(await runHere(folder, ['erase', customerId, '--yes']), `the daemon answered 503: ${reason}`)
})
