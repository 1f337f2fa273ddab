/* What people at a support desk are asked, each answered in under five clicks. Takes the pictures of the documentation. */

import { mkdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { EXAMPLE_POLICY } from '../../src/config/policy.js'
import { accountId, BOT_TOKEN, GOLD_ROLE_ID, GUILD_ID, SILVER_ROLE_ID } from '../platforms/discord-ids.js'
import { type LocalDiscord, startDiscord } from '../platforms/discord-server.js'
import { createFolder } from '../setup/create-folder.js'
import { eventually } from '../setup/eventually.js'
import { whenFileEnds } from '../setup/file-ends.js'
import { type SentEvent, send, sentEvent } from '../stories.js'
import { act, type DaemonHere, entitlementsOf, rewriteConfig, serveHere } from '../world.js'
import { consoleConfig, useConsole } from './signed-in.js'

const browser = useConsole()

const NOON = Date.parse('2026-03-10T12:00:00.000Z')
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const MONTH_MS = 30 * DAY_MS

/** Where the pictures of the documentation go, if they are to be taken; others are thrown away. */
const IMAGES = process.env.SCREENSHOTS
const SHOWN_IN_DOCS = ['why', 'lost', 'policy']
const SIZE = { width: 1280, height: 800 } as const
const MOST_BYTES = 100_000

interface Member {
  readonly customerId: string
  readonly name: string
  readonly email: string
  /** Epoch milliseconds of the first payment. */
  readonly joinedAt: number
}

const NAMES = [
  ...['Maya Lindqvist', 'Jonas Weber', 'Priya Raman', 'Tomás Herrera', 'Aiko Tanaka', 'Owen Hughes'],
  ...['Lena Novak', 'Samir Haddad', 'Grace Okafor', 'Luca Moretti', 'Ines Duarte', 'Noah Fischer'],
  ...['Zofia Kowalska', 'Daniel Osei', 'Mina Park', 'Hugo Laurent', 'Sara Lindholm', 'Ravi Menon'],
  ...['Elif Demir', 'Jack Brennan', 'Nadia Petrova', 'Oskar Nyberg', 'Amara Nwosu', 'Felix Braun'],
  ...['Chloé Martin', 'Diego Santos', 'Hana Sato', 'Emil Jansen', 'Leila Farahani', 'Ben Carter'],
]

/** Their last weeks, so that some come and some go every day. */
const MEMBERS: readonly Member[] = NAMES.map((name, n) => {
  const [first = '', last = ''] = name.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase().split(' ')
  const digits = ((n + 11) * 48_271 * 65_537).toString(36).slice(-8)
  const joinedAt = NOON - (33 + ((n * 7) % 26)) * DAY_MS - ((n * 5) % 9) * HOUR_MS
  return { customerId: `cus_${digits}`, name, email: `${first}@${last}.example`, joinedAt }
})
const [MAYA, JONAS, PRIYA, TOMAS, AIKO, OWEN, ...OTHERS] = MEMBERS as readonly [
  ...[Member, Member, Member, Member, Member, Member],
  ...Member[],
]
const BUYERS = OTHERS.slice(-5)

type Happening = readonly [at: number, event: SentEvent]

function happening(
  { customerId, name, email }: Member,
  what: string,
  type: string,
  at: number,
  more: object,
): Happening {
  const data = { customer: { object: 'customer', id: customerId, email, name }, ...more }
  return [at, sentEvent(`evt_${customerId.slice(4)}_${what}`, type, at, data)]
}

const GOLD = { object: 'product', id: 'pro_gold' }
const idOf = ({ customerId }: Member): string => customerId.slice(4)
const payment = (member: Member, month: number) => ({
  ...{ object: 'payment', id: `pay_${idOf(member)}_${month}`, method: 'CARD', product: GOLD },
})
const subscription = (member: Member, month = 2) => ({
  ...{ object: 'subscription', id: `sub_${idOf(member)}`, product: GOLD },
  payment_id: `pay_${idOf(member)}_${month}`,
})

/** Gold, paid and renewed a month later. */
const membership = (member: Member): readonly Happening[] =>
  [1, 2].flatMap((month) => {
    const at = member.joinedAt + (month - 1) * MONTH_MS
    const cycle = month === 1 ? 'subscription.created' : 'subscription.renewed'
    return [
      happening(member, `authorized_${month}`, 'payment.authorized', at, payment(member, month)),
      happening(member, `captured_${month}`, 'payment.succeeded', at + 60_000, payment(member, month)),
      happening(member, `cycle_${month}`, cycle, at + 61_000, subscription(member, month)),
    ]
  })

const yesterdayAt = (hour: number): number => NOON - DAY_MS + (hour - 12) * HOUR_MS

/** What ended yesterday, but for Aiko's block. */
const ENDS: readonly Happening[] = [
  happening(MAYA, 'chargeback', 'payment.chargeback', yesterdayAt(9.2), payment(MAYA, 2)),
  happening(JONAS, 'refund', 'payment.refunded', yesterdayAt(10.6), payment(JONAS, 2)),
  happening(PRIYA, 'canceled', 'subscription.canceled', yesterdayAt(13.4), {
    ...subscription(PRIYA),
    expires_at: new Date(PRIYA.joinedAt + 2 * MONTH_MS).toISOString(),
  }),
  happening(TOMAS, 'expired', 'subscription.expired', yesterdayAt(15.1), subscription(TOMAS)),
  happening(OWEN, 'failed', 'payment.failed', yesterdayAt(18.7), payment(OWEN, 2)),
]

/** A pass for a workshop, authorized by the bank, or paid for at last. */
const PASSES: readonly Happening[] = BUYERS.map((buyer, n) => {
  const bought = { ...payment(buyer, 9), product: { object: 'product', id: 'pro_workshop' } }
  const type = n < 3 ? 'payment.authorized' : 'payment.succeeded'
  return happening(buyer, 'pass', type, NOON - (n + 2) * 5 * HOUR_MS, bought)
})

interface Desk {
  readonly daemon: DaemonHere
  readonly discord: LocalDiscord
  /** For pictures. */
  readonly folder: string
}

let desk: Desk

const atEnd = whenFileEnds()

beforeAll(async () => {
  const folder = createFolder()
  atEnd(() => rmSync(folder, { recursive: true, force: true }))
  const discord = await startDiscord({ atEnd })
  const role = (roleId: string) => ({ adapter: 'discord', guildId: GUILD_ID, roleId })
  const products = {
    pro_gold: { name: 'Gold', features: ['export', 'archive'], targets: [role(GOLD_ROLE_ID)] },
    pro_workshop: { name: 'Workshop pass', features: ['workshop'], targets: [role(SILVER_ROLE_ID)] },
  }
  const { grantOn, revokeOn } = EXAMPLE_POLICY
  // Card payments are to count once they are captured, and who cancels is to keep the paid period.
  const next = { grantOn: { card: ['payment.succeeded'] }, revokeOn, canceled: 'period_end' }
  const sync = { discord: { botToken: BOT_TOKEN, apiUrl: discord.url } }
  rewriteConfig(folder, consoleConfig({}, { products, sync, policy: { grantOn, revokeOn } }))
  let now = 0
  const daemon = await serveHere(folder, { atEnd, now: () => now })
  const happenings = [...[...MEMBERS].flatMap(membership), ...ENDS, ...PASSES].sort(([a], [b]) => a - b)
  for (const [at, event] of happenings.filter(([when]) => when < NOON)) {
    now = at + 1_500
    expect(await send(daemon.url, event, { at: now })).toMatchObject({ status: 200 })
  }
  now = yesterdayAt(16.5)
  await act(daemon, 'PUT', `/customers/${AIKO.customerId}/blocks`, { reason: 'shared her login' })
  now = NOON
  desk = { daemon, discord, folder }
  await linkAccounts(desk)
  rewriteConfig(folder, consoleConfig({}, { products, sync, policy: next }))
  await daemon.reload()
})

/** Some have a role; then somebody moves it above the bot's own, and the next one waits for it. */
async function linkAccounts({ daemon, discord }: Desk): Promise<void> {
  const linked = OTHERS.slice(0, 9)
  for (const [n, { customerId }] of linked.entries()) {
    if (n === linked.length - 1) {
      await eventually(() => expect(discord.guild.holders(GOLD_ROLE_ID)).toHaveLength(n))
      discord.guild.setRole({ id: GOLD_ROLE_ID, position: 20 })
    }
    discord.guild.join(accountId(n + 1))
    await act(daemon, 'PUT', `/customers/${customerId}/identities`, { communityId: accountId(n + 1) })
  }
  await eventually(async () => {
    const { targets } = (await act(daemon, 'GET', '/sync')) as {
      targets: { memberships: { retrying: number } }[]
    }
    expect(targets.some(({ memberships }) => memberships.retrying === 1)).toBe(true)
  })
}

/** Counts the clicks of a person: what they type is free. */
const COUNT_CLICKS =
  'window.clicks = 0; addEventListener("click", ({ isTrusted }) => { if (isTrusted) window.clicks += 1 }, true)'

/** The overview, on the day of the daemon. */
async function openDesk() {
  const { page, faults } = await browser.open(desk.daemon, '/sign-in', { viewport: SIZE })
  await page.clock.setFixedTime(NOON)
  await page.addInitScript(COUNT_CLICKS)
  await page.goto(`${desk.daemon.url}/console/`)
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  return { page, faults, clicks: () => page.evaluate('window.clicks') as Promise<number> }
}

/** Takes a picture in each of the colors. */
async function picture(page: Page, name: string): Promise<void> {
  const folder = IMAGES !== undefined && SHOWN_IN_DOCS.includes(name) ? IMAGES : desk.folder
  mkdirSync(folder, { recursive: true })
  // No more of an empty screen than a margin.
  const bottom = await page.evaluate<number>("document.querySelector('main').getBoundingClientRect().bottom")
  const isOpen = (await page.getByRole('dialog').count()) > 0
  const height = isOpen ? SIZE.height : Math.min(SIZE.height, Math.ceil(bottom))
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    const path = join(folder, `console-${name}-${colorScheme}.webp`)
    await page.screenshot({
      path,
      type: 'webp',
      quality: 85,
      animations: 'disabled',
      clip: { x: 0, y: 0, ...SIZE, height },
    })
    expect(statSync(path).size).toBeLessThan(MOST_BYTES)
  }
}

