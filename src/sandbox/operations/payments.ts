import { z } from 'zod'
import { invalidFields, ServiceError } from '../codes.js'
import type { Payment } from '../model.js'
import { followed, isCardMethod, outcomeOfToken, pay } from '../paying.js'
import { cancelCheckout, chooseMethod, createPayment, refund } from '../payment.js'
import { isIncomplete } from '../subscription.js'
import { discountView, LEGACY_PAYMENT_STATUSES, legacyPaymentView, legacyStatus } from '../views-v2.js'
import { iso, paymentView } from '../views-v3.js'
import type { World } from '../world.js'
import {
  CURSOR_QUERY,
  cursorPage,
  found,
  type Operation,
  operation,
  PAGE_QUERY,
  pagination,
  recordPage,
  TEXT,
} from './operation.js'
import {
  assertOnSale,
  buyerOf,
  checkoutUrl,
  contextOf,
  INSTRUMENT,
  PURCHASE,
  priceOf,
  railOf,
} from './purchase.js'

const CREATE = PURCHASE.extend(INSTRUMENT.shape)

export const paymentNamed = (world: World, id: string | undefined): Payment =>
  found(world, 'payment', id, 'PAYMENT_NOT_FOUND')

export const showPayment = (world: World, payment: Payment): object =>
  paymentView(payment, world.find('product', payment.productId))

export const showLegacyPayment = (world: World, payment: Payment): object =>
  legacyPaymentView(payment, world.find('customer', payment.customerId))

/** A deadline that has passed could only be a mistake. */
export function deadlineIn(world: World, expiresAt: number | undefined): number | undefined {
  if (expiresAt === undefined || expiresAt > world.now) return expiresAt
  throw invalidFields({ field: 'expiresAt', message: `must be after the sandbox's clock, ${iso(world.now)}` })
}

function oneTimePayment(
  world: World,
  body: z.output<typeof PURCHASE>,
  more: { readonly capture?: Payment['capture']; readonly expiresAt?: number | null | undefined },
): Payment {
  const product = found(world, 'product', body.productId, 'PRODUCT_NOT_FOUND')
  assertOnSale(world, product)
  if (product.frequencyInDays !== null) {
    throw invalidFields({ field: 'productId', message: 'must be a one-time product' })
  }
  const customer = buyerOf(world, body)
  return createPayment(world, {
    ...{ product, customer, purpose: 'one_time' },
    ...priceOf(product, body),
    context: contextOf(body),
    customFields: body.customFields ?? null,
    ...more,
  })
}

/** Has a new payment use what the request says it pays with; a token is charged at once. */
export function startPayment(world: World, payment: Payment, body: z.output<typeof INSTRUMENT>): Payment {
  if (railOf(body) === 'crypto') return chooseMethod(world, payment, 'CRYPTO', body.crypto)
  const token = body.card?.tokenizedInstrument
  const method = body.method !== undefined && isCardMethod(body.method) ? body.method : 'CARD'
  if (token === undefined) return body.method === undefined ? payment : chooseMethod(world, payment, method)
  return pay(world, payment, { method, outcome: outcomeOfToken(token) })
}

const REFUND = z.object({
  amountInCents: z.int().min(1).optional(),
  reason: z.string().max(1000).optional(),
  idempotencyKey: z.string().min(1).max(255).optional(),
})

const LIST = PAGE_QUERY.extend({
  currency: z.string().max(20).optional(),
  status: z.enum(LEGACY_PAYMENT_STATUSES).optional(),
  customerEmail: z.email().optional(),
})

/** With a filter, every payment is looked at: few enough for a sandbox. */
function legacyList(world: World, query: z.output<typeof LIST>): object {
  const { currency, status, customerEmail, page, limit } = query
  const view = (payment: Payment) => showLegacyPayment(world, payment)
  if (currency === undefined && status === undefined && customerEmail === undefined) {
    return recordPage(world, 'payment', {}, query, view)
  }
  const wanted = [...world.each('payment')]
    .filter((payment) => currency === undefined || payment.deposit?.symbol === currency.toUpperCase())
    .filter((payment) => status === undefined || legacyStatus(payment) === status)
    .filter((payment) => customerEmail === undefined || hasEmail(world, payment, customerEmail))
    .reverse()
  const shown = wanted.slice((page - 1) * limit, page * limit)
  return { data: shown.map(view), pagination: pagination(query, wanted.length) }
}

function hasEmail(world: World, { customerId }: Payment, email: string): boolean {
  return world.find('customer', customerId)?.email.toLowerCase() === email.toLowerCase()
}

function cancelPayment(world: World, payment: Payment, reason: string | null): object {
  const subscription = world.find('subscription', payment.subscriptionId)
  if (
    subscription !== undefined &&
    !(payment.purpose === 'cycle' && isIncomplete(subscription)) &&
    payment.canceledAt === null
  ) {
    const message = 'The payment belongs to a running subscription: cancel that.'
    throw new ServiceError('PAYMENT_NOT_CANCELABLE', message)
  }
  const canceled = followed(world, cancelCheckout(world, payment, reason))
  return showLegacyPayment(world, canceled)
}

