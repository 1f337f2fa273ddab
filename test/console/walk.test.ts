/* Every page and act of the console, with a hundred thousand customers in the store. */

import { rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Locator, Page } from 'playwright-core'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { accountId, BOT_TOKEN, GOLD_ROLE_ID, GUILD_ID } from '../platforms/discord-ids.js'
import { type LocalDiscord, startDiscord } from '../platforms/discord-server.js'
import { startTelegram, BOT_TOKEN as TELEGRAM_TOKEN } from '../platforms/telegram-server.js'
import { createFolder } from '../setup/create-folder.js'
import { eventually } from '../setup/eventually.js'
import { whenFileEnds } from '../setup/file-ends.js'
import { expectNoFault } from '../setup/no-fault.js'
import { send, sentEvent } from '../stories.js'
import { GROUP_ID } from '../sync/telegram/connected.js'
import { SECRET, startAnswering } from '../sync/webhook/receiver.js'
import { API_KEY, act, type DaemonHere, entitlementsOf, rewriteConfig, run, serveHere } from '../world.js'
import { crowdEmail, crowdId, crowdReference, storeCrowd } from './crowd.js'
import { daysAgo, explanationOf, paidStory, receive, refundedStory } from './seeded.js'
import { type ConsolePage, consoleConfig, type Opening, useConsole } from './signed-in.js'

const CUSTOMERS = 100_000
const SCREEN = { width: 1280, height: 720 }
const TARGET = `discord:${GUILD_ID}:${GOLD_ROLE_ID}`
const browser = useConsole()

interface World {
  readonly daemon: DaemonHere
  readonly folder: string
  readonly discord: LocalDiscord
  /** The merchant's own server. */
  readonly own: Awaited<ReturnType<typeof startAnswering>>
}

let world: World

const atEnd = whenFileEnds()

/** One daemon for all of them: each is about customers of its own, and leaves sync and platforms as they were. */
beforeAll(async () => {
  const folder = createFolder()
  atEnd(() => rmSync(folder, { recursive: true, force: true }))
  const discord = await startDiscord({ atEnd })
  const telegram = await startTelegram(atEnd)
  telegram.addGroup(GROUP_ID)
  const own = await startAnswering(204, atEnd)
  const role = { adapter: 'discord', guildId: GUILD_ID, roleId: GOLD_ROLE_ID }
  const group = { adapter: 'telegram', groupId: String(GROUP_ID) }
  const products = {
    pro_gold: { name: 'Gold', features: ['export', 'api'], targets: [role, group] },
    pro_silver: { name: 'Silver', features: ['export'] },
  }
  const sync = {
    discord: { botToken: BOT_TOKEN, apiUrl: discord.url },
    telegram: { botToken: TELEGRAM_TOKEN, apiUrl: telegram.url },
    // Nobody loses a role before somebody has looked.
    removals: { atMost: 0, percent: 0 },
    webhooks: { crm: { url: own.url, secret: SECRET } },
  }
  // Beside what is in force, a card payment that has succeeded gives access, too.
  const policy = { grantOn: { card: ['payment.authorized', 'checkout.succeeded', 'payment.succeeded'] } }
  rewriteConfig(folder, consoleConfig({}, { products, sync, policy }))
  await storeCrowd(folder, CUSTOMERS)
  const daemon = await serveHere(folder, { atEnd })
  world = { daemon, folder, discord, own }
})

/** What the browser logs of the answers that a scenario is about. */
type Expected = { readonly logs?: RegExp }

/** Opens a view in a new window, in which nothing else goes wrong until the test ends. */
async function open(path: string, { logs, ...options }: Opening & Expected = {}): Promise<Page> {
  const { page, faults } = await browser.open(world.daemon, path, options)
  onTestFinished(() => expect(faults().filter((one) => logs?.test(one) !== true)).toEqual([]))
  return page
}

let desk: Promise<ConsolePage> | undefined

/** Goes to a view, in the window where somebody is at work all day. */
async function go(path: string, { logs }: Expected = {}): Promise<Page> {
  desk ??= browser.open(world.daemon, '/sign-in', { atEnd })
  const { page, faults } = await desk
  const before = faults().length
  onTestFinished(() =>
    expect(
      faults()
        .slice(before)
        .filter((one) => logs?.test(one) !== true),
    ).toEqual([]),
  )
  await page.setViewportSize(SCREEN)
  await page.emulateMedia({ colorScheme: 'light' })
  await page.goto(`${world.daemon.url}/console${path}`)
  return page
}

