import { once } from 'node:events'
import { existsSync, mkdirSync, statSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ManualEvent } from '../../src/provider/event.js'
import { lockStore } from '../../src/store/sqlite/file.js'
import { eventInForm } from '../../src/store/stored-form.js'
import { freePort } from '../setup/free-port.js'
import { portOf } from '../setup/port-of.js'
import {
  API_KEY,
  answerOf,
  CONFIG,
  configuredFolder,
  databaseIn,
  type Exit,
  entitlementsOf,
  failureOf,
  keyEntry,
  MAY_ALL,
  readStore,
  run,
  runServed,
  serveHere,
  takeIn,
  temporaryFolder,
} from '../world.js'

const NOW = Date.UTC(2026, 0, 31, 12)
const clock = { now: () => NOW }
const WITH_KEY = { ...clock, env: { LATCHKEY_API_KEY: API_KEY } }

const socketIn = (folder: string) => join(folder, 'data', 'latchkey.sock')

/** What is asked at another instant says so. */
const timeless = (text: string) => text.replaceAll(/"(asOf|startedAt|endedAt)":"[^"]*"/g, '"$1":""')

it('a command answers alike from the daemon at the socket, at --url, and from the store itself', async () => {
  // With the environment that a key for both has to name.
  const commands: readonly (readonly [words: string, environment: string])[] = [
    ['check cus_1 --json', '--environment live'],
    ['explain cus_1 pro_1', '--environment live'],
    ['events list --json', '--environment live'],
    ['events export', '--environment live'],
    ['replay --dry-run --json', '--environment live'],
    ['policy show --json', ''],
    ['policy diff --json', ''],
    ['rebuild --verify --json', ''],
  ]
  const folder = configuredFolder(MAY_ALL)
  const granted = await runServed(folder, 'grant cus_1 pro_1 --reason test', clock)
  expect(granted).toMatchObject({ code: 0 })
  const within: Exit[] = []
  for (const [words] of commands) within.push(await run(folder, words, clock))
  expect(within.map(({ code }) => code)).toEqual(commands.map(() => 0))

  const { url } = await serveHere(folder, clock)
  expect(statSync(socketIn(folder)).mode & 0o777).toBe(0o600)
  const elsewhere = temporaryFolder()
  for (const [n, [words, environment]] of commands.entries()) {
    const atSocket = await run(folder, words, clock)
    expect(timeless(atSocket.stdout)).toBe(timeless(within[n]?.stdout ?? ''))
    const atUrl = await run(elsewhere, `${words} ${environment} --url ${url}`, WITH_KEY)
    expect({ words, ...atUrl }).toMatchObject({ words, code: 0, stderr: '' })
    expect(timeless(atUrl.stdout)).toBe(timeless(atSocket.stdout))
  }
  const { findings } = await answerOf(elsewhere, `doctor --thorough --url ${url}`, WITH_KEY)
  const levels = findings.map(({ what, level }: { what: string; level: string }) => `${what}: ${level}`)
  const found = ['daemon', 'refused live', 'integrity', 'body hashes', 'policy', 'sync'].map(
    (what) => `${what}: ok`,
  )
  expect(levels).toEqual(expect.arrayContaining(found))
})

it('a command that changes something says so where a process holds the database and does not answer', async () => {
  const folder = configuredFolder()
  await takeIn(folder, [])
  const lock = lockStore(databaseIn(folder))
  onTestFinished(() => lock.release())
  expect(await failureOf(folder, 'grant cus_1 pro_1 --reason test')).toMatchObject({
    code: 1,
    error: { code: 'daemon_unreachable', message: expect.stringContaining('it is starting or stopping') },
  })
  // It is asked all the same.
  expect(await run(folder, 'events list')).toMatchObject({ code: 0 })
})

