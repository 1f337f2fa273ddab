import { existsSync, statSync } from 'node:fs'
import { request } from 'node:http'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import type { ManualEvent } from '../../src/provider/event.js'
import { eventInForm } from '../../src/store/stored-form.js'
import { latchkey, runProgram } from '../setup/program.js'
import { runHere } from './in-process.js'
import {
  API_KEY,
  CONFIG,
  configuredFolder,
  entitlementsOf,
  keyEntry,
  kill,
  readStore,
  serve,
} from './served.js'

const socketIn = (folder: string) => join(folder, 'data', 'latchkey.sock')

const built = (folder: string, args: readonly string[]) => runProgram(latchkey(...args), { folder })

/** What the command answers in JSON, once it has ended well. */
async function answerOf(folder: string, args: readonly string[], run = runHere) {
  const { code, stdout, stderr } = await run(folder, [...args, '--json'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout) as { eventId: string; entitlements: { productId: string; status: string }[] }
}

/** Who did what, in the order in which it was done. */
const acts = (folder: string) =>
  readStore(folder, async (db) => {
    const rows = await db.selectFrom('events').select(['event_id', 'normalized']).orderBy('seq').execute()
    return rows.map(({ event_id: id, normalized }) => {
      const { type, actor, reason } = eventInForm(String(normalized), id) as ManualEvent
      return { type, actor, reason }
    })
  })

describe('the local socket', () => {
  it('serves the API to its own user without a key, and only to them, until the daemon stops', async () => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    expect(statSync(socketIn(folder)).mode & 0o777).toBe(0o600)
    const answer = new Promise((resolve, reject) => {
      const asked = request(
        { socketPath: socketIn(folder), path: '/entitlements/cus_1?environment=sandbox' },
        (res) => resolve(json(res)),
      )
      asked.on('error', reject).end()
    })
    expect(await answer).toMatchObject({ customerId: 'cus_1', environment: 'sandbox', entitlements: [] })
    daemon.signal('SIGTERM')
    expect((await daemon.exit).code).toBe(0)
    expect(existsSync(socketIn(folder))).toBe(false)
  })

  it('is replaced where a killed daemon left one', async () => {
    const folder = configuredFolder()
    await kill(await serve(folder))
    expect(existsSync(socketIn(folder))).toBe(true)
    const daemon = await serve(folder)
    await answerOf(folder, ['grant', 'cus_1', 'pro_1', '--reason', 'case 17'])
    expect(await entitlementsOf(daemon, 'cus_1')).toMatchObject([{ productId: 'pro_1', active: true }])
  })
})

const EVERY_ACT: readonly (readonly [readonly string[], string])[] = [
  [['grant', 'cus_1', 'pro_1', '--until', '30d', '--reason', 'case 17'], 'ending'],
  [['revoke', 'cus_1', 'pro_1'], 'revoked'],
  [['grant', 'cus_1', 'pro_1', '--reason', 'case 18'], 'active'],
  [['block', 'cus_1', '--reason', 'under review'], 'blocked'],
  [['unblock', 'cus_1'], 'active'],
  [['block', 'cus_1', 'pro_1', '--reason', 'not for them'], 'blocked'],
  [['unblock', 'cus_1', 'pro_1'], 'active'],
  [['link', 'cus_1', '--community', '80351110224678912'], 'active'],
]

describe('acts by hand', () => {
  it.each([
    ['beside a running daemon', true],
    ['on the database of none', false],
  ])('work %s, and say why where they are refused', async (_where, isServed) => {
    const folder = configuredFolder()
    const daemon = isServed ? await serve(folder) : null
    const { code, stderr } = await runHere(folder, ['revoke', 'cus_1', 'pro_1', '--json'])
    expect(code).toBe(1)
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'grant_not_found' } })

    const asBuilt = new Set(isServed ? EVERY_ACT.map(([[name]]) => name) : [])
    for (const [args, status] of EVERY_ACT) {
      const run = asBuilt.delete(args[0]) ? built : runHere
      const { entitlements } = await answerOf(folder, args, run)
      expect(entitlements).toMatchObject([{ productId: 'pro_1', status }])
    }
    const actor = userInfo().username
    expect(await acts(folder)).toMatchObject([
      { type: 'manual.granted', actor, reason: 'case 17' },
      { type: 'manual.revoked', actor, reason: null },
      { type: 'manual.granted', actor, reason: 'case 18' },
      { type: 'manual.blocked', actor, reason: 'under review' },
      { type: 'manual.unblocked', actor, reason: null },
      { type: 'manual.blocked', actor, reason: 'not for them' },
      { type: 'manual.unblocked', actor, reason: null },
      { type: 'manual.identity_linked', actor, reason: null },
    ])
    const served = daemon ?? (await serve(folder))
    expect(await entitlementsOf(served, 'cus_1')).toEqual([
      { productId: 'pro_1', active: true, status: 'active' },
    ])
  })

  it('go to the daemon that --url names, in the name of the key', async () => {
    const key = { ...keyEntry('support', API_KEY), scopes: ['read', 'write'] }
    const folder = configuredFolder({ ...CONFIG, api: { keys: [key] } })
    const daemon = await serve(folder)
    const args = ['grant', 'cus_1', 'pro_1', '--reason', 'case 17', '--url', daemon.url]
    const elsewhere = join(folder, 'data')
    const refused = await runHere(elsewhere, args)
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('LATCHKEY_API_KEY') })
    const done = await runProgram(latchkey(...args), {
      folder: elsewhere,
      env: { LATCHKEY_API_KEY: API_KEY },
    })
    expect(done).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^done in \w+: man_\w+\npro_1 {2}active\n$/),
    })
    expect(await acts(folder)).toMatchObject([{ type: 'manual.granted', actor: 'support' }])
  })

  it.each([
    [['grant', 'cus_1', 'pro_1']],
    [['grant', 'cus_1', 'pro_1', '--reason', ' ']],
    [['grant', 'cus_1', 'pro_1', '--reason', 'why', '--until', 'soon']],
    [['block', 'cus_1']],
    [['link', 'cus_1']],
    [['unblock', '']],
  ])('%j is wrong use', async (args) => {
    expect(await runHere(configuredFolder(), args)).toMatchObject({ code: 2, stdout: '' })
  })
})
