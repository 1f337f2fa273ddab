import { describe, expect, it } from 'vitest'
import { API_KEY } from '../world.js'
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
})