/** A part of a page. */
const part = (page: Page, title: string): Locator =>
  page.locator('section').filter({ has: page.getByRole('heading', { name: title, exact: true }) })

const press = (from: Page | Locator, name: string | RegExp): Promise<void> =>
  from.getByRole('button', { name, exact: true }).first().click()

/** Says yes in the dialog. */
const confirm = (page: Page, name: string): Promise<void> =>
  page.getByRole('dialog').getByRole('button', { name, exact: true, disabled: false }).click()

const says = (from: Page | Locator, text: string | RegExp): Promise<void> =>
  from.getByText(text).first().waitFor()

/** What appears for a moment once something is done. */
const reports = (page: Page, text: string | RegExp): Promise<void> =>
  page.getByRole('status').getByText(text).first().waitFor()

/** How many rows a list has. */
const rowsOf = async (table: Locator): Promise<number> => (await table.getByRole('row').count()) - 1

const grant = (customerId: string, productId = 'pro_gold'): Promise<unknown> =>
  act(world.daemon, 'POST', `/customers/${customerId}/grants`, { productId, reason: 'a case' })

/** Links a member of the guild to a customer. */
async function link(customerId: string, account: number): Promise<void> {
  world.discord.guild.join(accountId(account))
  await act(world.daemon, 'PUT', `/customers/${customerId}/identities`, { communityId: accountId(account) })
}

/** Waits until `GET /sync` says so. */
const syncBecomes = (state: object) =>
  eventually(async () => expect(await act(world.daemon, 'GET', '/sync')).toMatchObject(state))
const counted = (memberships: object) => ({
  targets: expect.arrayContaining([
    expect.objectContaining({ target: TARGET, memberships: expect.objectContaining(memberships) }),
  ]),
})

describe('the frame', () => {
  it('is entered by a key, by no wrong one, where it says that an address is no page, and left', async () => {
    const page = await open('/nowhere?environment=sandbox', { key: null, logs: /401/ })
    await page.getByLabel('API key').fill('lk_wrong')
    await press(page, 'Sign in')
    await says(page.getByRole('alert'), 'not a valid key')
    await expectNoFault(page)
    await page.getByLabel('API key').fill(API_KEY)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor()
    expect(page.url()).toBe(`${world.daemon.url}/console/nowhere?environment=sandbox`)
    await expectNoFault(page)
    await page.getByText('operator').click()
    await press(page, 'Sign out')
    await page.getByLabel('API key').waitFor()
    expect(await page.context().cookies()).toEqual([])
  })

  it('is entered by a link from the server', async () => {
    const page = await open('/sign-in', { key: null, logs: /401/ })
    const { stdout } = await run(world.folder, 'console')
    await page.goto(stdout.trim())
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await says(page, 'What the doctor found')
  })

  it('leads to each page by two keys', async () => {
    const page = await go('/')
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor()
    await expectNoFault(page)
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    const pages = {
      c: 'Customers',
      e: 'Events',
      p: 'Products and features',
      s: 'Sync and webhooks',
      y: 'Policy',
    }
    for (const [letter, heading] of Object.entries({ ...pages, o: 'Overview' })) {
      await page.keyboard.press('g')
      await page.keyboard.press(letter)
      await page.getByRole('heading', { name: heading, exact: true, level: 1 }).waitFor()
    }
    await page.keyboard.press('/')
    expect(await page.locator(':focus').getAttribute('type')).toBe('search')
  })

  it('shows the other environment, the other colors and times in UTC', async () => {
    const page = await open('/events')
    await says(page, 'payment.authorized')
    const first = page.getByRole('row').nth(1).locator('time').first()
    const inBerlin = await first.textContent()
    await page.getByText('operator').click()
    await page.getByLabel('Times').selectOption('utc')
    await page.getByLabel('Colors').selectOption('dark')
    expect(await first.textContent()).not.toBe(inBerlin)
    expect(await first.getAttribute('title')).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d.* UTC, /)
    await page.getByLabel('Environment').selectOption('sandbox')
    await says(page, 'No event was received in sandbox.')
    expect(page.url()).toBe(`${world.daemon.url}/console/events?environment=sandbox`)
    await page.goBack()
    await says(page, 'payment.authorized')
    await page.goForward()
    await page.reload()
    await says(page, 'No event was received in sandbox.')
    expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark')
  })
})

