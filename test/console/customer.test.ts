import type { Locator, Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { accountId, BOT_TOKEN, GOLD_ROLE_ID, GUILD_ID } from '../platforms/discord-ids.js'
import { startDiscord } from '../platforms/discord-server.js'
import { startTelegram, BOT_TOKEN as TELEGRAM_TOKEN } from '../platforms/telegram-server.js'
import { eventually } from '../setup/eventually.js'
import { GROUP_ID } from '../sync/telegram/connected.js'
import { act, entitlementsOf } from '../world.js'
import { EMAIL, explanationOf, paidStory, receive, refundedStory } from './seeded.js'
import { consoleConfig, expectNoFault, serveConsole, useConsole } from './signed-in.js'

const browser = useConsole()

const REFUND = 'evt_cus_ada_refunded'
const CUSTOMER = '/customers/cus_ada'

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
  it('finds as one types, and leads to why she can’t get in, by keyboard alone', async () => {
    const daemon = await serveAda()
    const { page, faults } = await browser.open(daemon)
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('c')
    await page.getByText('type how an id').waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type(EMAIL.slice(0, 5).toUpperCase())
    await page.getByRole('cell', { name: `email: ${EMAIL}` }).waitFor()
    await expectNoFault(page)
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await section(page, 'Gold')
      .getByText(await explanationOf(daemon, 'cus_ada'))
      .waitFor()
    expect(new URL(page.url()).pathname).toBe(`/console${CUSTOMER}`)
    expect(faults()).toEqual([])
  })

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
  it('shows their access over time, and says of each event what the explanation says', async () => {
    const daemon = await serveAda()
    const { page, faults } = await browser.open(daemon, CUSTOMER)
    const gold = section(page, 'Gold')
    await gold.getByText(await explanationOf(daemon, 'cus_ada')).waitFor()
    expect(await gold.locator('svg .access').count()).toBe(1)
    const refund = gold.getByRole('button', { name: /Refund of pay_cus_ada_2/ })
    await refund.hover()
    await gold.locator('.said').getByText('Refund of pay_cus_ada_2').waitFor()
    await refund.focus()
    await page.keyboard.press('ArrowLeft')
    await gold.locator('.said').getByText('Renewal').waitFor()
    await gold.getByText('5 events').click()
    await gold.getByRole('link', { name: 'payment.refunded' }).click()
    await page.getByRole('heading', { name: REFUND }).waitFor()
    expect(faults()).toEqual([])
  })

  it('answers as of another time, by mouse and by keyboard, in an address that can be sent', async () => {
    const daemon = await serveAda()
    const { page } = await browser.open(daemon, CUSTOMER)
    const gold = section(page, 'Gold')
    await gold.getByRole('button', { name: /Refund of pay_cus_ada_2/ }).click()
    await page.waitForURL(/at=/)
    await gold.getByText(/^As of/).waitFor()
    const marker = gold.getByRole('slider')
    for (let day = 0; day < 15; day += 1) await marker.press('ArrowLeft')
    // Access ran, and by now its end is known.
    await gold.locator('.as-of').getByText('ending', { exact: true }).waitFor()
    const at = await eventually(async () => {
      const shown = new URL(page.url()).searchParams.get('at') ?? ''
      expect(Date.parse(shown)).toBeCloseTo(Number(await marker.inputValue()), -1)
      return shown
    })
    const { page: sent, faults } = await browser.open(daemon, `${CUSTOMER}?at=${at}`)
    await section(sent, 'Gold')
      .getByText(await explanationOf(daemon, 'cus_ada', `?at=${at}`))
      .waitFor()
    await button(section(sent, 'Gold'), 'Back to now').click()
    await section(sent, 'Gold')
      .getByText(await explanationOf(daemon, 'cus_ada'))
      .waitFor()
    expect(faults()).toEqual([])
  })

  it('shows names with scripts and direction marks as text', async () => {
    const daemon = await serveConsole()
    await receive(daemon, refundedStory('cus_ada', '<img src=x onerror=alert(1)>\u202egnp.exe'))
    const { page, faults } = await browser.open(daemon, CUSTOMER)
    await section(page, 'Identities and references')
      .getByText('<img src=x onerror=alert(1)>\\u202egnp.exe')
      .waitFor()
    await expectNoFault(page)
    expect(faults()).toEqual([])
  })

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

  it('shows no act to a key that may do none, and nothing live to a sandbox key', async () => {
    const daemon = await serveAda(
      consoleConfig({
        lk_reader: { scopes: ['read'] },
        lk_sandbox: { environments: ['sandbox'] },
      }),
    )
    const { page } = await browser.open(daemon, CUSTOMER, { key: 'lk_reader' })
    await section(page, 'Gold')
      .getByText(await explanationOf(daemon, 'cus_ada'))
      .waitFor()
    expect(await page.getByRole('button', { name: '…' }).count()).toBe(0)
    expect(await page.getByRole('heading', { name: 'Webhooks about them' }).count()).toBe(0)
    const { page: other } = await browser.open(daemon, `${CUSTOMER}?environment=live`, { key: 'lk_sandbox' })
    await other.getByText('Nothing is stored about cus_ada in sandbox').waitFor()
    expect(await other.getByText(EMAIL).count()).toBe(0)
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

  it('gives three weeks in four clicks, after naming what will change', async () => {
    const { daemon, discord } = await serveWithRole()
    await act(daemon, 'PUT', `${CUSTOMER}/identities`, { communityId: accountId(1) })
    const { page, faults } = await browser.open(daemon, '/customers?query=cus_ada')
    await page.getByRole('link', { name: 'cus_ada' }).click()
    await button(section(page, 'Gold'), 'Grant…').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Time from now').fill('3w')
    await dialog.getByText('refunded').waitFor()
    await dialog.getByText(`Account ${accountId(1)} gets`).waitFor()
    expect(await button(dialog, 'Grant').isDisabled()).toBe(true)
    await dialog.getByLabel('Reason').fill('case 17')
    await expectNoFault(page)
    await button(dialog, 'Grant').click()
    await page.getByText('Granted Gold.').waitFor()
    const gold = section(page, 'Gold')
    await gold.locator('.as-of').getByText('ending').waitFor()
    expect(await gold.locator('svg .access').count()).toBe(2)
    await eventually(() => expect(discord.guild.holders(GOLD_ROLE_ID)).toEqual([accountId(1)]))
    await eventually(async () => {
      await button(page, 'Refresh').click()
      await page.getByText('has the role, because of').waitFor({ timeout: 2_000 })
    })
    await expectNoFault(page)
    expect(faults()).toEqual([])
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

  it('blocks from everything and lifts it again, and names each product that it is about', async () => {
    const daemon = await serveAda()
    await receive(daemon, paidStory('cus_ada'))
    const { page, faults } = await browser.open(daemon, CUSTOMER)
    await section(page, 'Silver').getByText('active', { exact: true }).waitFor()
    await button(page, 'Block…').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Silver').waitFor()
    await dialog.getByLabel('Reason').fill('chargeback under review')
    await button(dialog, 'Block').click()
    await section(page, 'Silver').locator('.as-of').getByText('blocked', { exact: true }).waitFor()
    expect(await entitlementsOf(daemon, 'cus_ada')).toMatchObject([
      { status: 'blocked' },
      { status: 'blocked' },
    ])
    await button(page, 'Unblock…').click()
    await dialog.getByText('active').waitFor()
    await button(dialog, 'Unblock').click()
    await section(page, 'Silver').locator('.as-of').getByText('active', { exact: true }).waitFor()
    expect(faults()).toEqual([])
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

  it('makes invites and a link to the bot, once there is a group, and shows them to be sent', async () => {
    const telegram = await startTelegram()
    telegram.addGroup(GROUP_ID)
    const target = { adapter: 'telegram', groupId: String(GROUP_ID) }
    const daemon = await serveAda(
      consoleConfig(
        {},
        {
          products: { pro_gold: { name: 'Gold', targets: [target] } },
          sync: { telegram: { botToken: TELEGRAM_TOKEN, apiUrl: telegram.url } },
        },
      ),
    )
    const { page } = await browser.open(daemon, CUSTOMER)
    const dialog = page.getByRole('dialog')
    await button(page, 'Invites…').click()
    await button(dialog, 'Create').click()
    await dialog.getByRole('alert').getByText('not_entitled').waitFor()
    await act(daemon, 'POST', `${CUSTOMER}/grants`, { productId: 'pro_gold', reason: 'case 20' })
    await button(dialog, 'Create').click()
    await dialog.getByText('Valid once').waitFor()
    await expectNoFault(page)
    await button(dialog, 'Close').click()
    await button(page, 'Link to the bot…').click()
    await button(dialog, 'Create').click()
    await dialog.getByText('start=').waitFor()
  })

  it('erases only once the id is typed, and says what goes', async () => {
    const daemon = await serveAda()
    const { page, faults } = await browser.open(daemon, CUSTOMER)
    await button(page, 'Erase…').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Removed: Email, Name.').waitFor()
    await dialog.getByLabel('Type cus_ada to confirm').fill('cus_ad')
    expect(await button(dialog, 'Erase for good').isDisabled()).toBe(true)
    await dialog.getByLabel('Type cus_ada to confirm').fill('cus_ada')
    await expectNoFault(page)
    await button(dialog, 'Erase for good').click()
    await page.getByText('erased', { exact: true }).waitFor()
    expect(await page.getByText(EMAIL).count()).toBe(0)
    expect(faults()).toEqual([])
  })
})
