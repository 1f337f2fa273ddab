import { z } from 'zod'
import { refuse } from '../codes.js'
import type { Payment } from '../model.js'
import { followed } from '../paying.js'
import { cancelCheckout, refund } from '../payment.js'
import { isIncomplete } from '../subscription.js'
import { LEGACY_PAYMENT_STATUSES, legacyPaymentView, legacyStatus } from '../views-v2.js'
import { paymentView, shown } from '../views-v3.js'
import { EMAIL, orNull, PAGE_QUERY, TEXT } from './fields.js'
import { type Call, found, listing, named, numberedPage, operation } from './operation.js'

export const paymentNamed = named('payment', 'PAYMENT_NOT_FOUND')

const REASON = orNull(z.string().max(1000))
const CANCEL = z.object({ reason: REASON })
const REFUND = z.object({
  amountInCents: z.int().min(1).optional(),
  reason: REASON,
  idempotencyKey: z.string().min(1).max(255).optional(),
})

const FILTERED_PAGE = PAGE_QUERY.extend({
  currency: z.string().max(20).toUpperCase().optional(),
  status: z.enum(LEGACY_PAYMENT_STATUSES).optional(),
  customerEmail: EMAIL.toLowerCase().optional(),
})

function filterOf({ world, input }: Call<typeof FILTERED_PAGE>) {
  const { currency, status, customerEmail } = input
  if (!currency && !status && !customerEmail) return undefined
  const emailOf = ({ customerId }: Payment) => world.find('customer', customerId)?.email.toLowerCase()
  return (payment: Payment): boolean =>
    (!currency || payment.deposit?.symbol === currency) &&
    (!status || legacyStatus(payment) === status) &&
    (!customerEmail || emailOf(payment) === customerEmail)
}

function cancelPayment(call: Call<typeof CANCEL>): Payment {
  const { world } = call
  const payment = paymentNamed(call)
  const subscription = world.find('subscription', payment.subscriptionId)
  const isFirst = payment.purpose === 'cycle' && subscription !== undefined && isIncomplete(subscription)
  if (subscription !== undefined && !isFirst && payment.canceledAt === null) {
    refuse('PAYMENT_NOT_CANCELABLE', 'The payment belongs to a running subscription: cancel that.')
  }
  return followed(world, cancelCheckout(world, payment, call.input.reason))
}

/** A receipt of one line, in the least that a PDF reader takes. */
function receipt({ id, paymentReceivedAt, grossAmountCents, currency }: Payment): Buffer {
  if (paymentReceivedAt === null) {
    refuse('PAYMENT_NOT_FOUND', `The payment ${id} is not paid: it has no receipt.`)
  }
  const text = `Receipt for ${id}: ${(grossAmountCents / 100).toFixed(2)} ${currency}`
  const stream = `BT /F1 14 Tf 72 720 Td (${text}) Tj ET`
  const objects = `%PDF-1.4
1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 >> endobj
3 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources 6 0 R >> endobj
4 0 obj << /Length ${stream.length} >> stream
${stream}
endstream endobj
5 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> endobj
6 0 obj << /Font << /F1 5 0 R >> >> endobj
`
  const places = [...objects.matchAll(/^\d 0 obj/gm)].map(({ index }) => String(index).padStart(10, '0'))
  return Buffer.from(`${objects}xref
0 7
0000000000 65535 f${' '}
${places.map((place) => `${place} 00000 n \n`).join('')}trailer << /Size 7 /Root 1 0 R >>
startxref
${objects.length}
%%EOF
`)
}

const DISCOUNT = z
  .object({
    code: z.string().regex(/^[\w-]{1,50}$/, 'must be 1 to 50 letters, digits, - or _'),
    percentOff: orNull(z.int().min(1).max(100)),
    amountOffCents: orNull(z.int().min(1)),
    productId: orNull(TEXT),
  })
  .refine(({ percentOff, amountOffCents }) => (percentOff === null) !== (amountOffCents === null), {
    path: ['percentOff'],
    message: 'send either percentOff or amountOffCents',
  })

function createDiscount({ world, input }: Call<typeof DISCOUNT>): object {
  if (input.productId !== null) found(world, 'product', input.productId, 'PRODUCT_NOT_FOUND')
  const at = world.tick()
  const discount = { id: world.makeId('dis'), ...input, createdAt: at, updatedAt: at }
  return shown(world.put('discount', discount), 'id code percentOff amountOffCents productId createdAt')
}

function refunded(call: Call<typeof REFUND>): object {
  const before = paymentNamed(call)
  const { amountInCents: wanted = null, reason } = call.input
  const payment = refund(call.world, before, wanted)
  const { id: paymentId, refundedAmountCents } = payment
  const amountInCents = refundedAmountCents - before.refundedAmountCents
  return { paymentId, status: legacyStatus(payment), amountInCents, refundedAmountCents, reason }
}

export const PAYMENT_OPERATIONS = [
  listing('GET /v3/payments', { kind: 'payment', view: paymentView }),
  operation('GET /v3/payments/:id', {}, paymentNamed, paymentView),
  operation('GET /v3/payments/:id/receipt.pdf', {}, paymentNamed, receipt),

  operation('GET /api/payment', { input: FILTERED_PAGE }, (call) =>
    numberedPage(call.world, call.input, { kind: 'payment', view: legacyPaymentView, only: filterOf(call) }),
  ),
  operation('GET /api/payment/:paymentId', {}, paymentNamed, legacyPaymentView),
  operation('POST /api/payment/:paymentId/cancel', { input: CANCEL }, cancelPayment, legacyPaymentView),
  operation('POST /api/refund/:paymentId', { input: REFUND, idempotency: 'v2' }, refunded),
  operation('POST /api/discount/create', { status: 201, input: DISCOUNT }, createDiscount),
]