describe('the overview', () => {
  it('counts a delivery as it comes', async () => {
    const page = await go('/')
    await says(page, 'up to date')
    const applied = page
      .getByRole('term')
      .filter({ hasText: /^applied$/ })
      .locator('..')
      .getByRole('definition')
    const before = Number(await applied.textContent())
    await receive(world.daemon, paidStory('cus_counted'))
    await eventually(async () => expect(Number(await applied.textContent())).toBe(before + 1))
    await page
      .getByRole('img', { name: /^Deliveries of the last hour by minute: \d+ applied/ })
      .locator('canvas')
      .waitFor()
    await says(page.getByRole('row', { name: /^live/ }), 'usual')
  })

  it('says how the daemon is, what the doctor found, and what to do about it', async () => {
    const page = await go('/')
    await says(part(page, 'Daemon'), 'ready')
    await says(part(page, 'Daemon'), 'running')
    await says(part(page, 'What the doctor found').getByRole('row', { name: /policy/ }), /latchkey policy/)
    await press(page, 'Check again')
    await says(part(page, 'What the doctor found').getByRole('row', { name: /policy/ }), /latchkey policy/)
    await says(part(page, 'Last backfill'), 'None was run so far')
    await expectNoFault(page)
  })
})

describe('the search', () => {
  it('finds by the beginning of an id, twenty at a time, and leads on by keyboard', async () => {
    const page = await go('/')
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('c')
    await says(page, 'type how an id')
    await page.keyboard.press('/')
    await page.keyboard.type('cus_crowd_01')
    const found = page.getByRole('table')
    await found.getByRole('link', { name: crowdId(10_000), exact: true }).waitFor()
    expect(await rowsOf(found)).toBe(20)
    await press(page, 'More')
    await found.getByRole('link', { name: crowdId(10_039), exact: true }).waitFor()
    expect(await rowsOf(found)).toBe(40)
    await expectNoFault(page)
    await page.getByRole('searchbox').focus()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: crowdId(10_000) }).waitFor()
    await says(part(page, 'Silver'), 'active')
  })

  it.each([
    ['a reference', crowdReference(77_777), `your reference: ${crowdReference(77_777)}`, crowdId(77_777)],
    ['an email', crowdEmail(4_242).toUpperCase(), `email: ${crowdEmail(4_242)}`, crowdId(4_242)],
    ['a Discord account', accountId(1), `Discord account: ${accountId(1)}`, 'cus_found'],
  ])('finds by %s', async (_, typed, shown, customerId) => {
    await link('cus_found', 1)
    const page = await go('/customers')
    await page.getByRole('searchbox').fill(typed)
    await page.getByRole('cell', { name: shown }).waitFor()
    await page.getByRole('link', { name: customerId, exact: true }).click()
    await page.getByRole('heading', { name: customerId }).waitFor()
  })

  it('leads on with an id that nobody has', async () => {
    const page = await go('/customers?query=cus_nobody', { logs: /404/ })
    await says(page, 'begins with “cus_nobody”')
    await page.getByRole('link', { name: 'its page' }).click()
    await says(page, 'Nothing is stored about cus_nobody in live')
    await expectNoFault(page)
  })
})

