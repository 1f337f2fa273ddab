import type { Locator, Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { accountId, BOT_TOKEN, GOLD_ROLE_ID, GUILD_ID } from '../platforms/discord-ids.js'
import { startDiscord } from '../platforms/discord-server.js'
import { eventually } from '../setup/eventually.js'
import { expectNoFault } from '../setup/no-fault.js'
import { SECRET, startAnswering } from '../sync/webhook/receiver.js'
import { type AskedDaemon, act } from '../world.js'
import { consoleConfig, type Keys, serveConsole, useConsole } from './signed-in.js'

const browser = useConsole()

const TARGET = `discord:${GUILD_ID}:${GOLD_ROLE_ID}`

/** A local Discord whose role follows Gold, and a server of the merchant's that answers with this status. */
async function served({
  removals = 20,
  status = 204,
  keys = {},
  now = Date.now,
}: {
  readonly removals?: number
  readonly status?: number
  readonly keys?: Keys
  readonly now?: () => number
} = {}) {
  const discord = await startDiscord()
  const own = await startAnswering(status)
  const role = { adapter: 'discord', guildId: GUILD_ID, roleId: GOLD_ROLE_ID }
  const daemon = await serveConsole(
    consoleConfig(keys, {
      products: { pro_gold: { name: 'Gold', targets: [role] } },
      sync: {
        discord: { botToken: BOT_TOKEN, apiUrl: discord.url },
        removals: { atMost: removals, percent: 0 },
        webhooks: { crm: { url: own.url, secret: SECRET } },
      },
    }),
    now,
  )
  return { discord, daemon, own }
}

type Served = Awaited<ReturnType<typeof served>>

/** Customers with access and a linked account each, who are members of the guild. */
async function grantTo({ daemon, discord }: Served, count: number): Promise<void> {
  for (let n = 1; n <= count; n += 1) {
    discord.guild.join(accountId(n))
    await act(daemon, 'PUT', `/customers/cus_${n}/identities`, { communityId: accountId(n) })
    await act(daemon, 'POST', `/customers/cus_${n}/grants`, { productId: 'pro_gold', reason: 'a test' })
  }
}

/** Waits until `GET /sync` says so. */
const becomes = (daemon: AskedDaemon, state: object) =>
  eventually(async () => expect(await act(daemon, 'GET', '/sync')).toMatchObject(state))
const counted = (memberships: object) => ({ targets: [{ target: TARGET, memberships }] })

/** Goes there by Tab. */
async function tabTo(page: Page, to: Locator): Promise<void> {
  await to.waitFor()
  while (!(await to.evaluate((one) => one === one.ownerDocument.activeElement)))
    await page.keyboard.press('Tab')
}

const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true }).click()

/** What the browser does at an Escape, and a press of a button that it takes before the event that follows. */
const ESCAPE_AND_PRESS_AGAIN = `(async () => {
  const dialog = document.querySelector('dialog')
  if (dialog.dispatchEvent(new Event('cancel', { cancelable: true }))) {
    await Promise.resolve()
    dialog.close()
  }
  await Promise.resolve()
  const button = [...document.querySelectorAll('button')].find((one) => one.textContent === 'Pause…')
  button.click()
})()`

