/* Hosted checkout sessions: signed tokens, each for one payment. */

import { createHmac, timingSafeEqual } from 'node:crypto'
import { refuse } from './codes.js'
import type { Payment, Records } from './model.js'
import type { World } from './world.js'

/** @param name a payment's own id, or a session's token */
export const checkoutUrl = (baseUrl: string, name: string): string => `${baseUrl}/checkout/${name}`

/** `cs_<id>.<signature>`: the id alone opens nothing. */
export function sessionToken({ settings }: World, id: string): string {
  const signature = createHmac('sha256', `checkout sessions of ${settings.seed}`).update(id)
  return `${id}.${signature.digest('base64url')}`
}

/**
 * The payment that an address of the checkout names.
 * @throws {ServiceError} `PAYMENT_NOT_FOUND`, `CHECKOUT_SESSION_NOT_FOUND`, `CHECKOUT_SESSION_EXPIRED`,
 * `CHECKOUT_SESSION_INVALID_SIGNATURE`
 */
export function checkoutNamed(world: World, name: string): Payment {
  const id = name.startsWith('cs_') ? openSession(world, name).paymentId : name
  const message = 'There is no such checkout. Look at the address again.'
  return world.find('payment', id) ?? refuse('PAYMENT_NOT_FOUND', message)
}

function openSession(world: World, token: string): Records['session'] {
  const [id = ''] = token.split('.')
  const expected = Buffer.from(sessionToken(world, id))
  const given = Buffer.from(token)
  if (expected.length !== given.length || !timingSafeEqual(expected, given)) {
    refuse('CHECKOUT_SESSION_INVALID_SIGNATURE', 'The signature of this checkout session is wrong.')
  }
  const session = world.find('session', id)
  if (!session) return refuse('CHECKOUT_SESSION_NOT_FOUND', 'There is no such checkout session.')
  const isPaid = world.find('payment', session.paymentId)?.paymentReceivedAt !== null
  if (!isPaid && world.now >= session.expiresAt) {
    refuse('CHECKOUT_SESSION_EXPIRED', 'This checkout session has expired. Ask the shop for a new one.')
  }
  return session
}