describe('a customer', () => {
  it('can’t get in, for the reason that a mark on the timeline says', async () => {
    await receive(world.daemon, refundedStory('cus_why'))
    const page = await go('/customers/cus_why')
    const gold = part(page, 'Gold')
    await says(gold, await explanationOf(world.daemon, 'cus_why'))
    expect(await gold.locator('svg .access').count()).toBe(1)
    const refund = gold.getByRole('button', { name: /Refund of pay_cus_why_2/ })
    await refund.hover()
    await gold.getByRole('paragraph').filter({ hasText: 'Refund of pay_cus_why_2' }).waitFor()
    await refund.focus()
    await page.keyboard.press('ArrowLeft')
    await gold.getByRole('paragraph').filter({ hasText: 'Renewal' }).waitFor()
    await expectNoFault(page)
    await gold.getByText('5 events').click()
    await gold.getByRole('link', { name: 'payment.refunded' }).click()
    await page.getByRole('heading', { name: 'evt_cus_why_refunded' }).waitFor()
  })

  it('is shown as of another time, by mouse and by keyboard, in an address that can be sent', async () => {
    await receive(world.daemon, refundedStory('cus_then'))
    const page = await go('/customers/cus_then')
    const gold = part(page, 'Gold')
    await gold.getByRole('button', { name: /Renewal of/ }).click()
    await page.waitForURL(/at=/)
    await says(gold, /^As of/)
    const marker = gold.getByRole('slider')
    for (let day = 0; day < 15; day += 1) await marker.press('ArrowLeft')
    // Access ran, and by now its end is known.
    await gold.locator('.as-of').getByText('ending', { exact: true }).waitFor()
    const at = await eventually(async () => {
      const shown = new URL(page.url()).searchParams.get('at') ?? ''
      expect(Date.parse(shown)).toBeCloseTo(Number(await marker.inputValue()), -1)
      return shown
    })
    const sent = await open(`/customers/cus_then?at=${at}`)
    await says(part(sent, 'Gold'), await explanationOf(world.daemon, 'cus_then', `?at=${at}`))
    await press(part(sent, 'Gold'), 'Back to now')
    await says(part(sent, 'Gold'), await explanationOf(world.daemon, 'cus_then'))
  })

  it('shows why another product is not theirs', async () => {
    await receive(world.daemon, refundedStory('cus_other'))
    const page = await go('/customers/cus_other')
    await page.getByLabel('Explain another product').selectOption('Silver')
    await says(part(page, 'Silver'), 'has never had access to pro_silver')
  })

  it('shows sources, features, roles, who they are, what was sent about them, and every change', async () => {
    await link('cus_whole', 2)
    await receive(world.daemon, refundedStory('cus_whole'))
    await grant('cus_whole')
    await syncBecomes({ webhooks: [{ waiting: 0 }], ...counted({ due: 0 }) })
    const page = await go('/customers/cus_whole')
    await says(part(page, 'Sources').getByRole('row', { name: /sub_cus_whole/ }), 'refunded')
    await says(part(page, 'Features').getByRole('row', { name: /export/ }), 'active')
    await says(part(page, 'Roles and groups').getByRole('row', { name: /settled/ }), 'has the role')
    await says(part(page, 'Identities and references'), 'crm-cus_whole')
    await says(part(page, 'Webhooks about them').getByRole('row', { name: /granted/ }), 'delivered')
    await says(
      part(page, 'Changes of access').getByRole('row', { name: /evt_cus_whole_refunded/ }),
      'refunded',
    )
    await part(page, 'Sources').getByRole('link', { name: 'sub_cus_whole' }).click()
    await page.getByRole('link', { name: 'evt_cus_whole_renewed' }).waitFor()
  })

  it('is shown as others change them', async () => {
    await receive(world.daemon, refundedStory('cus_live'))
    const page = await go('/customers/cus_live')
    await says(part(page, 'Gold'), 'the payment was refunded')
    await grant('cus_live')
    await part(page, 'Gold').getByText('active', { exact: true }).first().waitFor()
  })
})

