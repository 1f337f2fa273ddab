/* The hosted checkout: plain pages, on which a person pays, fails to, or leaves. */

import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import { html, type SafeHtml } from '@remix-run/html-template'
import express, { type ErrorRequestHandler, type Router } from 'express'
import { z } from 'zod'
import { formatInstant } from '../provider/instant.js'
import { refuse, ServiceError } from './codes.js'
import type { Payment, Product } from './model.js'
import type { Engine } from './operations/operation.js'
import { PAY, pay } from './paying.js'
import { isPayable } from './payment.js'
import { assetOf, CHAINS } from './pricing.js'
import type { World } from './world.js'

const STYLE = `
:root { color-scheme: light dark; font: 1.05rem/1.5 system-ui, sans-serif }
body { margin: 0 auto; max-width: 34rem; padding: 1rem }
h1 { font-size: 1.4rem; overflow-wrap: anywhere }
fieldset { border: 1px solid; border-radius: .5rem; margin: 1rem 0; padding: .5rem 1rem 1rem }
label { display: block; margin: .5rem 0 }
input, select, button { box-sizing: border-box; display: block; font: inherit; margin-top: .25rem; min-height: 2.75rem; padding: .25rem .75rem; width: 100% }
button { cursor: pointer; font-weight: 600; margin-top: 1rem }
.price { font-size: 1.6rem; font-weight: 600 }
.note { border-left: .3rem solid; padding-left: .75rem }
a { color: inherit }
`
const STYLE_HASH = hash('sha256', STYLE, 'base64')
const HEADERS = {
  'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'Referrer-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
}

const FORM = PAY.extend({
  share: z.coerce.number().pipe(PAY.shape.share.unwrap()),
  confirmations: z.coerce.number().pipe(PAY.shape.confirmations.unwrap()),
  /** `8453 USDC` */
  asset: z.templateLiteral([z.int(), ' ', z.string().max(20)]).transform((text) => {
    const [chainId, assetId] = text.split(' ')
    return { chainId: Number(chainId), assetId }
  }),
}).partial()

/** Mounted at `/checkout`. The address of a checkout is all that a buyer needs; nothing else opens a page. */
export function checkoutRoutes({ world, courier, baseUrl }: Engine): Router {
  const router = express.Router()
  router.use((req, res, next) => {
    res.set(HEADERS)
    // A page of somebody else's must neither read these nor send their forms.
    const origin = req.get('Origin') ?? baseUrl()
    const isOwn = req.method !== 'POST' || origin === baseUrl()
    if (!isOwn || req.get('Host') !== new URL(baseUrl()).host)
      refuse('FORBIDDEN', `Open the checkout at ${baseUrl()}.`)
    next()
  })
  router.get('/:name', ({ params: { name }, query }, res) => {
    res.send(world.act(() => checkoutPage(world, checkoutNamed(world, name), 'left' in query)))
  })
  router.post('/:name', express.urlencoded({ extended: false, limit: '64kb' }), async (req, res) => {
    const { name } = req.params as { readonly name: string }
    try {
      world.act(() => submit(world, checkoutNamed(world, name), req.body ?? {}))
    } finally {
      await courier.drain()
    }
    res.redirect(303, `/checkout/${encodeURIComponent(name)}`)
  })
  router.use(failurePage)
  return router
}

// The address of a checkout: a payment's own id, or the signed token of a session

export const checkoutUrl = (baseUrl: string, name: string): string => `${baseUrl}/checkout/${name}`

/** `cs_<id>.<signature>`: the id alone opens nothing. */
export function sessionToken({ settings }: World, id: string): string {
  const signature = createHmac('sha256', `checkout sessions of ${settings.seed}`).update(id)
  return `${id}.${signature.digest('base64url')}`
}

/** @throws {ServiceError} if the address of a checkout is forged, has expired, or names no payment */
function checkoutNamed(world: World, name: string): Payment {
  const [id = ''] = name.split('.')
  const isSession = id.startsWith('cs_')
  if (isSession && !isSame(name, sessionToken(world, id))) {
    refuse('CHECKOUT_SESSION_INVALID_SIGNATURE', 'The signature of this checkout session is wrong.')
  }
  const payment = world.find('payment', isSession ? id.replace('cs_', 'pay_') : name)
  if (payment === undefined) {
    const code = isSession ? 'CHECKOUT_SESSION_NOT_FOUND' : 'PAYMENT_NOT_FOUND'
    return refuse(code, 'There is no such checkout. Look at the address again.')
  }
  const { paymentReceivedAt, expiresAt } = payment
  if (isSession && paymentReceivedAt === null && expiresAt !== null && world.now >= expiresAt) {
    refuse('CHECKOUT_SESSION_EXPIRED', 'This checkout session has expired. Ask the shop for a new one.')
  }
  return payment
}

