import { expect, it } from 'vitest'
import { latchkey, type ProgramExit, runProgram } from '../setup/program.js'
import { runHere } from './in-process.js'
import { customerStory, deliver } from './load.js'
import {
  API_KEY,
  ask,
  CONFIG,
  configuredFolder,
  entitlementsOf,
  keyEntry,
  kill,
  rewriteConfig,
  type ServedDaemon,
  serve,
} from './served.js'

const MAY_ALL = {
  ...keyEntry('app', API_KEY),
  scopes: ['read', 'admin'],
  environments: ['live', 'sandbox'],
}
const ADMIN = { Authorization: `Bearer ${API_KEY}`, Connection: 'close' }
const NOTE = 'The configured policy is not the one in force.'
const NOTHING_GRANTS = {
  ...CONFIG,
  policy: { grantOn: { card: [], crypto: [], unknown: [] }, paidCycle: 'informs' },
}

async function notes(daemon: ServedDaemon): Promise<unknown> {
  return ((await (await ask(daemon, '/readyz')).json()) as { notes: unknown }).notes
}

function command(folder: string, ...args: string[]): Promise<ProgramExit> {
  return runProgram(latchkey(...args), { folder })
}

/** The same in this process, for what was seen of the built program once. */
const here = (folder: string, ...args: string[]) => runHere(folder, args)

/** Sends SIGHUP, and resolves once the daemon says that its policy is another than the configured one. */
async function reload(daemon: ServedDaemon): Promise<void> {
  daemon.signal('SIGHUP')
  await daemon.until(/the configured policy differs/)
}

it('keeps the policy in force until it is told to apply the configured one, and then follows that', async () => {
  const folder = configuredFolder()
  const daemon = await serve(folder)
  const { events, customerId, outcome } = customerStory(0)
  await deliver(daemon.url, events)
  expect(await notes(daemon)).toEqual([])

  await here(folder, 'grant', 'cus_by_hand', 'pro_1', '--reason', 'a gift')
  await here(folder, 'block', 'cus_blocked', 'pro_1', '--reason', 'fraud')

  rewriteConfig(folder, NOTHING_GRANTS)
  const early = await command(folder, 'policy', 'apply', '--json')
  expect(early.code).toBe(1)
  expect(JSON.parse(early.stderr)).toMatchObject({ error: { code: 'policy_differs' } })
  await reload(daemon)
  expect(await notes(daemon)).toEqual([NOTE])
  expect(await entitlementsOf(daemon, customerId)).toEqual([outcome])

  const told = JSON.parse((await command(folder, 'policy', 'diff', '--json')).stdout)
  const applied = await command(folder, 'policy', 'apply', '--json')
  expect({ code: applied.code, stderr: applied.stderr }).toEqual({ code: 0, stderr: '' })
  expect(JSON.parse(applied.stdout)).toEqual(told)
  expect(await notes(daemon)).toEqual([])
  expect(await entitlementsOf(daemon, customerId)).toEqual([])

  expect(await entitlementsOf(daemon, 'cus_by_hand')).toMatchObject([{ active: true, status: 'active' }])
  expect(await entitlementsOf(daemon, 'cus_blocked')).toMatchObject([{ active: false, status: 'blocked' }])

  const next = customerStory(1)
  await deliver(daemon.url, next.events)
  expect(await entitlementsOf(daemon, next.customerId)).toEqual([])
  expect(await here(folder, 'rebuild', '--verify')).toMatchObject({ code: 0 })
})

it('ends under the configured policy whole, after a kill in the middle of applying', async () => {
  const folder = configuredFolder({ ...CONFIG, api: { keys: [MAY_ALL] } })
  const first = await serve(folder)
  const stories = Array.from({ length: 400 }, (_, n) => customerStory(n))
  const load = await deliver(
    first.url,
    stories.flatMap(({ events }) => events),
  )
  expect(load.refused).toEqual([])
  rewriteConfig(folder, { ...NOTHING_GRANTS, api: { keys: [MAY_ALL] } })
  await reload(first)
  const applying = await fetch(`${first.url}/policy/apply`, { method: 'POST', headers: ADMIN })
  await kill(first)
  expect(applying.status).toBe(202)

  // It goes on by itself, if it had begun.
  const second = await serve(folder)
  expect((await here(folder, 'policy', 'apply')).code).toBe(0)
  expect(await notes(second)).toEqual([])
  for (const { customerId } of stories.slice(0, 3))
    expect(await entitlementsOf(second, customerId)).toEqual([])
  expect(await here(folder, 'rebuild', '--verify')).toMatchObject({ code: 0 })
})

it('rebuilds under the policy in force through the daemon, for a key that may', async () => {
  const folder = configuredFolder()
  const daemon = await serve(folder)
  await deliver(daemon.url, customerStory(0).events)
  expect(await here(folder, 'rebuild')).toMatchObject({ code: 0, stdout: 'nobody’s access has changed\n' })
  expect((await ask(daemon, '/rebuild')).status).toBe(403)
  expect((await ask(daemon, '/policy/apply')).status).toBe(405)
})