describe('an act', () => {
  it('grants for a time, once it has said which role comes with it', async () => {
    await link('cus_weeks', 3)
    const page = await go('/customers/cus_weeks')
    await press(part(page, 'Gold'), 'Grant…')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Time from now').fill('3w')
    await says(dialog, `Account ${accountId(3)} gets`)
    expect(await dialog.getByRole('button', { name: 'Grant', exact: true }).isDisabled()).toBe(true)
    await dialog.getByLabel('Reason').fill('case 17')
    await expectNoFault(page)
    await confirm(page, 'Grant')
    await says(page, 'Granted Gold.')
    await part(page, 'Gold').getByText('ending', { exact: true }).first().waitFor()
    await eventually(() => expect(world.discord.guild.holders(GOLD_ROLE_ID)).toContain(accountId(3)))
  })

  it.each([
    ['until a date', 'ending'],
    ['for good', 'active'],
  ])('grants %s', async (end, status) => {
    const customerId = `cus_${status}`
    await receive(world.daemon, refundedStory(customerId))
    const page = await go(`/customers/${customerId}`)
    await press(part(page, 'Gold'), 'Grant…')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('How long').selectOption(end)
    if (end === 'until a date') await dialog.getByLabel('Ends at').fill('2090-01-01T12:00')
    await dialog.getByLabel('Reason').fill('case 18')
    await confirm(page, 'Grant')
    await part(page, 'Gold').getByText(status, { exact: true }).first().waitFor()
    expect(await entitlementsOf(world.daemon, customerId)).toMatchObject([{ status }])
  })

  it('revokes what was granted', async () => {
    await grant('cus_revoked')
    const page = await go('/customers/cus_revoked')
    await press(part(page, 'Gold'), 'Revoke…')
    await says(page.getByRole('dialog'), 'nothing that was paid')
    await confirm(page, 'Revoke')
    await says(page, 'Revoked the grant of Gold.')
    expect(await entitlementsOf(world.daemon, 'cus_revoked')).toMatchObject([{ status: 'revoked' }])
  })

  it('blocks from one product, and lifts that', async () => {
    const page = await go(`/customers/${crowdId(5)}`)
    await press(part(page, 'Silver'), 'Block…')
    await page.getByRole('dialog').getByLabel('Reason').fill('shared password')
    await confirm(page, 'Block')
    await part(page, 'Silver').getByText('blocked', { exact: true }).first().waitFor()
    await press(part(page, 'Silver'), 'Unblock…')
    await confirm(page, 'Unblock')
    await says(page, 'Lifted the block on Silver.')
    expect(await entitlementsOf(world.daemon, crowdId(5))).toMatchObject([{ active: true }])
  })

  it('blocks from everything, and lifts that', async () => {
    const page = await go(`/customers/${crowdId(6)}`)
    await part(page, 'Silver').waitFor()
    await press(page.getByRole('group', { name: 'Acts' }), 'Block…')
    await says(page.getByRole('dialog'), 'Silver')
    await page.getByRole('dialog').getByLabel('Reason').fill('chargeback under review')
    await confirm(page, 'Block')
    await part(page, 'Silver').getByText('blocked', { exact: true }).first().waitFor()
    await press(page.getByRole('group', { name: 'Acts' }), 'Unblock…')
    await confirm(page, 'Unblock')
    await says(page, 'Lifted the block on every product.')
    expect(await entitlementsOf(world.daemon, crowdId(6))).toMatchObject([{ active: true }])
  })

  it('links an account', async () => {
    world.discord.guild.join(accountId(4))
    await grant('cus_linked')
    const page = await go('/customers/cus_linked')
    await says(part(page, 'Roles and groups'), 'No Discord account is linked to cus_linked')
    await press(page, 'Link accounts…')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Discord account').fill(accountId(4))
    await dialog.getByLabel('Reason').focus()
    await says(dialog, `Account ${accountId(4)} gets`)
    await confirm(page, 'Link')
    await says(part(page, 'Identities and references'), accountId(4))
    await eventually(() => expect(world.discord.guild.holders(GOLD_ROLE_ID)).toContain(accountId(4)))
  })

  it.each([
    ['Invites…', 'Valid once'],
    ['Link to the bot…', 'start='],
  ])('makes what is to be sent: %s', async (name, shown) => {
    const customerId = `cus_${name.slice(0, 4)}`
    const page = await go(`/customers/${customerId}`, { logs: /404|409/ })
    await press(page, name)
    if (name === 'Invites…') {
      await confirm(page, 'Create')
      await says(page.getByRole('dialog').getByRole('alert'), 'not_entitled')
      await expectNoFault(page)
    }
    await grant(customerId)
    await confirm(page, 'Create')
    await says(page.getByRole('dialog'), shown)
  })

  it('erases for good', async () => {
    await receive(world.daemon, refundedStory('cus_erased'))
    const page = await go('/customers/cus_erased')
    await press(page, 'Erase…')
    const dialog = page.getByRole('dialog')
    await says(dialog, 'Removed: Email, Name.')
    await dialog.getByLabel('Type cus_erased to confirm').fill('cus_eras')
    expect(await dialog.getByRole('button', { name: 'Erase for good' }).isDisabled()).toBe(true)
    await dialog.getByLabel('Type cus_erased to confirm').fill('cus_erased')
    await expectNoFault(page)
    await confirm(page, 'Erase for good')
    await page.getByText('erased', { exact: true }).waitFor()
    expect(await page.getByText('ada@private.example').count()).toBe(0)
  })
})

/** The lines that the API exports. */
async function exported(query: string): Promise<string> {
  for (let text = '', cursor = ''; ; ) {
    const page = await act(world.daemon, 'GET', `/exports?${query}${cursor}`)
    text += page.lines.join('')
    if (page.pagination.nextCursor === null) return text
    cursor = `&cursor=${page.pagination.nextCursor}`
  }
}