describe('the sync of the console', () => {
  it('makes held removals once they are approved, and none if the plan has changed meanwhile', async () => {
    const world = await served({ removals: 0 })
    const { daemon, discord } = world
    await grantTo(world, 3)
    await becomes(daemon, counted({ settled: 3 }))
    for (const n of [1, 2]) await act(daemon, 'PUT', `/customers/cus_${n}/blocks`, { reason: 'a test' })
    await becomes(daemon, { unconfirmed: 2 })
    const { page } = await browser.open(daemon, '/sync')
    await press(page, 'Look and approve…')
    const dialog = page.getByRole('dialog', { name: 'Remove members in live' })
    await dialog.getByText('2 removals').waitFor()
    await dialog.getByText('cus_1, cus_2').waitFor()
    await expectNoFault(page)

    await act(daemon, 'PUT', '/customers/cus_3/blocks', { reason: 'a test' })
    await becomes(daemon, { unconfirmed: 3 })
    await dialog.getByRole('button', { name: 'Remove them' }).click()
    await dialog.getByText('plan_changed').waitFor()
    expect(discord.guild.holders(GOLD_ROLE_ID)).toHaveLength(3)
    await dialog.getByText('3 removals').waitFor()
    await dialog.getByRole('button', { name: 'Remove them' }).click()
    await page.getByRole('status').getByText('0 given, 3 taken.').waitFor()
    expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([])
    await page.getByText('Removals that wait for you').waitFor({ state: 'detached' })
  })

  it('is paused and resumed by keyboard alone, and says that a paused sync makes no call', async () => {
    const world = await served()
    const { daemon, discord } = world
    const { page, faults } = await browser.open(daemon)
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('s')
    const pause = page.getByRole('button', { name: 'Pause…' })
    await tabTo(page, pause)
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Pause sync' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.keyboard.press('Enter')
    const confirm = page.getByRole('dialog').getByRole('button', { name: 'Pause' })
    await tabTo(page, confirm)
    await page.keyboard.press('Enter')
    await page.getByText('paused', { exact: true }).waitFor()
    await grantTo(world, 1)
    await becomes(daemon, { paused: true, ...counted({ due: 1 }) })

    await press(page, 'Run now…')
    await page.getByRole('dialog').getByText('1 call: 1 to give, 0 to take away.').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Run' }).click()
    await page.getByRole('status').getByText('sync is paused').waitFor()
    expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([])
    await press(page, 'Resume…')
    await page.getByRole('dialog').getByRole('button', { name: 'Resume' }).click()
    await becomes(daemon, counted({ settled: 1 }))
    await expectNoFault(page)
    expect(faults()).toEqual([])
  })

  it('asks again at once after an Escape, before the browser has told that the dialog is closed', async () => {
    const { daemon } = await served()
    const { page, faults } = await browser.open(daemon, '/sync')
    await press(page, 'Pause…')
    await page.getByRole('dialog', { name: 'Pause sync' }).waitFor()
    await page.evaluate(ESCAPE_AND_PRESS_AGAIN)
    // By then the browser has told it.
    await page.evaluate('new Promise((resolve) => setTimeout(resolve))')
    await page.getByRole('dialog', { name: 'Pause sync' }).waitFor({ timeout: 10_000 })
    expect(faults()).toEqual([])
  })

  it('says since when a platform cannot be reached, and what a check says of it', async () => {
    let ahead = 0
    const world = await served({ now: () => Date.now() + ahead })
    const { daemon, discord } = world
    await discord.setState('refuse')
    await grantTo(world, 1)
    await becomes(daemon, counted({ retrying: 1 }))
    // It is called an outage once it lasts.
    ahead = 2 * 60_000
    await act(daemon, 'POST', '/sync/run', { retry: {} })
    await becomes(daemon, { unreachable: [{ platform: 'discord' }] })
    const { page, faults } = await browser.open(daemon, '/sync')
    const down = page.getByRole('region', { name: 'Platforms that do not take calls' })
    const row = down.getByRole('row', { name: /unreachable/ })
    await row.waitFor()
    expect(await row.locator('time').count()).toBe(1)
    await press(page, 'Check now')
    await page.getByRole('region', { name: 'What the platforms say' }).getByText('fail').first().waitFor()
    await expectNoFault(page)
    expect(faults()).toEqual([])
  })

  it('says what is wrong with an address, a state or a stretch of time', async () => {
    const { daemon } = await served()
    const { page } = await browser.open(daemon, '/sync/memberships?target=discord:1:1')
    await page.getByRole('alert').getByText(`must be one of ${TARGET}`).first().waitFor()
    await page.goto(`${daemon.url}/console/sync/memberships?state=lost`)
    await page.getByRole('alert').getByText('must be one of settled').first().waitFor()
    await page.goto(`${daemon.url}/console/sync/messages`)
    await press(page, 'Replay a stretch of time…')
    const dialog = page.getByRole('dialog')
    expect(await dialog.getByRole('button', { name: 'Send again' }).isDisabled()).toBe(true)
    await dialog.getByLabel('From').fill('2026-03-02T00:00')
    await dialog.getByLabel('To, or until now').fill('2026-03-01T00:00')
    await dialog.getByRole('button', { name: 'Send again' }).click()
    await dialog.getByRole('alert').waitFor()
    await expectNoFault(page)
    await dialog.getByLabel('To, or until now').fill('2026-03-03T00:00')
    await dialog.getByRole('button', { name: 'Send again' }).click()
    await page.getByRole('status').getByText('0 messages are sent again.').waitFor()
  })

  it('says what to do where nothing follows access, and hides from a key what it may not do', async () => {
    const daemon = await serveConsole(
      consoleConfig({ lk_live: { environments: ['live'] }, lk_support: { scopes: ['read', 'write'] } }),
    )
    const { page, faults } = await browser.open(daemon, '/sync', { key: 'lk_live' })
    await page.getByText('No role or group follows access here').waitFor()
    await page.getByText('Changes of access go nowhere').waitFor()
    expect(await page.getByRole('button', { name: 'Pause…' }).count()).toBe(0)
    expect(await page.getByRole('button', { name: 'Run now…' }).count()).toBe(1)
    await expectNoFault(page)
    expect(faults()).toEqual([])
    const support = await browser.open(daemon, '/sync', { key: 'lk_support' })
    await support.page.getByText('needs a key with the scope admin').waitFor()
  })
})
