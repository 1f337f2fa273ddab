import { describe, expect, it } from 'vitest'
import {
  createPayment,
  createProduct,
  type Json,
  MONTHLY,
  type Service,
  startHeard,
  startService,
} from './service.js'

interface Page {
  readonly status: number
  readonly text: string
  readonly headers: Headers
}

async function open(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Page> {
  const answer = await fetch(url, { headers })
  return { status: answer.status, text: await answer.text(), headers: answer.headers }
}

/** Sends a form as a browser does, and answers with the page that it leads to. */
async function send(
  url: string,
  fields: Readonly<Record<string, string>>,
  origin = new URL(url).origin,
): Promise<Page> {
  const answer = await fetch(url, {
    method: 'POST',
    body: new URLSearchParams(fields),
    headers: { Origin: origin },
  })
  return { status: answer.status, text: await answer.text(), headers: answer.headers }
}

const checkout = async (
  service: Service,
  more: object = {},
  product: object = {},
): Promise<{ url: string; id: string }> => {
  const { paymentUrl, id } = await createPayment(service, more, product)
  return { url: paymentUrl, id }
}

describe('the checkout', () => {
  it('is a plain page that a screen reader and a phone can use', async () => {
    const service = await startService()
    const { url } = await checkout(service)
    const { status, text, headers } = await open(url)
    expect(status).toBe(200)
    expect(text).toMatch(/^<!doctype html><html lang="en">/)
    expect(text).toContain('name="viewport" content="width=device-width, initial-scale=1"')
    expect(text).toContain('<title>Gold – sandbox checkout</title>')
    expect(text).toContain('19.00 EUR')
    expect(text).not.toMatch(/<script|\son\w+=|style="/)
    expect(text.match(/<h1>/g)).toHaveLength(1)
    expect(text.match(/<legend>/g)).toHaveLength(2)
    // Each control stands in its label, but for hidden ones.
    const controls = text.match(/<(?:input(?! type="hidden")|select)/g) ?? []
    const labelled = text.match(/<label>(?:(?!<\/label>)[\s\S])*?<(?:input|select)/g) ?? []
    expect(labelled).toHaveLength(controls.length)
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/)
    expect(headers.get('cache-control')).toBe('no-store')
  })

  it('takes a card that works, and leads back to the shop', async () => {
    const service = await startHeard()
    const { url, id } = await checkout(service, { successUrl: 'https://shop.example/thanks?a=1&b=2' })
    const page = await send(url, { method: 'CARD', outcome: 'success' })
    expect(page.text).toContain('Paid. Thank you!')
    expect(page.text).toContain('href="https://shop.example/thanks?a=1&amp;b=2"')
    expect(await service.data(`GET /v3/payments/${id}`)).toMatchObject({ status: 'COMPLETED' })
    expect(service.receiver.types()).toContain('payment.succeeded')
  })

  it.each([
    ['soft_decline', 'insufficient_funds'],
    ['hard_decline', 'stolen_card'],
    ['technical_failure', 'a technical failure'],
  ])('says that a card failed by %s, and offers to try again', async (outcome, reason) => {
    const service = await startService()
    const { url } = await checkout(service)
    const page = await send(url, { method: 'CARD', outcome })
    expect(page.text).toContain(`role="alert" class="note">The payment did not go through: ${reason}`)
    expect((await send(url, { method: 'CARD', outcome: 'success' })).text).toContain('Paid.')
  })

  it.each([
    ['success', 'Paid.'],
    ['3ds_failed', 'authentication_failed'],
  ])('asks for 3DS, answered with %s', async (outcome, expected) => {
    const service = await startService()
    const { url } = await checkout(service)
    expect((await send(url, { method: 'CARD', outcome: '3ds_required' })).text).toContain('Your bank asks')
    expect((await send(url, { outcome })).text).toContain(expected)
  })

  it('takes a deposit in parts, confirmation by confirmation', async () => {
    const service = await startService()
    const { url } = await checkout(service)
    const some = await send(url, { method: 'CRYPTO', asset: '101 SOL', share: '0.5', confirmations: '' })
    expect(some.text).toContain('The rest is missing.')
    expect(some.text).not.toContain('Pay by card')
    const rest = await send(url, { method: 'CRYPTO', share: '', confirmations: '1' })
    expect(rest.text).toContain('1 of 32 confirmations')
    expect((await send(url, { confirmations: '2' })).text).toContain('2 of 32 confirmations')
    expect((await send(url, {})).text).toContain('Paid.')
  })

  it('asks for an email where none is known, and for what the merchant wants to know', async () => {
    const service = await startHeard(['v2'])
    const productId = await createProduct(service)
    const customFields = [{ key: 'size', label: 'T-shirt <size>', type: 'input', required: true }]
    const { paymentUrl, paymentId } = await service.data('POST /api/payment/create', {
      productId,
      customFields,
    })
    const page = await open(paymentUrl)
    expect(page.text).toContain('type="email"')
    expect(page.text).toContain('T-shirt &lt;size&gt;')
    const refused = await send(paymentUrl, { method: 'CARD', outcome: 'success', email: 'nobody' })
    expect([refused.status, refused.text.includes('VALIDATION_ERROR')]).toEqual([422, true])
    await send(paymentUrl, { method: 'CARD', outcome: 'success', email: 'eve@example.com', 'custom-0': 'XL' })
    const last = service.receiver.received.at(-1)?.event.data
    expect(last.payment).toMatchObject({ id: paymentId, customerEmail: 'eve@example.com' })
    expect(last.context.customFieldsResponse).toEqual({ size: 'XL' })
  })

  it('can be left, and come back to', async () => {
    const service = await startService()
    const { url } = await checkout(service)
    expect((await open(url)).text).toContain('<a href="?left"')
    expect((await open(`${url}?left`)).text).toContain('You have left without paying.')
    const shop = await checkout(service, { cancelUrl: 'https://shop.example/cart' })
    expect((await open(shop.url)).text).toContain('<a href="https://shop.example/cart"')
  })

  it('is over once its time is', async () => {
    const service = await startService()
    const { url } = await checkout(service)
    await service.advance('1h')
    expect((await open(url)).text).toContain("This checkout can't be paid any more.")
    const late = await send(url, { method: 'CARD', outcome: 'success' })
    expect([late.status, late.text.includes('Back to the checkout')]).toEqual([409, true])
  })

  it('shows names and texts as text, and no control of direction is obeyed', async () => {
    const service = await startService()
    const { url } = await checkout(
      service,
      {},
      { name: '<script>alert(1)</script>"\'&\u202egnp', description: '<b>x</b>' },
    )
    const { text } = await open(url)
    expect(text).toContain('<h1>&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;[U+202E]gnp</h1>')
    expect(text).not.toMatch(/<script|<b>|\u202e/)
  })

  it('takes no form of another page, and is not there under another name', async () => {
    const service = await startService()
    const { url, id } = await checkout(service)
    expect((await send(url, { method: 'CARD', outcome: 'success' }, 'https://evil.example')).status).toBe(403)
    expect(await service.data(`GET /v3/payments/${id}`)).toMatchObject({ status: 'PENDING' })
    expect((await open(`${service.url}/checkout/pay_x`)).status).toBe(404)
  })
})

describe('a checkout session', () => {
  const session = async (service: Service, more: object = {}, product: object = {}): Promise<Json> =>
    service.data('POST /v3/checkout/sessions', {
      productId: await createProduct(service, product),
      customerEmail: 'a@example.com',
      ...more,
    })

  it('is opened by its token, and told when it is paid', async () => {
    const service = await startHeard()
    const { url, id, token, paymentId } = await session(service)
    expect(url).toBe(`${service.url}/checkout/${token}`)
    expect((await send(url, { method: 'CARD', outcome: 'success' })).text).toContain('Paid.')
    const told = service.receiver.received.find(({ type }) => type === 'checkout.succeeded')
    expect(told?.event.data).toMatchObject({
      object: 'checkout_session',
      id,
      payment: { id: paymentId, status: 'authorized' },
    })
  })

  it('of a recurring product begins a subscription', async () => {
    const service = await startService()
    const { url, subscriptionId } = await session(service, { mode: 'subscription' }, MONTHLY)
    await send(url, { method: 'CRYPTO', share: '', confirmations: '', asset: '8453 USDC' })
    expect(await service.data(`GET /v3/subscriptions/${subscriptionId}`)).toMatchObject({ status: 'ACTIVE' })
  })

  it('with a wrong signature opens nothing', async () => {
    const service = await startService()
    const { url, id } = await session(service)
    for (const wrong of [
      `${url.slice(0, -1)}_`,
      url.replace(/\.[^.]*$/, '.x'),
      `${service.url}/checkout/${id}`,
    ]) {
      const { status, text } = await open(wrong)
      expect([status, text.includes('CHECKOUT_SESSION_INVALID_SIGNATURE')]).toEqual([400, true])
    }
  })

  it('expires, unless it was paid', async () => {
    const service = await startService()
    const unpaid = await session(service, { expiresInMinutes: 5 })
    const paid = await session(service, { expiresInMinutes: 5 })
    await send(paid.url, { method: 'CARD', outcome: 'success' })
    await service.advance('5m')
    expect((await open(unpaid.url)).text).toContain('CHECKOUT_SESSION_EXPIRED')
    expect((await open(paid.url)).text).toContain('Paid.')
  })
})