describe('the stored events', () => {
  it('are chosen by a filter in the address, and come page by page', async () => {
    await receive(world.daemon, refundedStory('cus_listed'))
    const page = await go('/events')
    await page.getByRole('link', { name: 'evt_cus_listed_refunded' }).waitFor()
    const table = page.getByRole('table')
    expect(await rowsOf(table)).toBe(50)
    await press(page, 'More')
    await eventually(async () => expect(await rowsOf(table)).toBe(100))
    await page.getByRole('textbox', { name: 'Customer' }).fill('cus_listed')
    await page.keyboard.press('Enter')
    await page.waitForURL(/customerId=cus_listed/)
    await eventually(async () => expect(await rowsOf(table)).toBe(5))
    await page.getByLabel('Type').fill('payment.refunded')
    await page.keyboard.press('Enter')
    await eventually(async () => expect(await rowsOf(table)).toBe(1))
    await page.getByLabel('Subscription').fill('sub_cus_listed')
    await page.keyboard.press('Enter')
    await page.waitForURL(/subscriptionId=sub_cus_listed/)
    expect(await page.getByRole('button', { name: 'Export these…' }).isDisabled()).toBe(true)
    await expectNoFault(page)
    await page.goBack()
    await page.goBack()
    await eventually(async () => expect(await rowsOf(table)).toBe(5))
    await press(page, 'Clear')
    await page.getByRole('button', { name: 'More' }).waitFor()
  })

  it('are exported as lines that an import takes', async () => {
    const story = refundedStory('cus_exported')
    await receive(world.daemon, story)
    const page = await go('/events?customerId=cus_exported')
    await page.getByRole('link', { name: 'evt_cus_exported_paid', exact: true }).waitFor()
    const saving = page.waitForEvent('download')
    await press(page, 'Export these…')
    await confirm(page, 'Save')
    const download = await saving
    expect(download.suggestedFilename()).toBe('latchkey-live-events.jsonl')
    await says(page, 'Saved 5 lines.')
    const saved = await readFile(await download.path(), 'utf8')
    expect(saved).toBe(await exported('customerId=cus_exported&environment=live'))
    const lines = saved.trimEnd().split('\n')
    const bodies = lines.map((line) => Buffer.from(JSON.parse(line).bodyBase64, 'base64').toString())
    expect(bodies).toEqual(story.map(({ body }) => body))
    await expectNoFault(page)
  })

  it('are read again by a filter, once the page has said what would follow', async () => {
    await receive(world.daemon, refundedStory('cus_replayed'))
    const page = await go('/events?customerId=cus_replayed')
    await page.getByRole('link', { name: 'evt_cus_replayed_paid', exact: true }).waitFor()
    await press(page, 'Replay these…')
    await says(page.getByRole('dialog'), '5 events read, 0 would be read differently')
    await says(page.getByRole('dialog'), 'Nobody’s access would change.')
    await expectNoFault(page)
    await confirm(page, 'Replay')
    await says(page, /^Replayed: 0 read differently/)
  })
})

describe('an event', () => {
  it('is shown as it came and as it was read, with its signature', async () => {
    const page = await go(`/events/evt_crowd_000007`)
    await says(page, '"type": "payment.authorized"')
    await says(page, '"paymentId": "pay_crowd_000007"')
    await says(page, /^v1=/)
    await expectNoFault(page)
    await press(page, 'Without indentation')
    await says(page, '{"id":"evt_crowd_000007"')
    const saved = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Download the bytes' }).click()
    expect(await readFile(await (await saved).path(), 'utf8')).toContain('evt_crowd_000007')
    await page.getByRole('link', { name: crowdId(7) }).click()
    await page.getByRole('heading', { name: crowdId(7) }).waitFor()
  })

  it('that can’t be used is kept, and says why', async () => {
    const bytes = Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d])
    expect(await send(world.daemon.url, { id: '', body: bytes as unknown as string })).toMatchObject({
      status: 200,
    })
    const page = await go('/events?disposition=quarantined')
    await page.getByRole('link', { name: /^sha256:/ }).click()
    await says(page, 'It is not UTF-8.')
    await says(page, '7b 22 ff fe 22 7d')
    await says(page, 'nothing was read from it')
    await expectNoFault(page)
  })

  it('that came with two bodies shows both', async () => {
    const [[first], [second]] = [paidStory('cus_twice'), paidStory('cus_twice', daysAgo(4))]
    await receive(
      world.daemon,
      [first, second].filter((one) => one !== undefined),
    )
    const page = await go('/events?conflicts=true')
    await page.getByRole('link', { name: 'evt_cus_twice_silver' }).click()
    await press(page, 'Show')
    await says(page, 'did not count')
    const other = JSON.parse(second?.body ?? '') as { readonly createdAt: string }
    await says(page.locator('pre').nth(1), other.createdAt)
    await expectNoFault(page)
  })

  it('is read again by itself', async () => {
    await receive(world.daemon, refundedStory('cus_again'))
    const page = await go('/events/evt_cus_again_refunded')
    await press(page, 'Replay…')
    await says(page.getByRole('dialog'), '1 event read, 0 would be read differently')
    await confirm(page, 'Replay')
    await says(page, /^Replayed: 0 read differently/)
  })
})

