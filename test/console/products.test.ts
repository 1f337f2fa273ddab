import { describe, expect, it } from 'vitest'
import { expectNoFault } from '../setup/no-fault.js'
import { act } from '../world.js'
import { consoleConfig, serveConsole, useConsole } from './signed-in.js'

const browser = useConsole()

const DAY_MS = 86_400_000
const NOON = Date.parse('2026-03-10T12:00:00.000Z')

/** A daemon with days behind it: three who got Gold the day before, of whom one was blocked, and a trial that ended. */
async function served(keys = {}) {
  let now = NOON - DAY_MS
  const role = { adapter: 'discord', guildId: '1', roleId: '10' }
  const products = {
    pro_gold: { name: 'Gold <img src=x onerror=alert(1)>', features: ['export', 'api'], targets: [role] },
    pro_silver: { name: 'Silver', features: ['export'] },
  }
  const sync = { discord: { botToken: 'token', apiUrl: 'http://127.0.0.1:9' } }
  const daemon = await serveConsole(consoleConfig(keys, { products, sync }), () => now)
  for (const customer of ['cus_1', 'cus_2', 'cus_3'])
    await act(daemon, 'POST', `/customers/${customer}/grants`, { productId: 'pro_gold', reason: 'a test' })
  await act(daemon, 'POST', '/customers/cus_4/grants', { productId: 'pro_silver', reason: 'a trial' })
  await act(daemon, 'PUT', '/customers/cus_2/blocks', { reason: 'a chargeback' })
  now = NOON
  await act(daemon, 'DELETE', '/customers/cus_4/grants/pro_silver', { reason: 'the trial is over' })
  await act(daemon, 'POST', '/customers/cus_5/grants', { productId: 'pro_gold', reason: 'a test' })
  return daemon
}

/** In a browser whose day is the daemon's. */
async function open(daemon: Awaited<ReturnType<typeof served>>, path: string, options = {}) {
  const opened = await browser.open(daemon, '/', options)
  await opened.page.clock.setFixedTime(NOON)
  await opened.page.goto(`${daemon.url}/console${path}`)
  return opened
}

describe('the products of the console', () => {
  it('say what each gives, and who has it now, down to the customer', async () => {
    const daemon = await served()
    const { page, faults } = await open(daemon, '/products')
    const gold = page.getByRole('row', { name: /pro_gold/ })
    await gold.waitFor()
    expect(await gold.getByRole('cell').allTextContents()).toEqual([
      'Gold <img src=x onerror=alert(1)>',
      'pro_gold',
      '3',
      'export, api',
      'discord:1:10',
    ])
    await page.getByRole('row', { name: /^api/ }).getByText('Gold').waitFor()
    await page.getByText('gained access', { exact: false }).first().waitFor()
    await expectNoFault(page)
    await gold.getByRole('link', { name: /Gold/ }).click()
    await page.getByRole('heading', { name: /^Gold/ }).waitFor()
    const members = page.getByRole('region', { name: 'Customers with access' })
    await members.getByRole('link', { name: 'cus_5' }).waitFor()
    expect(await members.getByRole('link').allTextContents()).toEqual(['cus_1', 'cus_3', 'cus_5'])
    expect(await members.getByRole('link', { name: 'cus_5' }).getAttribute('href')).toBe(
      '/console/customers/cus_5',
    )
    await expectNoFault(page)
    expect(faults()).toEqual([])
  })

  it('count who gained and lost access, as a picture and as a table, back to the day itself', async () => {
    const daemon = await served()
    const { page, faults } = await open(daemon, '/products/pro_gold')
    await page.getByRole('img', { name: '4 gained access and 1 lost it.' }).locator('canvas').waitFor()
    await page.getByText('4 gained access, 1 lost it (blocked by hand: 1).').waitFor()
    await page.getByText('The same as a table').click()
    const yesterday = page.getByRole('row', { name: /2026-03-09/ })
    expect(await yesterday.getByRole('cell').allTextContents()).toEqual([
      '2026-03-09',
      '3',
      '1',
      'blocked by hand: 1',
      '2',
    ])
    await expectNoFault(page)
    await page.getByLabel('Show').selectOption('a year, by week')
    await page.getByText('The same as a table').click()
    await page
      .getByRole('row', { name: /2026-03-09/ })
      .getByRole('cell', { name: '4', exact: true })
      .waitFor()
    expect(page.url()).toContain('span=year')
    await page.getByRole('link', { name: '2026-03-09' }).click()
    await page.getByRole('heading', { name: 'From 2026-03-09 to 2026-03-15' }).waitFor()
    expect(faults()).toEqual([])
  })

  it('say what is wrong with days that are none, and with a stretch that ends before it begins', async () => {
    const daemon = await serveConsole()
    const { page } = await browser.open(daemon, '/changes?from=yesterday')
    await page.getByRole('alert').getByText('from').first().waitFor()
    await expectNoFault(page)
    await page.goto(`${daemon.url}/console/changes?from=2026-03-10&to=2026-03-01`)
    await page.getByRole('alert').getByText('later').first().waitFor()
  })

  it('show a key only what it may see', async () => {
    const daemon = await served({
      lk_reader: { scopes: ['read'], environments: ['live'] },
      lk_sandbox: { scopes: ['read', 'admin'], environments: ['sandbox'] },
      lk_meter: { scopes: ['metrics'] },
    })
    const reader = await open(daemon, '/changes?from=2026-03-09&turn=lost', { key: 'lk_reader' })
    const lost = reader.page.getByRole('region', { name: 'Changes of access, oldest first' })
    await lost.getByText('man_').waitFor()
    expect(await lost.getByRole('link').allTextContents()).toEqual(['cus_2', expect.stringContaining('Gold')])
    expect(await reader.page.getByRole('navigation').getByRole('link').allTextContents()).not.toContain(
      'Sync',
    )
    await reader.page.goto(`${daemon.url}/console/products`)
    await reader.page.getByText('discord:1:10').waitFor()
    expect(await reader.page.getByRole('link', { name: 'discord:1:10' }).count()).toBe(0)

    const sandbox = await open(daemon, '/products/pro_gold', { key: 'lk_sandbox' })
    await sandbox.page.getByText('Nobody has this product in sandbox now').waitFor()
    await sandbox.page.getByText('Nobody has had access in this time').waitFor()
    expect(await sandbox.page.getByText('cus_1').count()).toBe(0)
    const meter = await open(daemon, '/products', { key: 'lk_meter' })
    await meter.page.getByText('needs a key with the scope read').waitFor()
  })
})
