import { z } from 'zod'
import { refuse } from '../codes.js'
import type { Payment } from '../model.js'
import { followed } from '../paying.js'
import { cancelCheckout, refund } from '../payment.js'
import { isIncomplete } from '../subscription.js'
import { LEGACY_PAYMENT_STATUSES, legacyPaymentView, legacyStatus } from '../views-v2.js'
import { paymentView, shown } from '../views-v3.js'
import type { World } from '../world.js'
import { EMAIL, orNull, TEXT } from './fields.js'
import { type Call, found, listing, named, type Operation, operation } from './operation.js'

export const paymentNamed = named('payment', 'PAYMENT_NOT_FOUND')

const REASON = orNull(z.string().max(1000))
const REFUND = z.object({
  amountInCents: z.int().min(1).optional(),
  reason: REASON,
  idempotencyKey: z.string().min(1).max(255).optional(),
})

const FILTER = z.object({
  currency: z.string().max(20).toUpperCase().optional(),
  status: z.enum(LEGACY_PAYMENT_STATUSES).optional(),
  customerEmail: EMAIL.toLowerCase().optional(),
})

function filteredBy({ world, query }: Call<unknown, z.output<typeof FILTER>>) {
  const { currency, status, customerEmail } = query
  if (!currency && !status && !customerEmail) return undefined
  const emailOf = ({ customerId }: Payment) => world.find('customer', customerId)?.email.toLowerCase()
  return (payment: Payment): boolean =>
    (!currency || payment.deposit?.symbol === currency) &&
    (!status || legacyStatus(payment) === status) &&
    (!customerEmail || emailOf(payment) === customerEmail)
}

function cancelPayment(world: World, payment: Payment, reason: string | null): Payment {
  const subscription = world.find('subscription', payment.subscriptionId)
  const isFirst = payment.purpose === 'cycle' && subscription !== undefined && isIncomplete(subscription)
  if (subscription !== undefined && !isFirst && payment.canceledAt === null) {
    refuse('PAYMENT_NOT_CANCELABLE', 'The payment belongs to a running subscription: cancel that.')
  }
  return followed(world, cancelCheckout(world, payment, reason))
}

/** A receipt of one line, in the least that a PDF reader takes. */
function receipt({ id, paymentReceivedAt, grossAmountCents, currency }: Payment): Buffer {
  if (paymentReceivedAt === null) {
    refuse('PAYMENT_NOT_FOUND', `The payment ${id} is not paid: it has no receipt.`)
  }
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
    percentOff: orNull(z.int().min(1).max(100)),
    amountOffCents: orNull(z.int().min(1)),
    productId: orNull(TEXT),
  })
  .refine(({ percentOff, amountOffCents }) => (percentOff === null) !== (amountOffCents === null), {
    path: ['percentOff'],
    message: 'send either percentOff or amountOffCents',
  })

function createDiscount({ world, body }: Call<z.output<typeof DISCOUNT>>): object {
  if (body.productId !== null) found(world, 'product', body.productId, 'PRODUCT_NOT_FOUND')
  const at = world.tick()
  const discount = { id: world.makeId('dis'), ...body, createdAt: at, updatedAt: at }
  return shown(world.put('discount', discount), 'id code percentOff amountOffCents productId createdAt')
}

export const PAYMENT_OPERATIONS: readonly Operation[] = [
  listing('GET /v3/payments', z.object({}), () => ({ kind: 'payment', view: paymentView })),
  operation('GET /v3/payments/:id', {}, (call) => paymentView(paymentNamed(call), call.world)),
  operation('GET /v3/payments/:id/receipt.pdf', {}, (call) => receipt(paymentNamed(call))),

  listing('GET /api/payment', FILTER, (call) => ({
    kind: 'payment',
    view: legacyPaymentView,
    only: filteredBy(call),
  })),
  operation('GET /api/payment/:paymentId', {}, (call) => legacyPaymentView(paymentNamed(call), call.world)),
  operation('POST /api/payment/:paymentId/cancel', { body: z.object({ reason: REASON }) }, (call) =>
    legacyPaymentView(cancelPayment(call.world, paymentNamed(call), call.body.reason), call.world),
  ),
  operation('POST /api/refund/:paymentId', { body: REFUND, idempotency: 'v2' }, (call) => {
    const before = paymentNamed(call)
    const { amountInCents: wanted = null, reason } = call.body
    const payment = refund(call.world, before, wanted)
    const { id: paymentId, refundedAmountCents } = payment
    const amountInCents = refundedAmountCents - before.refundedAmountCents
    return { paymentId, status: legacyStatus(payment), amountInCents, refundedAmountCents, reason }
  }),
  operation('POST /api/discount/create', { status: 201, body: DISCOUNT }, createDiscount),
]
