import { describe, expect, it } from 'vitest'
import type { Delivery } from '../../src/ingest/delivery.js'
import { deliveryOf } from '../ingest/wire.js'
import { eventually } from '../setup/eventually.js'
import { expectNoFault } from '../setup/no-fault.js'
import { sentEvent } from '../stories.js'
import {
  API_KEY,
  configuredFolder,
  entitlementsOf,
  onStore,
  rewriteConfig,
  serveHere,
  takeIn,
} from '../world.js'
import { consoleConfig, type Keys, serveConsole, useConsole } from './signed-in.js'

const browser = useConsole()

/** Under the documented table a card payment gives access once authorized, and `payment.succeeded` gives none. */
function paid(customer: string, type: string) {
  const data = { id: `pay_${customer}`, customer, product: 'pro_gold', method: 'CARD' }
  const { body } = sentEvent(`evt_${customer}`, type, Date.UTC(2026, 0, 1), data, true)
  return deliveryOf(body, { environment: 'live' })
}

const OTHER = { grantOn: { card: ['payment.succeeded'] }, failedRenewal: 'revoke', lapseAfter: '60d' }

/** A daemon that has another policy in its config than in force: two would gain by it, and one would lose. */
async function served(keys: Keys = {}, others: readonly Delivery[] = []) {
  const folder = configuredFolder(consoleConfig(keys, { policy: OTHER }))
  await takeIn(folder, [
    paid('cus_gain_1', 'payment.succeeded'),
    paid('cus_gain_2', 'payment.succeeded'),
    paid('cus_lose', 'payment.authorized'),
    ...others,
  ])
  return { ...(await serveHere(folder)), folder }
}

describe('the policy of the console', () => {
  it('tells in two clicks what the configured one changes, and applies it with these numbers', async () => {
    const daemon = await served()
    const { page, faults } = await browser.open(daemon)
    await page.getByRole('link', { name: 'Policy' }).click()
    const table = page.getByRole('region', { name: 'The policy' })
    await table.waitFor()
    expect(await table.locator('mark').allTextContents()).toEqual([
      'payment.succeeded',
      'ends access at once',
      '60 days after the newest known period',
    ])
    await page.getByText('3 differ').waitFor()
    expect(await page.getByRole('button', { name: 'Apply…' }).isDisabled()).toBe(true)
    await page.getByRole('button', { name: 'Find out' }).click()
    await page.getByText('2 would gain access, 1 would lose it, 0 would change in another way.').waitFor()
    const differing = page.getByRole('region', { name: 'Access that differs' })
    await expectNoFault(page)
    await page.getByLabel('Show').selectOption('who would lose access')
    await differing.getByText('cus_gain_1').waitFor({ state: 'detached' })
    const [, ...rows] = await differing.getByRole('row').allTextContents()
    expect(rows).toEqual(['cus_loseliveGoldlosthas access no stored event grants it '])

    await page.getByRole('button', { name: 'Apply…' }).click()
    await page.getByRole('dialog').getByText('Live and sandbox: 2 gain access, 1 lose it').waitFor()
    await expectNoFault(page)
    await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click()
    await page.getByText('2 gained access, 1 lost it, 0 changed in another way.').waitFor()
    await page.getByText('The configured policy is in force.').waitFor()
    expect(await table.locator('mark').count()).toBe(0)
    expect(await entitlementsOf(daemon, 'cus_gain_1')).toMatchObject([{ active: true }])
    expect(await entitlementsOf(daemon, 'cus_lose')).toMatchObject([])
    expect(faults()).toEqual([])
  })

  it('applies no other policy than the one that was compared', async () => {
    const daemon = await served()
    const { page } = await browser.open(daemon, '/policy')
    await page.getByRole('button', { name: 'Find out' }).click()
    await page.getByRole('button', { name: 'Apply…', disabled: false }).click()
    rewriteConfig(daemon.folder, consoleConfig({}, { policy: { canceled: 'period_end' } }))
    expect(await daemon.reload()).toBe(true)
    await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click()
    await page.getByRole('dialog').getByText('policy_differs').waitFor()
    await expectNoFault(page)
    await page.keyboard.press('Escape')
    await page.getByText('1 differ', { exact: true }).waitFor()
    expect(await page.getByRole('button', { name: 'Apply…' }).isDisabled()).toBe(true)
    expect(await entitlementsOf(daemon, 'cus_gain_1')).toEqual([])
  })

  it('starts nothing beside a rebuild that somebody else began, and goes on behind it', async () => {
    const many = Array.from({ length: 1_000 }, (_, n) => paid(`cus_${n}`, 'payment.authorized'))
    const daemon = await served({}, many)
    const { page } = await browser.open(daemon, '/policy')
    await page.getByRole('button', { name: 'Find out' }).waitFor()
    let isSeen = false
    const others = (async () => {
      const headers = { Authorization: `Bearer ${API_KEY}` }
      while (!isSeen) await (await fetch(`${daemon.url}/rebuild`, { method: 'POST', headers })).text()
    })()
    // A click may come between two of their rebuilds.
    await eventually(async () => {
      await page.getByRole('button', { name: 'Find out' }).click()
      await page.getByRole('alert').getByText('A rebuild is running').waitFor({ timeout: 1_000 })
    })
    isSeen = true
    await others
    await expectNoFault(page)
    await page.getByRole('button', { name: 'Find out' }).click()
    await page.getByText('2 would gain access, 1001 would lose it').waitFor()
  })

  it('verifies what is stored, and rebuilds it, by keyboard alone', async () => {
    const daemon = await served()
    await onStore(daemon.folder, (db) =>
      db.deleteFrom('entitlements').where('customer_id', '=', 'cus_lose').execute(),
    )
    const { page, faults } = await browser.open(daemon)
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('y')
    await page.getByRole('button', { name: 'Verify' }).press('Enter')
    await page
      .getByRole('row', { name: /entitlement/ })
      .getByText('cus_lose')
      .waitFor()
    await expectNoFault(page)
    await page.getByRole('button', { name: 'Rebuild…' }).press('Enter')
    await page.getByRole('dialog').getByRole('button', { name: 'Rebuild', disabled: false }).press('Enter')
    await page.getByText('1 gained access, 0 lost it').waitFor()
    await page.getByRole('button', { name: 'Verify' }).press('Enter')
    await page.getByText('Everything stored matches the events.').waitFor()
    expect(faults()).toEqual([])
  })

  it('is the same for both environments, so that a key of one does not see it', async () => {
    const daemon = await serveConsole(consoleConfig({ lk_live: { environments: ['live'] } }))
    const { page, faults } = await browser.open(daemon, '/policy', { key: 'lk_live' })
    await page.getByText('needs a key with the scope admin for live and sandbox').waitFor()
    await expectNoFault(page)
    expect(faults()).toEqual([])
    const operator = await browser.open(daemon, '/policy')
    await operator.page.getByText('the same', { exact: true }).first().waitFor()
    await operator.page.getByRole('button', { name: 'Find out' }).click()
    await operator.page.getByText('Nobody’s access would change.').waitFor()
  })
})