describe('acts by hand', () => {
  /** Who did what, in the order in which it was done. */
  const acts = (folder: string) =>
    readStore(folder, async (db) => {
      const rows = await db.selectFrom('events').select(['event_id', 'normalized']).orderBy('seq').execute()
      return rows.map(({ event_id: id, normalized }) => {
        const { type, actor, reason } = eventInForm(String(normalized), id) as ManualEvent
        return { type, actor, reason }
      })
    })

  it('work, and say why where they are refused', async () => {
    const folder = configuredFolder(MAY_ALL)
    const served = await serveHere(folder)
    const refused = await failureOf(folder, 'revoke cus_1 pro_1')
    expect(refused).toMatchObject({ code: 1, error: { code: 'grant_not_found' } })
    for (const [words, status] of [
      ['grant cus_1 pro_1 --until 30d --reason first', 'ending'],
      ['revoke cus_1 pro_1', 'revoked'],
      ['grant cus_1 pro_1 --reason second', 'active'],
      ['block cus_1 --reason review', 'blocked'],
      ['unblock cus_1', 'active'],
      ['block cus_1 pro_1 --reason fraud', 'blocked'],
      ['unblock cus_1 pro_1', 'active'],
      ['link cus_1 --community 80351110224678912', 'active'],
    ] as const) {
      const { entitlements } = await answerOf(folder, words)
      expect({ words, entitlements }).toMatchObject({ words, entitlements: [{ productId: 'pro_1', status }] })
    }
    const actor = userInfo().username
    expect(await acts(folder)).toEqual([
      { type: 'manual.granted', actor, reason: 'first' },
      { type: 'manual.revoked', actor, reason: null },
      { type: 'manual.granted', actor, reason: 'second' },
      { type: 'manual.blocked', actor, reason: 'review' },
      { type: 'manual.unblocked', actor, reason: null },
      { type: 'manual.blocked', actor, reason: 'fraud' },
      { type: 'manual.unblocked', actor, reason: null },
      { type: 'manual.identity_linked', actor, reason: null },
    ])
    const outcome = { productId: 'pro_1', active: true, status: 'active' }
    expect(await entitlementsOf(served, 'cus_1')).toEqual([outcome])
  })

  it('at --url are done in the name of the key, which needs the scope', async () => {
    const keys = ['read', 'write', 'admin'].map((scope) => ({
      ...keyEntry(scope, `lk_${scope}`),
      scopes: [scope],
    }))
    const folder = configuredFolder({ ...CONFIG, api: { keys } })
    const { url } = await serveHere(folder)
    const as = (scope: string, words: string) =>
      run(temporaryFolder(), `${words} --url ${url}`, { env: { LATCHKEY_API_KEY: `lk_${scope}` } })
    const grant = 'grant cus_1 pro_1 --reason case'
    expect(await as('read', grant)).toMatchObject({ code: 1, stderr: expect.stringContaining('403') })
    expect(await as('write', grant)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^done in \w+: man_\w+\npro_1 {2}active\n$/),
    })
    expect(await as('write', 'erase cus_2 --yes')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('403'),
    })
    expect(await as('admin', 'erase cus_2 --yes')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^erased cus_2 in live at .* \(man_\w+\)\nNothing was stored /),
    })
    expect(await acts(folder)).toMatchObject([
      { type: 'manual.granted', actor: 'write' },
      { type: 'manual.erased', actor: 'admin' },
    ])
  })
})

describe('a command whose daemon ends', () => {
  /** How a daemon may be killed while it does what it was asked. */
  const ENDS: readonly [string, RequestListener][] = [
    ['before it answers', (req) => req.on('end', () => req.socket.destroy()).resume()],
    [
      'in the midst of its answer',
      (req, res) => {
        req.resume()
        res.writeHead(200, { 'content-length': 100 })
        res.write('{', () => req.socket.destroy())
      },
    ],
  ]
  const message = /^the daemon did not answer: .+ may have done the work anyway; run the command again/
  const MAY_BE_DONE = { code: 1, error: { code: 'daemon_failed', message: expect.stringMatching(message) } }

  it.each(ENDS)('%s says that it may have been done, and does not do it itself', async (_when, end) => {
    const folder = configuredFolder()
    mkdirSync(dirname(socketIn(folder)))
    const server = createServer(end).listen(socketIn(folder))
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    expect(await failureOf(folder, 'erase cus_1 --yes')).toMatchObject(MAY_BE_DONE)
    expect(existsSync(databaseIn(folder))).toBe(false)
  })

  it.each(ENDS)('%s at an address says so too', async (_when, end) => {
    const port = await portOf(createServer(end))
    const words = `erase cus_1 --yes --url http://127.0.0.1:${port}`
    expect(await failureOf('/nowhere', words, WITH_KEY)).toMatchObject(MAY_BE_DONE)
  })

  it('says only that nobody answers where nobody took it', async () => {
    const url = `http://127.0.0.1:${await freePort()}`
    expect(await failureOf('/nowhere', `erase cus_1 --yes --url ${url}`, WITH_KEY)).toEqual({
      code: 1,
      error: {
        code: 'daemon_unreachable',
        message: expect.stringMatching(`${url}: .*\`latchkey serve\``),
        issues: [],
      },
    })
  })
})
