/* The hosted checkout: plain pages, on which a person pays, fails to, or leaves. */

import { createHash } from 'node:crypto'
import express, { type ErrorRequestHandler, type Router } from 'express'
import { z } from 'zod'
import { ServiceError } from './codes.js'
import { METHODS, OUTCOMES, type Payment, type Product } from './model.js'
import type { Engine } from './operations/operation.js'
import { pay } from './paying.js'
import { isPayable } from './payment.js'
import { assetOf, CHAINS } from './pricing.js'
import { checkoutNamed } from './sessions.js'
import { iso } from './views-v3.js'
import type { World } from './world.js'

const STYLE = `
:root { color-scheme: light dark; font: 1.05rem/1.5 system-ui, sans-serif }
body { margin: 0 auto; max-width: 34rem; padding: 1rem }
h1 { font-size: 1.4rem; overflow-wrap: anywhere }
fieldset { border: 1px solid; border-radius: .5rem; margin: 1rem 0; padding: .5rem 1rem 1rem }
label { display: block; margin: .5rem 0 }
input:not([type=radio]), select, button { box-sizing: border-box; display: block; font: inherit; margin-top: .25rem; min-height: 2.75rem; padding: .25rem .75rem; width: 100% }
input[type=radio] { height: 1.25rem; vertical-align: middle; width: 1.25rem }
button { cursor: pointer; font-weight: 600; margin-top: 1rem }
.price { font-size: 1.6rem; font-weight: 600 }
.note { border-left: .3rem solid; padding-left: .75rem }
a { color: inherit }
dd { margin: 0 0 .5rem; overflow-wrap: anywhere }
`
const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64')
const HEADERS = {
  'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'Referrer-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
}

const FORM = z.object({
  method: z.enum(METHODS).optional(),
  outcome: z.enum(OUTCOMES).optional(),
  share: z.coerce.number().gt(0).max(10).optional(),
  confirmations: z.coerce.number().int().min(0).max(1000).optional(),
  asset: z.string().max(40).optional(),
  email: z.email().max(255).optional(),
})

/** Mounted at `/checkout`. The address of a checkout is all that a buyer needs; nothing else opens a page. */
export function checkoutRoutes({ act, courier }: Engine, baseUrl: () => string): Router {
  const router = express.Router()
  router.use((req, res, next) => {
    res.set(HEADERS)
    // A page of somebody else's must neither read these nor send their forms.
    const origin = req.get('Origin')
    const isOwn = req.get('Host') === new URL(baseUrl()).host
    if (isOwn && (req.method !== 'POST' || origin === undefined || origin === baseUrl())) return next()
    throw new ServiceError('FORBIDDEN', `Open the checkout at ${baseUrl()}.`)
  })
  router.get('/:name', (req, res) => {
    const shown = act((world) =>
      checkoutPage(world, checkoutNamed(world, req.params.name), 'left' in req.query),
    )
    res.send(shown.html)
  })
  router.post('/:name', express.urlencoded({ extended: false, limit: '64kb' }), async (req, res) => {
    const { name } = req.params as { readonly name: string }
    const form: Readonly<Record<string, string>> = req.body ?? {}
    try {
      act((world) => void submit(world, checkoutNamed(world, name), form))
    } finally {
      await courier.drain()
    }
    res.redirect(303, `/checkout/${encodeURIComponent(name)}`)
  })
  router.use(failurePage)
  return router
}

const failurePage: ErrorRequestHandler = (error, req, res, next) => {
  if (!(error instanceof ServiceError)) return next(error)
  const back = req.method === 'POST' && html`<p><a href="/checkout${req.path}">Back to the checkout</a></p>`
  const body = html`<p role="alert" class="note">${error.message}</p><p>Code: ${error.code}</p>${back}`
  res.status(error.status).send(page('This did not work', body).html)
}

function submit(world: World, payment: Payment, form: Readonly<Record<string, string>>): Payment {
  const filled = Object.fromEntries(Object.entries(form).filter(([, text]) => text !== ''))
  const { data, error } = FORM.safeParse(filled)
  if (error !== undefined) {
    const [issue] = error.issues
    throw new ServiceError(
      'VALIDATION_ERROR',
      `The field ${issue?.path.join('.')} is not right: ${issue?.message}.`,
    )
  }
  const answered = withAnswers(world, payment, form)
  const [chainId = '', assetId] = data.asset?.split(' ') ?? []
  const crypto = assetId === undefined ? undefined : { chainId: Number(chainId), assetId }
  const { method, outcome, share, confirmations, email } = data
  return pay(world, answered, { method, outcome, share, confirmations, email, crypto })
}

