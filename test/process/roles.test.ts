import { expect, it } from 'vitest'
import { accountId, GOLD_ROLE_ID } from '../platforms/discord-ids.js'
import { type LocalDiscord, startDiscord } from '../platforms/discord-server.js'
import { eventually } from '../setup/eventually.js'
import { startReceiver } from '../sync/webhook/receiver.js'
import { command, followedFolder, secretsSeen, serveFollowed, stateOf, toldBy } from './followed.js'
import { deliver, type SentEvent } from './load.js'
import {
  accountsOf,
  change,
  changeElsewhere,
  createMembers,
  firstPayment,
  hasAccess,
  hasAccessInTheEnd,
  type Member,
  PRODUCT,
  rightHolders,
} from './members.js'
import { changedAccounts, earlyCalls, hasMet, invalidCalls, OUTAGES } from './platform-calls.js'
import { entitlementsOf, kill, type ServedDaemon } from './served.js'
import { cursorsLogged, cursorsTold } from './told-changes.js'

/** Generous, for a machine that has other work too. */
const TIMEOUT_MS = 300_000

/** 2,500 changes in every run; by hand 320 members, and 20,000. */
const MEMBERS = createMembers(Number(process.env.ROLES_MEMBERS ?? 40))
/** Even: whoever flaps is as in the beginning after so many changes; the others change once more. */
const CHANGES = 62
const CHANGES_AN_OUTAGE = 16
const ALL_CHANGES = MEMBERS.length * CHANGES
/** So many calls may have been made, and their answers not written down, when a process dies. */
const CONCURRENCY = 4
/** One hundredth of what Discord allows in ten minutes. */
const FEW_INVALID_CALLS = 100

const begins = (member: Member) => member.begins
const holders = (discord: LocalDiscord) => discord.guild.holders(GOLD_ROLE_ID)

/** Delivers events at once; the time that takes, in milliseconds. */
async function takeIn(daemon: ServedDaemon, events: readonly SentEvent[]): Promise<number> {
  const begunAt = performance.now()
  const { acknowledged, refused } = await deliver(daemon.url, events)
  expect({ acknowledged: acknowledged.length, refused }).toEqual({ acknowledged: events.length, refused: [] })
  return performance.now() - begunAt
}

/** The nth change of everybody's access. Round by round, nobody's are out of order. */
async function takeInRound(daemon: ServedDaemon, n: number): Promise<number> {
  const changing = MEMBERS.filter(({ flaps }) => n <= CHANGES || !flaps)
  return takeIn(
    daemon,
    changing.map((member) => change(member, n)),
  )
}

/** How long a round takes that has nothing to do with the platform. */
async function usualTime(daemon: ServedDaemon): Promise<number> {
  const times: number[] = []
  for (const n of [1, 2, 3, 4, 5, 6]) {
    const events = MEMBERS.map((member) => changeElsewhere(member, n))
    times.push(await takeIn(daemon, events))
  }
  return times.toSorted((a, b) => a - b)[3] ?? 0
}

async function expectAccess(daemon: ServedDaemon, changes: number): Promise<void> {
  for (const member of MEMBERS.slice(0, 8)) {
    const own = member.flaps ? Math.min(changes, CHANGES) : changes
    const access = (await entitlementsOf(daemon, member.customerId)).find((one) => one.productId === PRODUCT)
    expect(access?.active ?? false).toBe(hasAccess(member, own))
  }
}

/** A guild with these members, in which staff have given the role to some, and that follows their access. */
async function startFollowing(members: readonly Member[], folder: (discord: LocalDiscord) => string) {
  const discord = await startDiscord()
  discord.guild.join(...accountsOf(members))
  for (const account of rightHolders(members, () => false)) discord.guild.give(account, GOLD_ROLE_ID)
  const followed = folder(discord)
  const daemon = await serveFollowed(followed)
  await takeIn(daemon, members.filter(begins).map(firstPayment))
  await eventually(() => expect(holders(discord)).toEqual(rightHolders(members, begins)))
  return { discord, folder: followed, daemon }
}

