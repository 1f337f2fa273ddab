import { expect, it } from 'vitest'
import { createProduct, MONTHLY, startService } from '../sandbox/service.js'
import { openPage } from '../setup/browser.js'
import { rewriteConfig } from '../world.js'
import { consoleConfig, SECRETS, serveConsole, useConsole } from './signed-in.js'

const browser = useConsole()

it('a paid checkout is a bar on the timeline, which ends with the refund', async () => {
  const daemon = await serveConsole()
  const url = `${daemon.url}/webhooks/sandbox`
  const service = await startService({
    from: Date.now(),
    endpoints: [{ url, secret: SECRETS.sandbox, generation: 'v3' }],
  })
  const productId = await createProduct(service, MONTHLY)
  rewriteConfig(daemon.folder, consoleConfig({}, { products: { [productId]: { name: 'Monthly' } } }))
  await daemon.reload()
  const { payment, paymentUrl } = await service.data('POST /v3/subscriptions', {
    productId,
    customerEmail: 'ada@example.com',
  })

  const { page, faults } = await browser.open(daemon, '/customers?environment=sandbox')
  const buyer = await openPage(paymentUrl)
  await buyer.getByLabel('Which card').selectOption('a card that works')
  await buyer.getByRole('button', { name: 'Pay by card' }).click()
  await buyer.getByText('Paid. Thank you!').waitFor()

  await page.getByRole('searchbox').fill('ada@')
  await page
    .getByRole('row', { name: /ada@example\.com/ })
    .getByRole('link')
    .click()
  const monthly = page
    .locator('section')
    .filter({ has: page.getByRole('heading', { name: 'Monthly', exact: true }) })
  await monthly.getByText('active', { exact: true }).first().waitFor()
  const timeline = monthly.getByRole('group', { name: 'Events of Monthly' })
  const bars = timeline.locator('svg rect')
  const paid = await bars.last().boundingBox()
  expect(paid?.width).toBeGreaterThan(20)

  await service.data(`POST /sandbox/payments/${payment.id}/refund`)
  await monthly.getByText('refunded', { exact: true }).first().waitFor()
  await timeline.getByRole('button', { name: /Refund of/ }).waitFor()
  // What was ahead of the bar is gone.
  expect((await bars.last().boundingBox())?.width ?? 0).toBeLessThan(paid?.width ?? 0)
  expect(faults()).toEqual([])
})
