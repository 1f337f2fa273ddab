import { createHash } from 'node:crypto'
import { wireEvent } from './wire-events.js'

export function sha256(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

export const GRANT = wireEvent('payment.authorized', { id: 'evt_1' })
export const HELD = wireEvent('CHECKOUT_SUCCESS', { id: 'evt_2', customer: null, payment: 'pay_2' })
/** Not even text. */
export const BROKEN = Buffer.from([0x7b, 0xff, 0x00, 0x0a])
export const BROKEN_ID = `sha256:${sha256(BROKEN)}`
