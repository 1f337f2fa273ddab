import { describe, expect, it } from 'vitest'
import { API_KEY, rewriteConfig } from '../world.js'
import { consoleConfig, serveConsole, useConsole } from './signed-in.js'

const browser = useConsole()

describe('the console', () => {
  it('begins in the environment that has endpoints', async () => {
    const endpoints = { sandbox: { environment: 'sandbox', secrets: ['whsec_sandbox_0123456789'] } }
    const daemon = await serveConsole({ ...consoleConfig(), endpoints })
    const { page, faults } = await browser.open(daemon, '/customers')
    await page.getByRole('heading', { name: 'Customers' }).waitFor()
    expect(await page.getByLabel('Environment').inputValue()).toBe('sandbox')
    expect(faults()).toEqual([])
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
