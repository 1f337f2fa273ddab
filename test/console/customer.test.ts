import type { Locator, Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { accountId, BOT_TOKEN, GOLD_ROLE_ID, GUILD_ID } from '../platforms/discord-ids.js'
import { startDiscord } from '../platforms/discord-server.js'
import { eventually } from '../setup/eventually.js'
import { expectNoFault } from '../setup/no-fault.js'
import { act, entitlementsOf } from '../world.js'
import { EMAIL, paidStory, receive, refundedStory } from './seeded.js'
import { consoleConfig, serveConsole, useConsole } from './signed-in.js'

const browser = useConsole()

const CUSTOMER = '/customers/cus_ada'
const REFUND = 'evt_cus_ada_refunded'

/** A daemon that has received what happened to cus_ada. */
async function serveAda(config?: object) {
  const daemon = await serveConsole(config)
  await receive(daemon, refundedStory())
  return daemon
}

const GOLD_ROLE = { adapter: 'discord', guildId: GUILD_ID, roleId: GOLD_ROLE_ID }

/** The same, with a role that follows Gold. */
async function serveWithRole() {
  const discord = await startDiscord()
  discord.guild.join(accountId(1))
  const daemon = await serveAda(
    consoleConfig(
      {},
      {
        products: { pro_gold: { name: 'Gold', targets: [GOLD_ROLE] } },
        sync: { discord: { botToken: BOT_TOKEN, apiUrl: discord.url } },
      },
    ),
  )
  return { daemon, discord }
}

const section = (page: Page, title: string): Locator =>
  page.locator('section.section').filter({ has: page.getByRole('heading', { name: title, exact: true }) })

const button = (from: Page | Locator, name: string): Locator =>
  from.getByRole('button', { name, exact: true }).first()

describe('the search for a customer', () => {
  it('says what it can’t find with this key, and leads on with an id that nobody has', async () => {
    const daemon = await serveAda(consoleConfig({ lk_reader: { scopes: ['read'] } }))
    const { page } = await browser.open(daemon, `/customers?query=${EMAIL}`, { key: 'lk_reader' })
    await page.getByText('emails and handles need the scope write').waitFor()
    await page.getByRole('searchbox').fill('cus_nobody')
    await page.getByText('begins with “cus_nobody”').waitFor()
    await page.getByRole('link', { name: 'its page' }).click()
    await page.getByText('Nothing is stored about cus_nobody in live').waitFor()
    await section(page, 'Silver').getByText('no event names them').waitFor()
    await expectNoFault(page)
  })
})

describe('a customer', () => {
  it('is shown by any id, and what no browser can ask about takes nothing else away', async () => {
    const daemon = await serveConsole()
    const customerId = 'a/b?c=1#d%2Fe'
    await daemon.deliver('payment.authorized', { customerId, productId: '..' })
    await daemon.deliver('payment.authorized', { customerId, productId: 'x/../?y' })
    const { page, faults } = await browser.open(daemon, `/customers/${encodeURIComponent(customerId)}`)
    await section(page, '..').getByText('No browser can ask for the id “..”').waitFor()
    await section(page, 'x/../?y').locator('.as-of').getByText('active', { exact: true }).waitFor()
    await section(page, 'Sources').getByRole('link', { name: 'x/../?y' }).click()
    await page.getByRole('heading', { name: 'x/../?y' }).waitFor()
    await page.getByRole('region', { name: 'Customers with access' }).getByRole('link').click()
    await page.getByRole('heading', { name: customerId }).waitFor()
    expect(await section(page, 'Sources').getByRole('link', { name: '..', exact: true }).count()).toBe(0)
    expect(faults()).toEqual([])
  })

  it('follows what others do, and keeps what it shows once the daemon is gone', async () => {
    const daemon = await serveAda()
    const { page } = await browser.open(daemon, CUSTOMER)
    const gold = section(page, 'Gold')
    await gold.getByText('the payment was refunded').waitFor()
    await act(daemon, 'POST', `${CUSTOMER}/grants`, { productId: 'pro_gold', reason: 'case 16' })
    await gold.locator('.as-of').getByText('active', { exact: true }).waitFor()
    await daemon.stop()
    await button(gold, 'Block…').click()
    await page.getByRole('dialog').getByText('The daemon does not answer.').waitFor()
    expect(await button(page.getByRole('dialog'), 'Block').isDisabled()).toBe(true)
    await page.keyboard.press('Escape')
    await gold.getByText('case 16').first().waitFor({ state: 'attached' })
  })
})

describe('an act', () => {
  it('is offered once it is known what there is to act on', async () => {
    const daemon = await serveAda()
    const { page, faults } = await browser.open(daemon)
    let answer = (): void => {}
    const isAsked = new Promise<void>((resolve) => {
      answer = resolve
    })
    await page.route('**/console/api/customers/cus_ada?*', async (route) => {
      await isAsked
      await route.continue()
    })
    await page.goto(`${daemon.url}/console${CUSTOMER}`)
    await page.getByRole('row', { name: new RegExp(REFUND) }).waitFor()
    expect(await button(page, 'Erase…').count()).toBe(0)
    answer()
    await button(page, 'Erase…').click()
    await page.getByRole('dialog').getByText('Removed: Email, Name.').waitFor()
    expect(faults()).toEqual([])
  })

  it('is granted a product that no config names, by its id', async () => {
    const daemon = await serveConsole({ ...consoleConfig(), products: {} })
    const { page, faults } = await browser.open(daemon, '/customers/cus_new')
    await button(page, 'Grant…').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Product').fill('pro_new')
    await dialog.getByLabel('Time from now').fill('3w')
    await dialog.getByLabel('Reason').fill('a case')
    await dialog.getByRole('button', { name: 'Grant', exact: true, disabled: false }).click()
    await page.getByText('Granted pro_new.').waitFor()
    expect(faults().filter((one) => !one.includes('404'))).toEqual([])
  })

  it('is not done with wrong input: neither with a duration that is none, nor with an end in the past', async () => {
    const daemon = await serveAda()
    const { page } = await browser.open(daemon, CUSTOMER)
    await button(section(page, 'Gold'), 'Grant…').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Reason').fill('case 17')
    await dialog.getByLabel('Time from now').fill('3 moons')
    await dialog.getByText('Say what to grant, and for how long.').waitFor()
    expect(await button(dialog, 'Grant').isDisabled()).toBe(true)
    await dialog.getByLabel('How long').selectOption('until a date')
    await dialog.getByLabel('Ends at').fill('2020-01-01T12:00')
    await dialog.getByText('until: is in the past').waitFor()
    expect(await button(dialog, 'Grant').isDisabled()).toBe(true)
    expect(await entitlementsOf(daemon, 'cus_ada')).toMatchObject([{ active: false }])
  })

  it('revokes a grant, and says that what was paid goes on', async () => {
    const daemon = await serveConsole()
    await receive(daemon, paidStory('cus_ada'))
    await act(daemon, 'POST', `${CUSTOMER}/grants`, { productId: 'pro_silver', reason: 'case 18' })
    const { page } = await browser.open(daemon, CUSTOMER)
    await button(section(page, 'Silver'), 'Revoke…').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Access stays as it is.').waitFor()
    await dialog.getByLabel('Reason').press('Enter')
    await page.getByText('Revoked the grant of Silver.').waitFor()
    await button(section(page, 'Silver'), 'Revoke…').waitFor({ state: 'detached' })
    expect(await entitlementsOf(daemon, 'cus_ada')).toMatchObject([{ active: true }])
  })

  it('links an account, refuses what is none, and shows why its role is not there', async () => {
    const { daemon, discord } = await serveWithRole()
    await act(daemon, 'POST', `${CUSTOMER}/grants`, { productId: 'pro_gold', reason: 'case 19' })
    await discord.setState({ status: 500 })
    const { page } = await browser.open(daemon, CUSTOMER)
    await section(page, 'Roles and groups').getByText('No Discord account is linked to cus_ada').waitFor()
    await button(page, 'Link accounts…').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Discord account').fill('ada#1234')
    await dialog.getByLabel('Reason').focus()
    await dialog.getByText('is not the id of a Discord account').waitFor()
    expect(await button(dialog, 'Link').isDisabled()).toBe(true)
    await dialog.getByLabel('Discord account').fill(accountId(1))
    await dialog.getByLabel('Reason').focus()
    await dialog.getByText(`Account ${accountId(1)} gets`).waitFor()
    await button(dialog, 'Link').click()
    await section(page, 'Identities and references').getByText(accountId(1)).waitFor()
    await eventually(async () => {
      await button(page, 'Refresh').click()
      await section(page, 'Roles and groups').locator('p.bad').waitFor({ timeout: 2_000 })
    })
    await expectNoFault(page)
  })
})