/** In the same time, wherever two secrets differ. */
export function isSame(given: string, secret: string): boolean {
  return timingSafeEqual(hash('sha256', given, 'buffer'), hash('sha256', secret, 'buffer'))
}

// The pages

const failurePage: ErrorRequestHandler = (error, req, res, next) => {
  if (!(error instanceof ServiceError)) return next(error)
  const back = link(req.method === 'POST' ? `/checkout${req.path}` : null, 'Back to the checkout')
  const body = html`${note(error.message, 'alert')}<p>Code: ${error.code}</p>${back}`
  res.status(error.status).send(page('This did not work', body))
}

type Form = Readonly<Record<string, string>>

function submit(world: World, payment: Payment, form: Form): Payment {
  const filled = Object.fromEntries(Object.entries(form).filter(([, text]) => text !== ''))
  const { data, error } = FORM.safeParse(filled)
  if (error !== undefined) {
    const [issue] = error.issues
    return refuse('VALIDATION_ERROR', `The field ${issue?.path.join('.')} is not right: ${issue?.message}.`)
  }
  const { asset: crypto, ...spec } = data
  return pay(world, withAnswers(world, payment, form), { ...spec, crypto })
}

/** What the merchant wants to know of the buyer, and does not know yet. */
const questionsOf = ({ customFields, customFieldsResponse }: Payment) =>
  (customFieldsResponse === null && customFields) || []

function withAnswers(world: World, payment: Payment, form: Form): Payment {
  const answers = questionsOf(payment).map(
    ({ key }, index) => [key, form[`custom-${index}`] ?? null] as const,
  )
  if (answers.every(([, answer]) => answer === null)) return payment
  return world.put('payment', { ...payment, customFieldsResponse: Object.fromEntries(answers) })
}

function checkoutPage(world: World, payment: Payment, hasLeft: boolean): string {
  const product = world.find('product', payment.productId)
  const left = html`${note('You have left without paying.')}${link('?', 'Go back and pay')}`
  const body = html`
    <p class="price">${(payment.grossAmountCents / 100).toFixed(2)} ${payment.currency}</p>
    ${product?.description && html`<p>${product.description}</p>`}
    <p>A sandbox: no money moves here. Its clock says ${formatInstant(world.now)}.</p>
    ${hasLeft ? left : stateOf(world, payment, product)}`
  return page(product?.name ?? 'Checkout', body)
}