const part = (page: Page, title: string): Locator =>
  page.locator('section').filter({ has: page.getByRole('heading', { name: title, exact: true }) })

/** Types what a customer is known by, and goes to the one that is found. */
async function find(page: Page, email: string, customerId: string): Promise<void> {
  await page.keyboard.press('/')
  await page.keyboard.type(email)
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: customerId, exact: true }).click()
}

describe('under five clicks answer', () => {
  it('“why can’t Maya get in?”', async () => {
    const { page, faults, clicks } = await openDesk()
    await find(page, MAYA.email, MAYA.customerId)
    const gold = part(page, 'Gold')
    await gold.getByText('charged back', { exact: true }).first().waitFor()
    await gold.getByRole('button', { name: /Chargeback/ }).hover()
    await gold.getByRole('paragraph').filter({ hasText: 'Chargeback' }).first().waitFor()
    await picture(page, 'why')
    expect(await clicks()).toBe(1)
    expect(faults()).toEqual([])
  })

  it('“who lost access yesterday, and why?”', async () => {
    const { page, faults, clicks } = await openDesk()
    await page.getByRole('link', { name: 'Products', exact: true }).click()
    await page.getByRole('link', { name: 'Who lost access yesterday?' }).click()
    const lost = page.getByRole('region', { name: 'Changes of access, oldest first' })
    for (const [{ customerId }, why] of [
      [MAYA, 'charged back'],
      [JONAS, 'refunded'],
      [PRIYA, 'canceled'],
      [TOMAS, 'expired'],
      [AIKO, 'blocked by hand'],
      [OWEN, 'failed'],
    ] as const)
      await lost.getByRole('row', { name: customerId }).getByText(why).first().waitFor()
    await picture(page, 'lost')
    expect(await clicks()).toBe(2)
    expect(faults()).toEqual([])
  })

  it('“which role call is stuck?”', async () => {
    const { page, faults, clicks } = await openDesk()
    await page.getByRole('link', { name: 'Sync', exact: true }).click()
    const row = page.getByRole('row', { name: new RegExp(GOLD_ROLE_ID) })
    await row.getByRole('link', { name: '1', exact: true }).click()
    await page
      .getByText(/above the role/)
      .first()
      .waitFor()
    await picture(page, 'stuck')
    expect(await clicks()).toBe(2)
    expect(faults()).toEqual([])
  })

  it('“what will this policy change?”', async () => {
    const { page, faults, clicks } = await openDesk()
    await page.getByRole('link', { name: 'Policy' }).click()
    await page.getByRole('button', { name: 'Find out' }).click()
    await page.getByText('1 would gain access, 3 would lose it').waitFor()
    await picture(page, 'policy')
    expect(await clicks()).toBe(2)
    expect(faults()).toEqual([])
  })

  it('“give Jonas three weeks”', async () => {
    const { page, faults, clicks } = await openDesk()
    await find(page, JONAS.email, JONAS.customerId)
    await part(page, 'Gold').getByRole('button', { name: 'Grant…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Time from now').fill('3w')
    await dialog.getByLabel('Reason').fill('refunded by mistake, ticket 4711')
    await dialog.getByRole('listitem').filter({ hasText: 'Gold' }).waitFor()
    await picture(page, 'give')
    await dialog.getByRole('button', { name: 'Grant', exact: true, disabled: false }).click()
    await page.getByText('Granted Gold.').waitFor()
    expect(await entitlementsOf(desk.daemon, JONAS.customerId)).toMatchObject([{ status: 'ending' }])
    expect(await clicks()).toBe(3)
    expect(faults()).toEqual([])
  })
})
