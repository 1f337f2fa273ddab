/* Hosted checkout sessions: signed tokens, each for one payment. */

import { createHmac, timingSafeEqual } from 'node:crypto'
import { ServiceError } from './codes.js'
import type { CheckoutSession, Payment } from './model.js'
import type { World } from './world.js'

/** `cs_<id>.<signature>`: the id alone opens nothing. */
export function sessionToken(world: World, id: string): string {
  const signature = createHmac('sha256', `checkout sessions of ${world.settings.seed}`)
    .update(id)
    .digest('base64url')
  return `${id}.${signature}`
}

/**
 * The payment that an address of the checkout names: by its own id, or by a session's token.
 * @throws {ServiceError} `PAYMENT_NOT_FOUND`, `CHECKOUT_SESSION_NOT_FOUND`, `CHECKOUT_SESSION_EXPIRED`,
 * `CHECKOUT_SESSION_INVALID_SIGNATURE`
 */
export function checkoutNamed(world: World, name: string): Payment {
  const session = name.startsWith('cs_') ? openSession(world, name) : null
  const payment = world.find('payment', session === null ? name : session.paymentId)
  if (payment !== undefined) return payment
  throw new ServiceError('PAYMENT_NOT_FOUND', 'There is no such checkout. Look at the address again.')
}

function openSession(world: World, token: string): CheckoutSession {
  const [id = ''] = token.split('.')
  const expected = Buffer.from(sessionToken(world, id))
  const given = Buffer.from(token)
  if (expected.length !== given.length || !timingSafeEqual(expected, given)) {
    throw new ServiceError(
      'CHECKOUT_SESSION_INVALID_SIGNATURE',
      'The signature of this checkout session is wrong.',
    )
  }
  const session = world.find('session', id)
  if (session === undefined)
    throw new ServiceError('CHECKOUT_SESSION_NOT_FOUND', 'There is no such checkout session.')
  const isPaid = world.find('payment', session.paymentId)?.paymentReceivedAt !== null
  if (!isPaid && world.now >= session.expiresAt) {
    throw new ServiceError(
      'CHECKOUT_SESSION_EXPIRED',
      'This checkout session has expired. Ask the shop for a new one.',
    )
  }
  return session
}
