import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { openPage } from '../setup/browser.js'
import { expectNoFault } from '../setup/no-fault.js'
import { createPayment, type Json, type Service, startService } from './service.js'

const LONG_NAME = 'Membership'.repeat(8)

/** What the service knows of the payment now. */
const statusOf = async (service: Service, { id }: Json): Promise<string> =>
  (await service.data(`GET /v3/payments/${id}`)).status

describe('the checkout in a browser', () => {
  it('is paid by keyboard alone', async () => {
    const service = await startService()
    const payment = await createPayment(service)
    const page = await openPage(payment.paymentUrl, { javaScriptEnabled: false })
    const focused = page.locator(':focus')
    await page.keyboard.press('Tab')
    expect(await focused.getAttribute('name')).toBe('method')
    await page.keyboard.press('Tab')
    expect(await focused.getAttribute('name')).toBe('outcome')
    // Below the card that works is the one whose bank asks first.
    for (const key of ['ArrowDown', 'Tab', 'Enter']) await page.keyboard.press(key)
    await page.getByText('Your bank asks whether this is you.').waitFor()
    expect(await statusOf(service, payment)).toBe('PENDING_3DS')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.getByText('Paid. Thank you!').waitFor()
    expect(await statusOf(service, payment)).toBe('COMPLETED')
  })

  it('names each control to a screen reader', async () => {
    const service = await startService()
    const payment = await createPayment(service)
    const page = await openPage(payment.paymentUrl)
    const card = page.getByRole('group', { name: 'Pay by card' })
    await card.getByRole('combobox', { name: 'Which card' }).selectOption('a card without enough money')
    await card.getByRole('button', { name: 'Pay by card' }).click()
    expect(await page.getByRole('alert').textContent()).toContain('insufficient_funds')
    const deposit = page.getByRole('group', { name: 'Send a deposit' })
    await deposit.getByRole('combobox', { name: 'How much' }).selectOption('half')
    await deposit.getByRole('button', { name: 'Send the deposit' }).click()
    await page.getByRole('alert').getByText('The rest is missing').waitFor()
    expect(await statusOf(service, payment)).toBe('PARTIAL')
    await page.getByRole('link', { name: 'Leave without paying' }).click()
    await page.getByRole('status').getByText('You have left without paying.').waitFor()
  })

  /** How a buyer gets to each page. */
  const PAGES: Readonly<Record<string, (page: Page, service: Service, payment: Json) => Promise<unknown>>> = {
    'the choice': async () => {},
    'a card that was declined': (page) => payBy(page, 'a stolen card'),
    'the question of the bank': (page) => payBy(page, 'a card whose bank asks first (3DS)'),
    'a payment that is made': (page) => payBy(page, 'a card that works'),
    'a deposit that is being confirmed': async (page) => {
      await page.getByLabel('Confirmations').selectOption('one by one')
      await page.getByRole('button', { name: 'Send the deposit' }).click()
      await page.getByRole('button', { name: 'One more confirmation' }).click()
    },
    'what is left behind': (page) => page.getByRole('link', { name: 'Leave without paying' }).click(),
    'a checkout that is over': async (page, service) => {
      await service.advance('1d')
      await page.reload()
    },
    'an address that leads nowhere': (page) => page.goto(`${page.url()}x`),
  }

  it.each(Object.entries(PAGES))('has no fault that axe finds, nor is it too wide: %s', async (_, lead) => {
    const service = await startService()
    const payment = await createPayment(service, {}, { name: LONG_NAME })
    const page = await openPage(payment.paymentUrl)
    await lead(page, service, payment)
    await expectNoFault(page)
  })
})

async function payBy(page: Page, card: string): Promise<void> {
  await page.getByLabel('Which card').selectOption(card)
  await page.getByRole('button', { name: 'Pay by card' }).click()
}
