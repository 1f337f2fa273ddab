import { describe, expect, it } from 'vitest'
import { API_KEY, rewriteConfig } from '../world.js'
import { consoleConfig, expectNoFault, serveConsole, useConsole } from './signed-in.js'

const browser = useConsole()

describe('the console', () => {
  it('signs in with a key, goes on to the view that was asked for, and signs out', async () => {
    const daemon = await serveConsole()
    const { page, faults } = await browser.open(daemon, '/nowhere?environment=sandbox', { key: null })
    await page.getByLabel('API key').fill('lk_wrong')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').getByText('not a valid key').waitFor()
    await expectNoFault(page)
    await page.getByLabel('API key').fill(API_KEY)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor()
    expect(page.url()).toBe(`${daemon.url}/console/nowhere?environment=sandbox`)
    await page.getByText('operator').click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('API key').waitFor()
    expect(await page.context().cookies()).toEqual([])
    // Nobody was signed in at first and at last, which the browser logs.
    expect(faults().filter((one) => !one.includes('401'))).toEqual([])
  })

  it('shows the overview, without a fault that axe finds', async () => {
    const daemon = await serveConsole()
    const { page, faults } = await browser.open(daemon)
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.getByText('What the doctor found').waitFor()
    await page.getByText('None was run so far').waitFor()
    await expectNoFault(page)
    expect(faults()).toEqual([])
  })

  it('begins in the environment that has endpoints', async () => {
    const endpoints = { sandbox: { environment: 'sandbox', secrets: ['whsec_sandbox_0123456789'] } }
    const daemon = await serveConsole({ ...consoleConfig(), endpoints })
    const { page, faults } = await browser.open(daemon, '/customers')
    await page.getByRole('heading', { name: 'Customers' }).waitFor()
    expect(await page.getByLabel('Environment').inputValue()).toBe('sandbox')
    expect(faults()).toEqual([])
  })

  it('counts a delivery as it comes, and says which endpoint is silent', async () => {
    const daemon = await serveConsole()
    const { page, faults } = await browser.open(daemon)
    await page.getByText('up to date').waitFor()
    await daemon.deliver('payment.authorized')
    const applied = page
      .getByRole('term')
      .filter({ hasText: /^applied$/ })
      .locator('..')
    await applied.getByText('1', { exact: true }).waitFor()
    await page.getByRole('img', { name: 'Deliveries a minute: 1 applied.' }).locator('canvas').waitFor()
    const row = page.getByRole('row', { name: /^live/ })
    await row.getByText('usual').waitFor()
    await expectNoFault(page)
    expect(faults()).toEqual([])
  })

  it('is used by keyboard', async () => {
    const daemon = await serveConsole(consoleConfig())
    const { page } = await browser.open(daemon)
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    await page.keyboard.press('/')
    expect(await page.locator(':focus').getAttribute('type')).toBe('search')
  })

  it('shows a key what its scopes and environments allow, and says what is missing', async () => {
    const daemon = await serveConsole(
      consoleConfig({
        lk_reader: { scopes: ['read'] },
        lk_sandbox: { scopes: ['admin'], environments: ['sandbox'] },
      }),
    )
    await daemon.deliver('payment.authorized')
    const reader = await browser.open(daemon, '/', { key: 'lk_reader' })
    await reader.page.getByRole('heading', { name: 'Customers' }).waitFor()
    expect(await reader.page.getByRole('link', { name: 'Overview' }).count()).toBe(0)
    expect(await reader.page.getByText('Deliveries in the last hour').count()).toBe(0)
    expect(reader.faults()).toEqual([])

    const sandbox = await browser.open(daemon, '/?environment=live', { key: 'lk_sandbox' })
    await sandbox.page.getByRole('row', { name: /^sandbox/ }).waitFor()
    expect(await sandbox.page.getByRole('row', { name: /^live/ }).count()).toBe(0)
    expect(await sandbox.page.getByRole('combobox', { name: 'Environment' }).count()).toBe(0)
    expect(await sandbox.page.getByRole('searchbox').count()).toBe(0)
    await sandbox.page.getByText('None was run so far').waitFor()
    expect(await sandbox.page.getByText('What the doctor found').count()).toBe(0)
    expect(sandbox.faults()).toEqual([])
  })

  it('keeps the environment in the address, and the colors and the zone in the browser', async () => {
    const daemon = await serveConsole()
    const { page } = await browser.open(daemon)
    await page.getByRole('row', { name: /^live/ }).waitFor()
    await page.getByLabel('Environment').selectOption('sandbox')
    await page.getByRole('row', { name: /^sandbox/ }).waitFor()
    expect(page.url()).toBe(`${daemon.url}/console/?environment=sandbox`)
    await page.goBack()
    await page.getByRole('row', { name: /^live/ }).waitFor()

    const since = page.getByRole('term').filter({ hasText: 'Running since' }).locator('..').locator('time')
    const inBerlin = await since.textContent()
    await page.getByText('operator').click()
    await page.getByLabel('Times').selectOption('utc')
    await page.getByLabel('Colors').selectOption('dark')
    expect(await since.textContent()).not.toBe(inBerlin)
    expect(await since.getAttribute('title')).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d.* UTC, /)
    await page.reload()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark')
  })

  it('asks to sign in again once the session has ended, and says why', async () => {
    const daemon = await serveConsole(consoleConfig({ lk_gone: {} }))
    const { page } = await browser.open(daemon, '/?environment=sandbox', { key: 'lk_gone' })
    await page.getByText('What the doctor found').waitFor()
    rewriteConfig(daemon.folder, consoleConfig())
    await daemon.reload()
    await page.getByRole('button', { name: 'Check again' }).click()
    await page.getByText('Your session has ended').waitFor()
    expect(await page.getByText('What the doctor found').count()).toBe(0)
    await page.getByLabel('API key').fill(API_KEY)
    await page.keyboard.press('Enter')
    await page.getByText('What the doctor found').waitFor()
    expect(page.url()).toBe(`${daemon.url}/console/?environment=sandbox`)
  })
})