/** A receipt of one line, in the least that a PDF reader takes. */
function receipt({ id, grossCents, currency }: Payment): Buffer {
  const text = `Receipt for ${id}: ${(grossCents / 100).toFixed(2)} ${currency}`
  const stream = `BT /F1 14 Tf 72 720 Td (${text}) Tj ET`
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    `<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
  ]
  let pdf = '%PDF-1.4\n'
  const offsets = objects.map((object, index) => {
    const offset = pdf.length
    pdf += `${index + 1} 0 obj\n${object}\nendobj\n`
    return `${String(offset).padStart(10, '0')} 00000 n \n`
  })
  const start = pdf.length
  pdf += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.join('')}`
  pdf += `trailer << /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${start}\n%%EOF\n`
  return Buffer.from(pdf, 'latin1')
}

const DISCOUNT = z
  .object({
    code: z.string().regex(/^[\w-]{1,50}$/, 'must be 1 to 50 letters, digits, - or _'),
    percentOff: z.int().min(1).max(100).nullish(),
    amountOffCents: z.int().min(1).nullish(),
    productId: TEXT.nullish(),
  })
  .refine(({ percentOff, amountOffCents }) => (percentOff == null) !== (amountOffCents == null), {
    path: ['percentOff'],
    message: 'send either percentOff or amountOffCents',
  })

export const PAYMENT_OPERATIONS: readonly Operation[] = [
  operation(
    'POST /v3/payments',
    { about: 'create payment', status: 201, body: CREATE },
    (world, { body, baseUrl }) => {
      const expiresAt = deadlineIn(world, body.expiresAt)
      const created = oneTimePayment(world, body, { capture: body.card?.capture ?? 'automatic', expiresAt })
      const payment = startPayment(world, created, body)
      return { ...showPayment(world, payment), paymentUrl: checkoutUrl(baseUrl, payment.id) }
    },
  ),
  operation('GET /v3/payments', { about: 'list payments', query: CURSOR_QUERY }, (world, { query }) =>
    cursorPage(
      query,
      (span) => world.placed('payment', {}, span),
      (payment) => showPayment(world, payment),
    ),
  ),
  operation('GET /v3/payments/:id', { about: 'get payment' }, (world, { params }) =>
    showPayment(world, paymentNamed(world, params.id)),
  ),
  operation('GET /v3/payments/:id/receipt.pdf', { about: 'receipt', form: 'pdf' }, (world, { params }) => {
    const payment = paymentNamed(world, params.id)
    if (payment.receivedAt !== null) return receipt(payment)
    throw new ServiceError('PAYMENT_NOT_FOUND', `The payment ${payment.id} is not paid: it has no receipt.`)
  }),

  operation(
    'POST /api/payment/create',
    { about: 'create one-time payment', status: 201, body: PURCHASE },
    (world, { body, baseUrl }) => {
      const { id, metadata, customFields } = oneTimePayment(world, body, {
        // Left out, there is no deadline.
        expiresAt: deadlineIn(world, body.expiresAt) ?? null,
      })
      return { paymentId: id, paymentUrl: checkoutUrl(baseUrl, id), metadata, customFields }
    },
  ),
  operation(
    'POST /api/payment/:paymentId/cancel',
    { about: 'cancel unsettled checkout', body: z.object({ reason: z.string().max(1000).optional() }) },
    (world, { params, body }) =>
      cancelPayment(world, paymentNamed(world, params.paymentId), body.reason ?? null),
  ),
  operation('GET /api/payment', { about: 'list one-time payments', query: LIST }, (world, { query }) =>
    legacyList(world, query),
  ),
  operation('GET /api/payment/:paymentId', { about: 'get payment' }, (world, { params }) =>
    showLegacyPayment(world, paymentNamed(world, params.paymentId)),
  ),
  operation(
    'POST /api/refund/:paymentId',
    { about: 'refund a card payment, full or partial', body: REFUND, idempotency: 'v2' },
    (world, { params, body }) => {
      const before = paymentNamed(world, params.paymentId)
      const payment = refund(world, before, body.amountInCents ?? null)
      return {
        paymentId: payment.id,
        status: legacyStatus(payment),
        refundedCents: payment.refundedCents - before.refundedCents,
        refundedAmountCents: payment.refundedCents,
        reason: body.reason ?? null,
      }
    },
  ),
  operation(
    'POST /api/discount/create',
    { about: 'create discount code', status: 201, body: DISCOUNT },
    (world, { body }) => {
      if (body.productId != null) found(world, 'product', body.productId, 'PRODUCT_NOT_FOUND')
      const at = world.tick()
      const { code, percentOff = null, amountOffCents = null, productId = null } = body
      const discount = { id: world.makeId('dis'), code, percentOff, amountOffCents, productId }
      return discountView(world.put('discount', { ...discount, createdAt: at, updatedAt: at }))
    },
  ),
]