function stateOf(world: World, payment: Payment, product: Product | undefined): SafeHtml {
  const { status, successUrl, cancelUrl, paymentReceivedAt, refundedAmountCents } = payment
  if (isPayable(payment, world.now)) {
    const isAtBank = status === 'PENDING_3DS' || status === 'PENDING_REDIRECT'
    return isAtBank ? bankForm() : forms(payment, product)
  }
  if (status === 'RECEIVED') return confirmations(payment)
  if (status === 'BRIDGING') return note('Your deposit is confirmed and being exchanged.')
  const isPaid = paymentReceivedAt !== null || status === 'AUTHORIZED'
  const outcome = refundedAmountCents > 0 ? 'Refunded.' : 'Paid. Thank you!'
  return html`${note(isPaid ? outcome : html`This checkout can't be paid any more.`)}
    ${link(isPaid ? successUrl : cancelUrl, 'Back to the shop')}`
}

const bankForm = (): SafeHtml => html`${note('Your bank asks whether this is you.')}<form method="post">
  <button name="outcome" value="success">Yes, pay</button>
  <button name="outcome" value="3ds_failed">No, refuse</button></form>`

function forms(payment: Payment, product: Product | undefined): SafeHtml {
  const { status, declineCode, cancelUrl } = payment
  const why = declineCode ?? 'a technical failure'
  const hasFailed = status === 'DECLINED' || status === 'FAILED'
  const isPartly = status === 'PARTIAL'
  return html`
    ${hasFailed ? note(`The payment did not go through: ${why}. You can try again.`, 'alert') : null}
    ${isPartly ? note('A part of the deposit has come. The rest is missing.', 'alert') : null}
    ${product?.paymentMethods.includes('CARD') && !isPartly ? cardForm(payment) : null}
    ${product?.paymentMethods.includes('CRYPTO') ? depositForm(payment, product) : null}
    ${link(cancelUrl ?? '?left', 'Leave without paying')}`
}

const cardForm = (payment: Payment): SafeHtml =>
  html`<form method="post"><fieldset><legend>Pay by card</legend>${questions(payment)}
    ${choice('How', 'method', ['CARD', 'By card'], ['WALLET_A', 'By wallet A'], ['WALLET_B', 'By wallet B'])}
    <label>Which card<select name="outcome">
      <option value="success">a card that works</option>
      <option value="3ds_required">a card whose bank asks first (3DS)</option>
      <option value="soft_decline">a card without enough money</option>
      <option value="hard_decline">a stolen card</option>
      <option value="technical_failure">a card, and something breaks</option></select></label>
    <button>Pay by card</button></fieldset></form>`

function depositForm(payment: Payment, { acceptedChains, acceptedAssets }: Product): SafeHtml {
  const { received, expected, symbol, chainId = 0 } = payment.deposit ?? {}
  const nameOf = (id: number): string => CHAINS[id]?.name ?? ''
  const pairs = acceptedChains.flatMap((id) => acceptedAssets.map((one) => [id, one] as const))
  const offers = pairs.filter(([id, one]) => assetOf(id, one) !== undefined)
  const assets = offers.map(([id, one]) => [`${id} ${one}`, `${one} on ${nameOf(id)}`] as const)
  const what = payment.deposit
    ? html`<p>${received} of ${expected} received, in ${symbol} on ${nameOf(chainId)}, smallest unit.</p>`
    : choice('What', 'asset', ...assets)
  return html`<form method="post"><fieldset><legend>Send a deposit</legend>${questions(payment)}${what}
    ${choice('How much', 'share', ['', 'all that is missing'], ['0.5', 'half'], ['1.5', 'half as much again'])}
    ${choice('Confirmations', 'confirmations', ['', 'all at once'], ['1', 'one by one'])}
    <button name="method" value="CRYPTO">Send the deposit</button></fieldset></form>`
}

function confirmations({ deposit }: Payment): SafeHtml {
  const observed = deposit?.observed ?? 0
  const required = CHAINS[deposit?.chainId ?? 0]?.confirmations ?? 1
  return html`${note(`Your deposit is there: ${observed} of ${required} confirmations.`)}<form method="post">
    <button name="confirmations" value="${observed + 1}">One more confirmation</button>
    <button>All of them</button></form>`
}

/** The email where nobody knows it, and what the merchant wants to know. */
function questions(payment: Payment): SafeHtml {
  const asked = questionsOf(payment).map(({ label, required, placeholder, options }, index) => {
    const attributes = html`name="custom-${index}"${required ? html` required` : null}`
    const control = options
      ? html`<select ${attributes}>${options.map(({ value, label: text }) => option([value, text]))}</select>`
      : html`<input ${attributes} placeholder="${placeholder}">`
    return html`<label>${label}${control}</label>`
  })
  const email = html`<label>Email<input name="email" type="email" autocomplete="email" required></label>`
  return html`${payment.customerId === null ? email : null}${asked}`
}

type Option = readonly [value: string, text: string]
const option = ([value, text]: Option): SafeHtml => html`<option value="${value}">${text}</option>`
const choice = (label: string, name: string, ...options: readonly Option[]): SafeHtml =>
  html`<label>${label}<select name="${name}">${options.map(option)}</select></label>`

const note = (text: string | SafeHtml, role: 'status' | 'alert' = 'status'): SafeHtml =>
  html`<p role="${role}" class="note">${text}</p>`

/** @param url checked to be a web address when it came in, or our own */
const link = (url: string | null, text: string): SafeHtml | null =>
  url === null ? null : html`<p><a href="${url}" rel="noreferrer">${text}</a></p>`

/** They would turn round the text after them; shown by their number, they do nothing. */
const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

function page(title: string, body: SafeHtml): string {
  const text = html`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title} – sandbox checkout</title><style>${html.raw`${STYLE}`}</style></head><body><main><h1>${title}</h1>${body}</main></body></html>`
  const shown = (sign: string) => `[U+${sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}]`
  return String(text).replaceAll(BIDI, shown)
}
