import { copyFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../src/config/load.js'
import { RULES_VERSION } from '../src/entitlements/derive.js'
import { loadRulesVersion } from '../src/store/settings.js'
import { eventually } from './setup/eventually.js'
import {
  type AskedDaemon,
  answerOf,
  ask,
  configuredFolder,
  databaseIn,
  ENGINE,
  onStore,
  postgresAt,
  readStore,
  rewriteConfig,
  run,
  serveHere,
  temporaryFolder,
} from './world.js'

/** What each released version left, as `scripts/write-release.js` wrote it then. */
const RELEASES = join(import.meta.dirname, 'fixtures/releases')

interface Answers {
  readonly key: string
  /** By customer, followed by ` sandbox` where that was asked about. */
  readonly answers: Readonly<Record<string, { readonly cursor: string }>>
  readonly changes: { readonly items: readonly { readonly cursor: string }[] }
  readonly memberships: { readonly items: readonly object[] }
  readonly events: { readonly items: readonly { readonly id: string }[] }
}

const NOTHING_NEW = { applied: 0, held: 0, ignored: 0, quarantined: 0 }

describe.each(readdirSync(RELEASES))('a store of %s', (version) => {
  const place = join(RELEASES, version, ENGINE)
  const read = (name: string) => readFileSync(join(place, name), 'utf8')
  const known = JSON.parse(read('answers.json')) as Answers

  /** A folder with the store and the config of that version. */
  async function folderOfRelease(): Promise<string> {
    const folder = configuredFolder(read('config.json'))
    const file = databaseIn(folder)
    if (ENGINE === 'sqlite') {
      mkdirSync(join(folder, 'data'))
      copyFileSync(join(place, 'latchkey.db'), file)
      copyFileSync(join(place, 'latchkey.db.erasures'), `${file}.erasures`)
      return folder
    }
    const client = new pg.Client((await postgresAt(file, undefined, 'template0')).url)
    await client.connect()
    await client.query(read('latchkey.sql'))
    await client.end()
    return folder
  }

  const answer = async (daemon: AskedDaemon, path: string) => {
    const response = await ask(daemon, path, known.key)
    expect([path, response.status]).toEqual([path, 200])
    return response.json()
  }

  const isRebuilt = (folder: string) => async () =>
    expect(await readStore(folder, loadRulesVersion)).toBe(RULES_VERSION)

  it('answers as that version did, down to its cursors', async () => {
    const daemon = await serveHere(await folderOfRelease())
    for (const [asked, before] of Object.entries(known.answers)) {
      const [customer = '', environment = 'live'] = asked.split(' ')
      const now = await answer(daemon, `/entitlements/${customer}?environment=${environment}`)
      expect(now).toMatchObject({ ...before, asOf: expect.any(String) })
    }
    const { items } = known.changes
    const [first] = items
    expect(await answer(daemon, '/changes?limit=100')).toMatchObject({ items })
    expect(await answer(daemon, `/changes?limit=100&cursor=${first?.cursor}`)).toMatchObject({
      items: items.slice(1),
    })
    const ids = known.events.items.map(({ id }) => ({ id }))
    expect(await answer(daemon, '/events?environment=live&limit=100')).toMatchObject({ items: ids })
    const { items: members } = (await answer(daemon, '/sync/memberships?limit=100')) as Answers['memberships']
    expect(members).toHaveLength(known.memberships.items.length)
  })

  it('is as its events say, and goes on', async () => {
    const folder = await folderOfRelease()
    const daemon = await serveHere(folder)
    await eventually(async () => expect(await answer(daemon, '/rebuild')).toMatchObject({ state: 'done' }))
    const env = { LATCHKEY_API_KEY: known.key }
    const there = ['--url', daemon.url]
    expect(await run(folder, ['rebuild', '--verify', ...there], { env })).toMatchObject({ code: 0 })
    const sent = `trigger payment.refunded --live --endpoint live --customer cus_card --product pro_gold
      --payment pay_card_2 --subscription sub_card --url ${daemon.url}`
    expect(await run(folder, sent.split(/\s+/))).toMatchObject({ code: 0 })
    expect(await answer(daemon, '/entitlements/cus_card/pro_gold')).toMatchObject({ status: 'refunded' })
    expect(await run(folder, ['rebuild', '--verify', ...there], { env })).toMatchObject({ code: 0 })
  })

  it('is rebuilt under the rules of this version at its first start, and once', async () => {
    const folder = await folderOfRelease()
    await expect(isRebuilt(folder)()).rejects.toThrow()
    // As older rules may have left it.
    await onStore(folder, async (db) => {
      const state = JSON.stringify({ intervals: [], rail: 'unknown' })
      await db.updateTable('sources').set({ state }).execute()
    })
    const daemon = await serveHere(folder)
    await eventually(isRebuilt(folder))
    expect(await answer(daemon, '/entitlements/cus_card/pro_gold')).toMatchObject({ active: true })
    await daemon.stop()
    const rebuilt = 'rebuilt from the stored events'
    expect(daemon.logged().map(({ msg }) => msg)).toContain(rebuilt)
    const again = await serveHere(folder)
    await answer(again, '/rebuild')
    expect(again.logged().map(({ msg }) => msg)).not.toContain(rebuilt)
  })

  it('takes its own export for what it has already', async () => {
    const folder = await folderOfRelease()
    const daemon = await serveHere(folder)
    const input = [Buffer.from(read('export.jsonl'))]
    const words = ['import', '-', '--with-manual', '--url', daemon.url]
    const told = await answerOf(folder, words, { env: { LATCHKEY_API_KEY: known.key }, input })
    expect(told).toMatchObject(NOTHING_NEW)
  })

  it('is brought back by its export in an empty one', async () => {
    const folder = configuredFolder(read('config.json'))
    const daemon = await serveHere(folder)
    const input = [Buffer.from(read('export.jsonl'))]
    const words = ['import', '-', '--with-manual', '--url', daemon.url]
    await answerOf(folder, words, { env: { LATCHKEY_API_KEY: known.key }, input })
    for (const [customer, { cursor: _, ...before }] of Object.entries(known.answers)) {
      // An export without an environment is the live one.
      if (customer.endsWith(' sandbox')) continue
      const now = await answer(daemon, `/entitlements/${customer}`)
      expect(now).toMatchObject({ ...before, asOf: expect.any(String) })
    }
  })

  it('has a config that still loads', () => {
    const path = rewriteConfig(temporaryFolder(), read('config.json'))
    expect(loadConfig({ path, env: {} }).config.endpoints.map(({ name }) => name)).toEqual([
      'live',
      'legacy',
      'sandbox',
    ])
  })
})