it(
  'after outages of every kind, thousands of changes of access and a kill, exactly those with access have the role',
  async () => {
    const receiver = await startReceiver()
    const removals = { atMost: MEMBERS.length, percent: 100 }
    const begun = await startFollowing(MEMBERS, (discord) => followedFolder(discord, { receiver, removals }))
    const { discord, folder } = begun
    let { daemon } = begun
    const moderator = accountId(10_000)
    discord.guild.join(moderator)
    discord.guild.give(moderator, GOLD_ROLE_ID)
    const written: string[] = []
    const usual = await usualTime(daemon)

    const downFrom = discord.calls.length
    let round = 0
    for (const outage of OUTAGES) {
      await discord.setState(outage.state)
      await takeInRound(daemon, ++round)
      await eventually(async () => expect(await hasMet(outage, discord, daemon)).toBe(true))
      const times: number[] = []
      while (round % CHANGES_AN_OUTAGE > 0 && round <= CHANGES) {
        times.push(await takeInRound(daemon, ++round))
      }
      // Were acknowledgements to wait for the platform, each would, for as long as a call is given.
      expect(Math.min(...times)).toBeLessThan(3 * usual)
      await expectAccess(daemon, round)
      written.push(await toldBy(daemon))
    }
    expect(round).toBe(CHANGES + 1)
    expect(changedAccounts(discord.calls.slice(downFrom))).toEqual([])

    const upFrom = discord.calls.length
    const changedBefore = discord.auditLog.length
    await discord.setState('up')
    const someAre = changedBefore + MEMBERS.length / 8
    await eventually(() => expect(discord.auditLog.length).toBeGreaterThan(someAre), { intervalMs: 1 })
    await kill(daemon)
    const killedAt = discord.calls.length
    const right = [...rightHolders(MEMBERS, hasAccessInTheEnd), moderator]
    expect(holders(discord)).not.toEqual(right)
    written.push(daemon.stdout(), daemon.stderr())
    discord.limit({ scope: 'global', seconds: 2 })
    daemon = await serveFollowed(folder)
    const settled = {
      targets: [{ memberships: { due: 0, retrying: 0, parked: 0, unconfirmed: 0 } }],
      webhook: { messages: [] },
    }
    await eventually(async () => expect(await stateOf(daemon)).toMatchObject(settled))
    expect(holders(discord)).toEqual(right)
    await expectAccess(daemon, round)
    const status = await command(folder, 'sync', 'status', '--json')
    expect(JSON.parse(status.stdout)).toMatchObject({ paused: false, ...settled })

    expect(earlyCalls(discord.calls, discord.calls.slice(downFrom, upFrom))).toEqual([])
    expect(invalidCalls(discord.calls).length).toBeLessThan(FEW_INVALID_CALLS)
    // Nobody has heard the answer of a call that was under way when the process died: it is made once more.
    const unheard = changedAccounts(discord.calls.slice(upFrom, killedAt)).slice(-CONCURRENCY)
    const changed = changedAccounts(discord.calls.slice(upFrom))
    for (const account of accountsOf(MEMBERS.filter(({ flaps }) => flaps))) {
      const calls = changed.filter((one) => one === account).length
      expect(calls).toBeLessThanOrEqual(unheard.includes(account) ? 2 : 1)
    }

    const logged = await cursorsLogged(folder)
    expect([...logged.values()].flat().length).toBeGreaterThan(ALL_CHANGES)
    expect(receiver.refused).toEqual([])
    expect(cursorsTold(receiver.received)).toEqual(logged)

    written.push(status.stdout, status.stderr, await toldBy(daemon))
    daemon.signal('SIGTERM')
    const { code, stdout, stderr } = await daemon.exit
    expect(code).toBe(0)
    expect(secretsSeen(folder, [...written, stdout, stderr])).toEqual([])
  },
  TIMEOUT_MS,
)

it(
  'removals beyond the bound, which an outage has gathered, wait for an operator over a kill; roles are given',
  async () => {
    const members = createMembers(40)
    const removals = { atMost: 5, percent: 10 }
    const begun = await startFollowing(members, (discord) => followedFolder(discord, { removals }))
    const { discord, folder } = begun
    await discord.setState('refuse')
    await takeIn(
      begun.daemon,
      members.map((member) => change(member, 1)),
    )
    await discord.setState('up')
    const everybody = accountsOf(members).toSorted()
    await eventually(() => expect(holders(discord)).toEqual(everybody))
    await kill(begun.daemon)
    const daemon = await serveFollowed(folder)
    const memberships = { due: 0, retrying: 0, parked: 0, unconfirmed: 18 }
    await eventually(async () => expect(await stateOf(daemon)).toMatchObject({ targets: [{ memberships }] }))
    expect(holders(discord)).toEqual(everybody)

    const plan = JSON.parse((await command(folder, 'sync', 'plan', '--json', '--all')).stdout)
    expect(plan.calls).toHaveLength(18)
    const run = await command(folder, 'sync', 'run', '--confirm', plan.hash, '--json')
    expect(JSON.parse(run.stdout)).toMatchObject({ taken: 18, unconfirmed: 0 })
    expect(holders(discord)).toEqual(rightHolders(members, (member) => hasAccess(member, 1)))
  },
  TIMEOUT_MS,
)
