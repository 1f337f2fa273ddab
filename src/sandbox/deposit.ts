/* Deposits: how much has come, how sure it is, and the swap on the way to the merchant. */

import { z } from 'zod'
import { refuse } from './codes.js'
import { DEPOSIT_WARNINGS, type Deposit, type DepositWarning, type Payment } from './model.js'
import { complete, move } from './payment.js'
import { CHAINS } from './pricing.js'
import type { World } from './world.js'

/** How long swapping a deposit into the settlement asset takes. */
const BRIDGE_MS = 2 * 60_000

/** What the buyer sends. */
export const DEPOSIT = z.object({
  /** Left out: as many as the chain needs. */
  confirmations: z.int().min(0).max(1000).optional(),
  /** Of the expected amount; left out: all that is missing. */
  share: z.number().gt(0).max(10).optional(),
  warning: z.enum(DEPOSIT_WARNINGS).optional(),
})

/** A deposit arrives, or confirmations of one do. Less than expected waits for the rest. */
export function takeDeposit(world: World, payment: Payment, spec: z.output<typeof DEPOSIT>): Payment {
  const deposit = payment.deposit ?? refuse('INVALID_PAYMENT_STATUS_TRANSITION', 'No deposit is expected.')
  const { confirmations: required = 1, confirmationMs = 0 } = CHAINS[deposit.chainId] ?? {}
  const observed = Math.min(required, spec.confirmations ?? required)
  if (payment.status === 'RECEIVED') {
    const seen = { ...deposit, observed: Math.max(observed, deposit.observed ?? 0) }
    return confirmed(world, world.update('payment', payment, { deposit: seen }), required)
  }
  const warned = spec.warning ? withWarning(deposit, spec.warning) : deposit
  const received = receivedWith(deposit, spec.share)
  if (received < BigInt(deposit.expected)) {
    const { warnings } = withWarning(warned, 'INSUFFICIENT_DEPOSIT_AMOUNT')
    const change = { deposit: { ...deposit, received: String(received), warnings } }
    return payment.status === 'PARTIAL'
      ? world.update('payment', payment, change)
      : move(world, payment, 'PARTIAL', change)
  }
  const txHash = `0x${Buffer.from(payment.id).toString('hex').padEnd(64, '0')}`
  const seen = { ...warned, received: String(received), observed, detectedAt: world.now, txHash }
  const dueAt = world.now + (required - observed) * confirmationMs
  return confirmed(world, move(world, payment, 'RECEIVED', { deposit: seen, dueAt }), required)
}

function receivedWith({ expected, received }: Deposit, share: number | undefined): bigint {
  if (share === undefined) return BigInt(received) > BigInt(expected) ? BigInt(received) : BigInt(expected)
  return BigInt(received) + (BigInt(expected) * BigInt(Math.round(share * 1_000_000))) / 1_000_000n
}

const WARNING_TEXT: Readonly<Record<DepositWarning, string>> = {
  INSUFFICIENT_DEPOSIT_AMOUNT: 'The deposit is less than the expected amount.',
  RBF_DETECTED: 'The transaction may still be replaced by another.',
  NETWORK_FEE_SURCHARGE: 'The network fee was taken from the deposit.',
}

function withWarning(deposit: Deposit, code: DepositWarning): Deposit {
  if (deposit.warnings.some((one) => one.code === code)) return deposit
  const warning = { code, message: WARNING_TEXT[code], data: {} }
  return { ...deposit, warnings: [...deposit.warnings, warning] }
}

/** Completes a deposit with enough confirmations, by way of a swap where one was asked for. */
function confirmed(world: World, payment: Payment, required: number): Payment {
  const { deposit } = payment
  if (deposit === null || (deposit.observed ?? 0) < required) return payment
  if (deposit.mode === 'DIRECT') return complete(world, payment)
  return move(world, payment, 'BRIDGING', { dueAt: world.now + BRIDGE_MS })
}
