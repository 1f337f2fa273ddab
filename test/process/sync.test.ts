import { describe, expect, it } from 'vitest'
import { accountId, BOT_TOKEN, GOLD_ROLE_ID, GUILD_ID } from '../platforms/discord-ids.js'
import { type LocalDiscord, startDiscord } from '../platforms/discord-server.js'
import { eventually } from '../setup/eventually.js'
import { latchkey, type ProgramExit, runProgram } from '../setup/program.js'
import { startReceiver, status, SECRET as WEBHOOK_SECRET } from '../sync/webhook/receiver.js'
import { runHere } from './in-process.js'
import { CONFIG, configuredFolder, keyEntry, kill, type ServedDaemon, serve } from './served.js'

const TARGET = `discord:${GUILD_ID}:${GOLD_ROLE_ID}`
const KEY = 'lk_operator_key'
const OPERATED = {
  ...CONFIG,
  api: { keys: [{ ...keyEntry('operator', KEY), scopes: ['read', 'write', 'admin'] }] },
}

/** Each command runs as the built program once, and otherwise here, against the same daemon and database. */
const built = (folder: string, ...args: readonly string[]) => runProgram(latchkey(...args), { folder })
const run = (folder: string, ...args: readonly string[]) => runHere(folder, args)

/** What a command answers in JSON, and how it ended. */
async function answerOf(folder: string, ...args: readonly string[]) {
  return told(await run(folder, ...args, '--json'))
}

function told({ code, stdout, stderr }: ProgramExit) {
  return {
    code,
    json: stdout === '' ? null : JSON.parse(stdout),
    error: stderr.startsWith('{') ? JSON.parse(stderr).error : stderr,
  }
}

/** A folder whose `pro_1` gives a role in a local Discord. */
function followedFolder(discord: LocalDiscord, sync: object = {}): string {
  return configuredFolder({
    ...OPERATED,
    products: { pro_1: { targets: [{ adapter: 'discord', guildId: GUILD_ID, roleId: GOLD_ROLE_ID }] } },
    sync: {
      discord: { botToken: BOT_TOKEN, apiUrl: discord.url },
      removals: { atMost: 0, percent: 0 },
      ...sync,
    },
  })
}