describe('products', () => {
  it('say how many have each, down to the customers', async () => {
    const page = await go('/products')
    const silver = page.getByRole('row', { name: /pro_silver/ })
    expect(Number(await silver.getByRole('cell').nth(2).textContent())).toBeGreaterThan(CUSTOMERS - 10)
    await says(page.getByRole('row', { name: /^api/ }), 'Gold')
    await expectNoFault(page)
    await silver.getByRole('link', { name: 'Silver' }).click()
    const members = page.getByRole('region', { name: 'Customers with access' })
    await members.getByRole('link').first().waitFor()
    const before = await rowsOf(members)
    await press(page, 'More')
    await eventually(async () => expect(await rowsOf(members)).toBeGreaterThan(before))
  })

  it('show a year of access as a picture and as a table', async () => {
    const page = await go('/products/pro_silver?span=year')
    await page
      .getByRole('img', { name: /gained access and \d+ lost it/ })
      .locator('canvas')
      .waitFor()
    await page.getByText('The same as a table').click()
    const weeks = page.getByRole('region', { name: 'Gains and losses by week' })
    expect(await rowsOf(weeks)).toBeGreaterThan(51)
    await expectNoFault(page)
    await weeks.getByRole('link').last().click()
    await page.getByRole('heading', { name: 'Changes of access', level: 1 }).waitFor()
  })

  it('lose a customer today, for a reason that the changes name', async () => {
    await act(world.daemon, 'PUT', `/customers/${crowdId(8)}/blocks`, { reason: 'a case' })
    const page = await go('/changes')
    await press(page, 'Today')
    await page.getByLabel('What').selectOption('lost')
    await page.getByLabel('Product').selectOption('Silver')
    const row = page.getByRole('row', { name: new RegExp(crowdId(8)) })
    await says(row, 'blocked by hand')
    expect(new URL(page.url()).search).toMatch(/^\?from=[\d-]{10}&turn=lost&product=pro_silver$/)
    await expectNoFault(page)
    await row.getByRole('link', { name: /^man_/ }).click()
    await says(page, 'manual.blocked')
  })
})

