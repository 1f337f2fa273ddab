import { z } from 'zod'
import { invalidFields, ServiceError } from '../codes.js'
import type { Payment } from '../model.js'
import { followed } from '../paying.js'
import { cancelCheckout, createPayment, refund } from '../payment.js'
import { isIncomplete } from '../subscription.js'
import { LEGACY_PAYMENT_STATUSES, legacyPaymentView, legacyStatus } from '../views-v2.js'
import { paymentView, shown } from '../views-v3.js'
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
  deadlineIn,
  INSTRUMENT,
  PURCHASE,
  priceOf,
  startPayment,
} from './purchase.js'

export const paymentNamed = (world: World, id: string | undefined): Payment =>
  found(world, 'payment', id, 'PAYMENT_NOT_FOUND')

export const showPayment = (world: World, payment: Payment): object =>
  paymentView(payment, world.find('product', payment.productId))

const showLegacy = (world: World, payment: Payment): object =>
  legacyPaymentView(payment, world.find('customer', payment.customerId))

function oneTimePayment(
  world: World,
  body: z.output<typeof PURCHASE>,
  more: { readonly capture?: Payment['capture']; readonly expiresAt?: number | null | undefined },
): Payment {
  const product = found(world, 'product', body.productId, 'PRODUCT_NOT_FOUND')
  assertOnSale(world, product)
  if (product.frequencyInDays !== null)
    throw invalidFields({ field: 'productId', message: 'must be a one-time product' })
  const { customFields } = body
  const checkout = { product, customer: buyerOf(world, body), context: contextOf(body), customFields }
  return createPayment(world, { ...checkout, ...priceOf(product, body), purpose: 'one_time', ...more })
}

const REFUND = z.object({
  amountInCents: z.int().min(1).optional(),
  reason: z.string().max(1000).nullable().default(null),
  idempotencyKey: z.string().min(1).max(255).optional(),
})

const LIST = PAGE_QUERY.extend({
  currency: z.string().max(20).toUpperCase().optional(),
  status: z.enum(LEGACY_PAYMENT_STATUSES).optional(),
  customerEmail: z.email().toLowerCase().optional(),
})

/** With a filter, every payment is looked at: few enough for a sandbox. */
function legacyList(world: World, query: z.output<typeof LIST>): object {
  const { currency, status, customerEmail, page, limit } = query
  const view = (payment: Payment) => showLegacy(world, payment)
  if (!currency && !status && !customerEmail) return recordPage(world, 'payment', {}, query, view)
  const emailOf = ({ customerId }: Payment) => world.find('customer', customerId)?.email.toLowerCase()
  const wanted = [...world.each('payment')]
    .filter((payment) => !currency || payment.deposit?.symbol === currency)
    .filter((payment) => !status || legacyStatus(payment) === status)
    .filter((payment) => !customerEmail || emailOf(payment) === customerEmail)
    .reverse()
  const data = wanted.slice((page - 1) * limit, page * limit).map(view)
  return { data, pagination: pagination(query, wanted.length) }
}

function cancelPayment(world: World, payment: Payment, reason: string | null): object {
  const subscription = world.find('subscription', payment.subscriptionId)
  const isFirst = payment.purpose === 'cycle' && subscription !== undefined && isIncomplete(subscription)
  if (subscription !== undefined && !isFirst && payment.canceledAt === null) {
    throw new ServiceError(
      'PAYMENT_NOT_CANCELABLE',
      'The payment belongs to a running subscription: cancel that.',
    )
  }
  return showLegacy(world, followed(world, cancelCheckout(world, payment, reason)))
}