async function ask(daemon: ServedDaemon, method: string, path: string, body?: object) {
  const answer = await fetch(`${daemon.url}${path}`, {
    method,
    headers: { Authorization: `Bearer ${KEY}`, 'Content-Type': 'application/json', Connection: 'close' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status: answer.status, json: await answer.json() }
}

const grant = (daemon: ServedDaemon, customerId: string) =>
  ask(daemon, 'POST', `/customers/${customerId}/grants`, { productId: 'pro_1', reason: 'a test' })

/** Customers with access and a linked account each, who are members of the guild. */
async function grantTo(daemon: ServedDaemon, discord: LocalDiscord, count: number): Promise<void> {
  for (let n = 1; n <= count; n += 1) {
    discord.guild.join(accountId(n))
    await ask(daemon, 'PUT', `/customers/cus_${n}/identities`, { communityId: accountId(n) })
    expect((await grant(daemon, `cus_${n}`)).status).toBe(201)
  }
}

/** Waits until `GET /sync` says so. */
const becomes = (daemon: ServedDaemon, state: object) =>
  eventually(async () => expect((await ask(daemon, 'GET', '/sync')).json).toMatchObject(state))

const holders = (discord: LocalDiscord) => discord.guild.holders(GOLD_ROLE_ID)

describe('latchkey sync', () => {
  it('shows how it stands, does what is due, and makes removals beyond the bound only once they are confirmed', async () => {
    const discord = await startDiscord()
    const folder = followedFolder(discord)
    const daemon = await serve(folder)
    await grantTo(daemon, discord, 3)
    await eventually(() => expect(holders(discord)).toHaveLength(3))
    const memberships = { settled: 3, due: 0, parked: 0 }
    const target = { environment: 'live', target: TARGET, state: 'ok', memberships }
    await becomes(daemon, { targets: [target] })
    expect(told(await built(folder, 'sync', 'status', '--json')).json).toMatchObject({
      paused: false,
      unconfirmed: 0,
      platforms: [{ platform: 'discord', state: 'ok', until: null, reason: null }],
      targets: [target],
      webhook: null,
    })
    expect((await answerOf(folder, 'sync', 'plan')).json).toEqual({ paused: false, hash: null, calls: [] })
    expect((await built(folder, 'sync', 'plan')).stdout).toBe('there is nothing to do\n')

    for (const n of [1, 2]) await ask(daemon, 'PUT', `/customers/cus_${n}/blocks`, { reason: 'a test' })
    await becomes(daemon, { unconfirmed: 2 })
    const { json: plan } = await answerOf(folder, 'sync', 'plan')
    expect(plan.calls).toEqual(
      [1, 2].map((n) => ({
        environment: 'live',
        target: TARGET,
        accountId: accountId(n),
        customerId: `cus_${n}`,
        action: 'take',
        needsConfirmation: true,
      })),
    )
    expect(await answerOf(folder, 'sync', 'run', '--confirm', 'another')).toMatchObject({
      code: 1,
      error: { code: 'plan_changed' },
    })
    expect(holders(discord)).toHaveLength(3)
    expect((await run(folder, 'sync', 'plan')).stdout).toContain(`latchkey sync run --confirm ${plan.hash}`)

    expect(told(await built(folder, 'sync', 'run', '--confirm', plan.hash, '--json'))).toMatchObject({
      code: 0,
      json: { done: true, paused: false, taken: 2, parked: 0, unconfirmed: 0 },
    })
    expect(holders(discord)).toEqual([accountId(3)])

    daemon.signal('SIGTERM')
    expect((await daemon.exit).code).toBe(0)
    expect(daemon.stdout() + daemon.stderr()).not.toContain(BOT_TOKEN)
  })

  it('is paused and resumed, by the daemon or without one, and tells the stopped database’s state', async () => {
    const discord = await startDiscord()
    const folder = followedFolder(discord)
    const daemon = await serve(folder)
    expect((await built(folder, 'sync', 'pause')).stdout).toBe('paused\n')
    await grantTo(daemon, discord, 1)
    await becomes(daemon, { paused: true, targets: [{ memberships: { due: 1 } }] })
    expect((await answerOf(folder, 'sync', 'run')).json).toMatchObject({ paused: true, given: 0 })
    daemon.signal('SIGTERM')
    await daemon.exit

    const stopped = await run(folder, 'sync', 'status')
    expect(stopped.code).toBe(0)
    expect(stopped.stdout).toContain('paused: no call is made until `latchkey sync resume`\n')
    expect(stopped.stdout).toContain(`live  ${TARGET}  0 settled, 1 due\n`)
    expect(stopped.stderr).toContain('no daemon runs')
    expect((await answerOf(folder, 'sync', 'plan')).json.calls).toHaveLength(1)
    expect((await answerOf(folder, 'sync', 'status', '--state', 'due')).json).toMatchObject({
      items: [{ accountId: accountId(1), customerId: 'cus_1', state: 'due', desired: true }],
      hasMore: false,
    })
    for (const needing of ['run', 'check']) {
      expect(await answerOf(folder, 'sync', needing)).toMatchObject({
        code: 1,
        error: { code: 'daemon_unreachable' },
      })
    }
    expect(told(await built(folder, 'sync', 'resume', '--json')).json).toEqual({ paused: false })
    expect(holders(discord)).toEqual([])
    await serve(folder)
    await eventually(() => expect(holders(discord)).toEqual([accountId(1)]))
  })

  it('says what somebody has to do on the platform, and goes on once it is done', async () => {
    const discord = await startDiscord()
    const folder = followedFolder(discord)
    const role = discord.guild.role(GOLD_ROLE_ID)
    discord.guild.setRole({ id: GOLD_ROLE_ID, position: 99 })
    const daemon = await serve(folder)
    const warning = expect.objectContaining({
      level: 'warn',
      about: TARGET,
      reason: expect.stringContaining("Put the bot's own role above"),
    })
    await eventually(() => expect(daemon.logged()).toContainEqual(warning))
    expect((await run(folder, 'sync', 'status')).stdout).toMatch(
      new RegExp(`^${TARGET}: Put the bot's own role above .* \\(checked .* ago\\)$`, 'm'),
    )
    expect((await run(folder, 'doctor')).stdout).toMatch(
      /^FAIL {2}sync discord:\d+:\d+ {2}Put the bot's own role above .*: then `latchkey sync check`$/m,
    )
    const check = await built(folder, 'sync', 'check')
    expect(check.code).toBe(1)
    expect(check.stdout).toMatch(new RegExp(`^FAIL  ${TARGET} `, 'm'))

    await grantTo(daemon, discord, 1)
    await becomes(daemon, { targets: [{ state: 'stopped' }] })
    expect((await run(folder, 'sync', 'status')).stdout).toContain(
      `${TARGET}: stopped until \`latchkey sync run\`: Put the bot's own role above`,
    )
    expect((await run(folder, 'doctor')).stdout).toMatch(
      /^FAIL {2}sync discord:\d+:\d+ {2}stopped: Put the bot's own role above .*: then `latchkey sync run`$/m,
    )

    discord.guild.setRole({ id: GOLD_ROLE_ID, position: role?.position ?? 1 })
    expect((await run(folder, 'sync', 'check')).code).toBe(0)
    expect(await answerOf(folder, 'sync', 'run', '--retry', '--customer', 'cus_1')).toMatchObject({
      code: 0,
      json: { done: true, given: 1 },
    })
    expect(holders(discord)).toEqual([accountId(1)])
    expect((await run(folder, 'doctor')).stdout).toMatch(/^ok {4}sync {2}/m)
  })

  it('shows what the outbound webhook could not tell, and sends it again', async () => {
    const receiver = await startReceiver()
    receiver.answerWith(status(410))
    const folder = configuredFolder({
      ...OPERATED,
      sync: { webhook: { url: receiver.url, secret: WEBHOOK_SECRET } },
    })
    const daemon = await serve(folder)
    await grant(daemon, 'cus_1')
    const parked = { state: 'parked', reason: 'gone', count: 1, lastError: 'answered 410' }
    await becomes(daemon, { webhook: { messages: [parked] } })
    expect((await answerOf(folder, 'sync', 'status')).json).toMatchObject({
      targets: [],
      webhook: { origin: new URL(receiver.url).origin, messages: [parked] },
    })
    expect((await run(folder, 'doctor')).stdout).toMatch(/^warn {2}sync webhook .*answered 410/m)
    receiver.answerWith(status(204))
    expect(await answerOf(folder, 'sync', 'run', '--retry', '--target', 'webhook')).toMatchObject({
      code: 0,
      json: { messages: 1 },
    })
    await eventually(() => expect(receiver.received).toHaveLength(2))
    expect(await answerOf(folder, 'sync', 'plan')).toMatchObject({ code: 1, error: { code: 'sync_off' } })
  })

  it('takes back what was given after the backup that was restored, and leaves what staff gave', async () => {
    const discord = await startDiscord()
    const folder = followedFolder(discord, { removals: { atMost: 20, percent: 100 } })
    const daemon = await serve(folder)
    discord.guild.join(accountId(9))
    discord.guild.give(accountId(9), GOLD_ROLE_ID)
    expect((await built(folder, 'backup', 'early.db')).code).toBe(0)
    await grantTo(daemon, discord, 2)
    // Not only given, but written down as given: whoever was not let in by the daemon stays.
    await becomes(daemon, { targets: [{ memberships: { settled: 2, due: 0 } }] })
    expect(holders(discord)).toHaveLength(3)
    await kill(daemon)

    const restored = await built(folder, 'restore', 'early.db')
    expect(restored.stdout).toContain('as the replaced database knew them: 2\n')
    expect(restored.stdout).toContain('sync is paused: see `latchkey sync plan`')
    const next = await serve(folder)
    await ask(next, 'PUT', '/customers/cus_1/identities', { communityId: accountId(1) })
    await grant(next, 'cus_1')
    await becomes(next, { paused: true, targets: [{ memberships: { settled: 1, due: 1 } }] })
    const { json: plan } = await answerOf(folder, 'sync', 'plan')
    expect(plan.calls).toMatchObject([{ action: 'take', customerId: 'cus_2', accountId: accountId(2) }])
    expect(holders(discord)).toHaveLength(3)
    await built(folder, 'sync', 'resume')
    await eventually(() => expect(holders(discord)).toEqual([accountId(1), accountId(9)]))
  })

  it('takes a choice of what to retry only with --retry', async () => {
    const folder = configuredFolder()
    expect(await answerOf(folder, 'sync', 'run', '--customer', 'cus_1')).toMatchObject({
      code: 2,
      error: { code: 'usage' },
    })
    expect(await answerOf(folder, 'sync', 'pause')).toMatchObject({
      code: 1,
      error: { code: 'store_missing' },
    })
  })
})