/** The buyer's answers to the merchant's own questions. */
function withAnswers(world: World, payment: Payment, form: Readonly<Record<string, string>>): Payment {
  if (payment.customFields === null || payment.customFieldsResponse !== null) return payment
  const fields = payment.customFields as readonly { readonly key: string }[]
  const answers = fields.map(({ key }, index) => [key, form[`custom-${index}`] ?? null] as const)
  if (answers.every(([, answer]) => answer === null)) return payment
  return world.put('payment', { ...payment, customFieldsResponse: Object.fromEntries(answers) })
}

function checkoutPage(world: World, payment: Payment, hasLeft: boolean): Html {
  const product = world.find('product', payment.productId)
  const title = product?.name ?? 'Checkout'
  const head = html`
    <p class="price">${(payment.grossAmountCents / 100).toFixed(2)} ${payment.currency}</p>
    ${product?.description ? html`<p>${product.description}</p>` : null}
    <p>A sandbox: no money moves here. Its clock says ${iso(world.now)}.</p>`
  if (hasLeft) {
    return page(
      title,
      html`${head}<p role="status" class="note">You have left without paying.</p>
      <p><a href="?">Go back and pay</a></p>`,
    )
  }
  return page(title, html`${head}${stateOf(world, payment, product)}`)
}

function stateOf(world: World, payment: Payment, product: Product | undefined): Html {
  switch (payment.status) {
    case 'PENDING_3DS':
    case 'PENDING_REDIRECT':
      return html`<p role="status" class="note">Your bank asks whether this is you.</p>
        ${button('Yes, pay', { outcome: 'success' })}${button('No, refuse', { outcome: '3ds_failed' })}`
    case 'RECEIVED':
      return confirmations(payment)
    case 'BRIDGING':
      return html`<p role="status" class="note">Your deposit is confirmed and being exchanged.</p>`
    case 'AUTHORIZED':
    case 'COMPLETED':
    case 'REFUNDED':
    case 'PARTIALLY_REFUNDED':
      return html`<p role="status" class="note">${payment.refundedAmountCents > 0 ? 'Refunded.' : 'Paid. Thank you!'}</p>
        ${link(payment.successUrl, 'Back to the shop')}`
    case 'PENDING':
    case 'PARTIAL':
    case 'FAILED':
    case 'DECLINED':
      return isPayable(payment, world.now) ? forms(payment, product) : gone(payment)
    case 'CANCELED':
    case 'EXPIRED':
      return gone(payment)
    default:
      return payment.status satisfies never
  }
}

const gone = ({ cancelUrl }: Payment): Html =>
  html`<p role="status" class="note">This checkout can't be paid any more.</p>${link(cancelUrl, 'Back to the shop')}`

/** Checked to be a web address when it came in. */
const link = (url: string | null, text: string): Html | null =>
  url === null ? null : html`<p><a href="${url}" rel="noreferrer">${text}</a></p>`

function forms(payment: Payment, product: Product | undefined): Html {
  const failed = payment.status === 'DECLINED' || payment.status === 'FAILED'
  const why = payment.declineCode ?? 'a technical failure'
  return html`
    ${failed && html`<p role="alert" class="note">The payment did not go through: ${why}. You can try again.</p>`}
    ${payment.status === 'PARTIAL' && html`<p role="alert" class="note">A part of the deposit has come. The rest is missing.</p>`}
    ${product?.paymentMethods.includes('CARD') && payment.status !== 'PARTIAL' ? cardForm(payment) : null}
    ${product?.paymentMethods.includes('CRYPTO') ? depositForm(payment, product) : null}
    <p><a href="${payment.cancelUrl ?? '?left'}" rel="noreferrer">Leave without paying</a></p>`
}

const CARDS = [
  ['success', 'a card that works'],
  ['3ds_required', 'a card whose bank asks first (3DS)'],
  ['soft_decline', 'a card without enough money'],
  ['hard_decline', 'a stolen card'],
  ['technical_failure', 'a card, and something breaks'],
] as const