describe('sync', () => {
  it('asks the platforms whether all is well', async () => {
    const page = await go('/sync')
    await press(page, 'Check now')
    const said = page.getByRole('region', { name: 'What the platforms say' })
    await said.getByText('ok', { exact: true }).first().waitFor()
    expect(await said.getByText('fail', { exact: true }).count()).toBe(0)
    await expectNoFault(page)
  })

  it('runs when it is told to', async () => {
    const page = await go('/sync')
    await press(page, 'Run now…')
    await says(page.getByRole('dialog'), /^\d+ calls?: /)
    await confirm(page, 'Run')
    await reports(page, /^\d+ given, 0 taken/)
  })

  it('is paused, keeps what is due, and makes it up once it is resumed', async () => {
    const page = await go('/sync')
    await press(page, 'Pause…')
    await confirm(page, 'Pause')
    await page.getByText('paused', { exact: true }).waitFor()
    await link('cus_paused', 5)
    await grant('cus_paused')
    await syncBecomes({ paused: true, ...counted({ due: 1 }) })
    await press(page, 'Resume…')
    await confirm(page, 'Resume')
    await eventually(() => expect(world.discord.guild.holders(GOLD_ROLE_ID)).toContain(accountId(5)))
  })

  it('says which call is stuck and why, and makes it again', async () => {
    world.discord.guild.setRole({ id: GOLD_ROLE_ID, position: 20 })
    onTestFinished(() => world.discord.guild.setRole({ id: GOLD_ROLE_ID, position: 1 }))
    await link('cus_stuck', 6)
    await grant('cus_stuck')
    await syncBecomes(counted({ retrying: 1 }))
    const page = await go('/sync')
    const row = page.getByRole('row', { name: new RegExp(TARGET) })
    await row.getByRole('link', { name: '1', exact: true }).click()
    expect(new URL(page.url()).searchParams.get('state')).toBe('retrying')
    await says(page, /above the role/)
    await expectNoFault(page)
    world.discord.guild.setRole({ id: GOLD_ROLE_ID, position: 1 })
    await press(page, 'Retry cus_stuck')
    await confirm(page, 'Retry')
    await reports(page, '1 given, 0 taken.')
    await says(page, 'None matches')
    await page.getByLabel('State').selectOption('settled')
    await says(page.getByRole('row', { name: /cus_stuck/ }), 'as it should be')
  })

  it('takes no role away before somebody has looked', async () => {
    await link('cus_taken', 7)
    await grant('cus_taken')
    await eventually(() => expect(world.discord.guild.holders(GOLD_ROLE_ID)).toContain(accountId(7)))
    await act(world.daemon, 'PUT', '/customers/cus_taken/blocks', { reason: 'a case' })
    await syncBecomes({ unconfirmed: 1 })
    const page = await go('/sync')
    await press(page, 'Look and approve…')
    const dialog = page.getByRole('dialog', { name: 'Remove members in live' })
    await says(dialog, '1 removal')
    await says(dialog, 'cus_taken')
    await expectNoFault(page)
    await confirm(page, 'Remove them')
    await reports(page, '0 given, 1 taken.')
    expect(world.discord.guild.holders(GOLD_ROLE_ID)).not.toContain(accountId(7))
  })

  it('shows each attempt to deliver a message, tests the address, and sends it again', async () => {
    world.own.answerWith(410)
    onTestFinished(() => world.own.answerWith(204))
    await grant('cus_told')
    await syncBecomes({ webhooks: [{ failed: 1 }] })
    const page = await go('/sync')
    await page.getByRole('row', { name: /^crm/ }).getByRole('link', { name: '1', exact: true }).click()
    const row = page.getByRole('row', { name: /cus_told/ })
    await says(row, 'the address said that it is gone')
    await row.getByRole('group').click()
    await says(row, 'answered 410')
    await expectNoFault(page)
    await page.getByRole('link', { name: 'Sync and webhooks' }).click()
    await press(page, 'Test crm')
    await page.getByRole('dialog').getByLabel('Type').selectOption('entitlement.revoked')
    await confirm(page, 'Send')
    await reports(page, 'Not delivered to crm')
    world.own.answerWith(204)
    await page.getByRole('row', { name: /^crm/ }).getByRole('link', { name: '1', exact: true }).click()
    await row.getByRole('button', { name: /^Replay/ }).click()
    await says(page.getByRole('dialog'), 'under their ids')
    await confirm(page, 'Send again')
    await reports(page, '1 message is sent again.')
    await syncBecomes({ webhooks: [{ failed: 0, waiting: 0 }] })
  })

  it('sends the messages of a stretch of time again', async () => {
    const page = await go('/sync/messages')
    await press(page, 'Replay a stretch of time…')
    await page.getByRole('dialog').getByLabel('From').fill('2026-01-01T00:00')
    await page.getByRole('dialog').getByLabel('To, or until now').fill('2026-01-02T00:00')
    await confirm(page, 'Send again')
    await reports(page, '0 messages are sent again.')
  })
})

describe('the policy', () => {
  it('is what everything stored follows', async () => {
    const page = await go('/policy')
    await press(page, 'Verify')
    await page.getByRole('progressbar', { name: 'The verification' }).waitFor()
    await says(page, 'Everything stored matches the events.')
  })

  it('changes for those who are named before, and is applied while one watches', async () => {
    const customer = { object: 'customer', id: 'cus_captured' }
    const data = {
      object: 'payment',
      id: 'pay_captured',
      method: 'CARD',
      customer,
      product: { id: 'pro_gold' },
    }
    await receive(world.daemon, [sentEvent('evt_captured', 'payment.succeeded', daysAgo(2), data)])
    const page = await go('/policy')
    await says(page, '1 differ')
    await press(page, 'Find out')
    await page.getByRole('progressbar', { name: 'The comparison' }).waitFor()
    await says(page, '1 would gain access, 0 would lose it')
    await page.getByRole('link', { name: 'cus_captured' }).waitFor()
    await expectNoFault(page)
    await press(page, 'Apply…')
    await confirm(page, 'Apply')
    await page.getByRole('progressbar', { name: 'The rebuild' }).waitFor()
    await says(page, '1 gained access, 0 lost it')
    await says(page, 'The configured policy is in force.')
    expect(await entitlementsOf(world.daemon, 'cus_captured')).toMatchObject([{ active: true }])
  })
})