/** A receipt of one line, in the least that a PDF reader takes. */
function receipt({ id, grossAmountCents, currency }: Payment): Buffer {
  const stream = `BT /F1 14 Tf 72 720 Td (Receipt for ${id}: ${(grossAmountCents / 100).toFixed(2)} ${currency}) Tj ET`
  const font = '/Resources << /Font << /F1 5 0 R >> >>'
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R ${font} >>`,
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
    percentOff: z.int().min(1).max(100).nullable().default(null),
    amountOffCents: z.int().min(1).nullable().default(null),
    productId: TEXT.nullable().default(null),
  })
  .refine(({ percentOff, amountOffCents }) => (percentOff === null) !== (amountOffCents === null), {
    path: ['percentOff'],
    message: 'send either percentOff or amountOffCents',
  })

export const PAYMENT_OPERATIONS: readonly Operation[] = [
  operation(
    'POST /v3/payments',
    (world, { body, baseUrl }) => {
      const expiresAt = deadlineIn(world, body.expiresAt)
      const created = oneTimePayment(world, body, { capture: body.card?.capture ?? 'automatic', expiresAt })
      const payment = startPayment(world, created, body)
      return { ...showPayment(world, payment), paymentUrl: checkoutUrl(baseUrl, payment.id) }
    },
    { status: 201, body: PURCHASE.extend(INSTRUMENT.shape) },
  ),
  operation(
    'GET /v3/payments',
    (world, { query }) =>
      cursorPage(
        query,
        (span) => world.placed('payment', {}, span),
        (payment) => showPayment(world, payment),
      ),
    { query: CURSOR_QUERY },
  ),
  operation('GET /v3/payments/:id', (world, { params }) =>
    showPayment(world, paymentNamed(world, params.id)),
  ),
  operation(
    'GET /v3/payments/:id/receipt.pdf',
    (world, { params }) => {
      const payment = paymentNamed(world, params.id)
      if (payment.paymentReceivedAt !== null) return receipt(payment)
      throw new ServiceError('PAYMENT_NOT_FOUND', `The payment ${payment.id} is not paid: it has no receipt.`)
    },
    { form: 'pdf' },
  ),

  operation(
    'POST /api/payment/create',
    (world, { body, baseUrl }) => {
      // Left out, there is no deadline.
      const expiresAt = deadlineIn(world, body.expiresAt) ?? null
      const { id, metadata, customFields } = oneTimePayment(world, body, { expiresAt })
      return { paymentId: id, paymentUrl: checkoutUrl(baseUrl, id), metadata, customFields }
    },
    { status: 201, body: PURCHASE },
  ),
  operation(
    'POST /api/payment/:paymentId/cancel',
    (world, { params, body }) => cancelPayment(world, paymentNamed(world, params.paymentId), body.reason),
    { body: z.object({ reason: z.string().max(1000).nullable().default(null) }) },
  ),
  operation('GET /api/payment', (world, { query }) => legacyList(world, query), { query: LIST }),
  operation('GET /api/payment/:paymentId', (world, { params }) =>
    showLegacy(world, paymentNamed(world, params.paymentId)),
  ),
  operation(
    'POST /api/refund/:paymentId',
    (world, { params, body }) => {
      const before = paymentNamed(world, params.paymentId)
      const payment = refund(world, before, body.amountInCents ?? null)
      const { id: paymentId, refundedAmountCents } = payment
      const amountInCents = refundedAmountCents - before.refundedAmountCents
      return {
        paymentId,
        status: legacyStatus(payment),
        amountInCents,
        refundedAmountCents,
        reason: body.reason,
      }
    },
    { body: REFUND, idempotency: 'v2' },
  ),
  operation(
    'POST /api/discount/create',
    (world, { body }) => {
      if (body.productId !== null) found(world, 'product', body.productId, 'PRODUCT_NOT_FOUND')
      const at = world.tick()
      const discount = world.put('discount', {
        id: world.makeId('dis'),
        ...body,
        createdAt: at,
        updatedAt: at,
      })
      return shown(discount, 'id code percentOff amountOffCents productId createdAt')
    },
    { status: 201, body: DISCOUNT },
  ),
]