function cardForm(payment: Payment): Html {
  const wallets = [
    ['CARD', 'By card'],
    ['WALLET_A', 'By wallet A'],
    ['WALLET_B', 'By wallet B'],
  ] as const
  return html`<form method="post"><fieldset><legend>Pay by card</legend>
    ${questions(payment, 'card')}
    <label>How<select name="method">${wallets.map(([value, text]) => html`<option value="${value}">${text}</option>`)}</select></label>
    ${CARDS.map(
      ([value, text]) =>
        html`<label><input type="radio" name="outcome" value="${value}" required${
          value === 'success' && html` checked`
        }> ${text}</label>`,
    )}
    <button>Pay by card</button></fieldset></form>`
}

function depositForm(payment: Payment, product: Product): Html {
  const pairs = product.acceptedChains.flatMap((id) =>
    product.acceptedAssets.filter((symbol) => assetOf(id, symbol)).map((symbol) => [id, symbol] as const),
  )
  const choice = payment.deposit
    ? html`<p>${payment.deposit.received} of ${payment.deposit.expected} received, in ${payment.deposit.symbol} on ${
        CHAINS[payment.deposit.chainId]?.name ?? ''
      }, smallest unit.</p>`
    : html`<label>What<select name="asset">${pairs.map(
        ([id, symbol]) =>
          html`<option value="${id} ${symbol}">${symbol} on ${CHAINS[id]?.name ?? ''}</option>`,
      )}</select></label>`
  return html`<form method="post"><input type="hidden" name="method" value="CRYPTO"><fieldset><legend>Send a deposit</legend>
    ${questions(payment, 'crypto')}
    ${choice}
    <label>How much<select name="share"><option value="">all that is missing</option><option value="0.5">half</option><option value="1.5">half as much again</option></select></label>
    <label>Confirmations<select name="confirmations"><option value="">all at once</option><option value="1">one by one</option></select></label>
    <button>Send the deposit</button></fieldset></form>`
}

function confirmations({ deposit }: Payment): Html {
  const observed = deposit?.observed ?? 0
  const required = CHAINS[deposit?.chainId ?? 0]?.confirmations ?? 1
  return html`<p role="status" class="note">Your deposit is there: ${observed} of ${required} confirmations.</p>
    ${button('One more confirmation', { confirmations: String(observed + 1) })}${button('All of them', {})}`
}

function button(text: string, fields: Readonly<Record<string, string>>): Html {
  const hidden = Object.entries(fields).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )
  return html`<form method="post">${hidden}<button>${text}</button></form>`
}

interface Question {
  readonly key: string
  readonly label: string
  readonly required?: boolean
  readonly placeholder?: string
  readonly options?: readonly { readonly value: string; readonly label: string }[]
}

/** The email where nobody knows it, and what the merchant wants to know. */
function questions(payment: Payment, form: string): Html {
  const fields =
    payment.customFieldsResponse === null ? ((payment.customFields ?? []) as readonly Question[]) : []
  const email = html`<label>Email<input id="${form}-email" name="email" type="email" autocomplete="email" required></label>`
  return html`${payment.customerId === null && email}${fields.map((field, index) => {
    const attributes = html`name="custom-${index}"${field.required ? html` required` : null}`
    const control = field.options
      ? html`<select ${attributes}>${field.options.map(({ value, label }) => html`<option value="${value}">${label}</option>`)}</select>`
      : html`<input ${attributes} placeholder="${field.placeholder ?? ''}">`
    return html`<label>${field.label}${control}</label>`
  })}`
}

function page(title: string, body: Html): Html {
  return {
    html: `<!doctype html>${
      html`<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title} – sandbox checkout</title><style>${{ html: STYLE }}</style></head><body><main><h1>${title}</h1>${body}</main></body></html>`
        .html
    }`,
  }
}

/* HTML of which every value is text, unless it is HTML made here. */

interface Html {
  readonly html: string
}

type Value = string | number | Html | readonly Html[] | null | false

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
/** They would turn round the text after them; shown by their number, they do nothing. */
const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

function html(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
  return { html: parts.reduce((text, part, index) => text + textOf(values[index - 1] ?? null) + part) }
}

function textOf(value: Value): string {
  if (value === null || value === false) return ''
  if (typeof value === 'object') return 'html' in value ? value.html : value.map(textOf).join('')
  return String(value)
    .replaceAll(/[&<>"']/g, (sign) => ESCAPES[sign] ?? '')
    .replaceAll(BIDI, (sign) => `[U+${sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}]`)
}
