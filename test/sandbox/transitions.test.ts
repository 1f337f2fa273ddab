import { describe, expect, it } from 'vitest'
import { PAYMENT_MOVES } from '../../src/sandbox/model.js'
import { createPayment, type Json, type Service, startService } from './service.js'

/** One thing that happens to a payment. */
type Step = (service: Service, id: string) => Promise<unknown>

const paid =
  (body: object): Step =>
  (service, id) =>
    service.data(`POST /sandbox/payments/${id}/pay`, body)
const done =
  (act: string, body: object = {}): Step =>
  (service, id) =>
    service.data(`POST /sandbox/payments/${id}/${act}`, body)
const canceled: Step = (service, id) => service.data(`POST /api/payment/${id}/cancel`)
const waited: Step = (service) => service.advance('2d')
const card = (outcome: string) => paid({ method: 'CARD', outcome })
const wallet = (outcome: string) => paid({ method: 'WALLET_A', outcome })
const deposit = (body: object = {}) => paid({ method: 'CRYPTO', ...body })

/** What a buyer can do with a payment that is still open. */
const OPEN: Readonly<Record<string, readonly Step[]>> = {
  'AUTHORIZED > COMPLETED': [card('success')],
  'PENDING_3DS > AUTHORIZED > COMPLETED': [card('3ds_required'), card('success')],
  'PENDING_3DS > DECLINED': [card('3ds_failed')],
  'PENDING_3DS > FAILED': [card('3ds_required'), card('technical_failure')],
  'PENDING_3DS > CANCELED': [card('3ds_required'), canceled],
  'PENDING_3DS > EXPIRED': [card('3ds_required'), waited],
  'PENDING_REDIRECT > AUTHORIZED > COMPLETED': [wallet('success')],
  'PENDING_REDIRECT > PENDING_3DS': [wallet('3ds_required')],
  'PENDING_REDIRECT > DECLINED': [wallet('soft_decline')],
  'PENDING_REDIRECT > FAILED': [wallet('technical_failure')],
  DECLINED: [card('hard_decline')],
  FAILED: [card('technical_failure')],
  CANCELED: [canceled],
  'PARTIAL > RECEIVED > COMPLETED': [deposit({ share: 0.5 }), deposit()],
  'PARTIAL > FAILED': [deposit({ share: 0.5 }), deposit({ outcome: 'technical_failure' })],
  'PARTIAL > CANCELED': [deposit({ share: 0.5 }), canceled],
  'PARTIAL > EXPIRED': [deposit({ share: 0.5 }), waited],
  'RECEIVED > COMPLETED': [deposit()],
  'RECEIVED > FAILED': [deposit({ confirmations: 0 }), paid({ outcome: 'technical_failure' })],
}

interface Way {
  readonly steps: readonly Step[]
  readonly asked?: object
}

const after = (name: string, first: readonly Step[]): Readonly<Record<string, Way>> =>
  Object.fromEntries(
    Object.entries(OPEN).map(([end, steps]) => [`${name} > ${end}`, { steps: [...first, ...steps] }]),
  )

const manual = { card: { tokenizedInstrument: 'tok_good', capture: 'manual' } }
const bridged = { crypto: { mode: 'AUTOSWAP' } }

/** How each move comes about, by the statuses that the payment then had. */
const WAYS: Readonly<Record<string, Way>> = {
  ...after('PENDING', []),
  ...after('PENDING > FAILED', [card('technical_failure')]),
  ...after('PENDING > DECLINED', [card('soft_decline')]),
  'PENDING > EXPIRED': { steps: [waited] },
  'PENDING > AUTHORIZED > CANCELED': { steps: [done('void')], asked: manual },
  'PENDING > AUTHORIZED > FAILED': { steps: [paid({ outcome: 'technical_failure' })], asked: manual },
  'PENDING > RECEIVED > BRIDGING > COMPLETED': { steps: [deposit(), waited], asked: bridged },
  'PENDING > RECEIVED > BRIDGING > FAILED': {
    steps: [deposit(), paid({ outcome: 'technical_failure' })],
    asked: bridged,
  },
  'PENDING > AUTHORIZED > COMPLETED > PARTIALLY_REFUNDED > PARTIALLY_REFUNDED > REFUNDED': {
    steps: [
      card('success'),
      done('refund', { amountInCents: 1 }),
      done('refund', { amountInCents: 1 }),
      done('refund'),
    ],
  },
  'PENDING > AUTHORIZED > COMPLETED > REFUNDED': { steps: [card('success'), done('refund')] },
}

const MOVE_NAMES = Object.entries(PAYMENT_MOVES).flatMap(([from, ends]) =>
  ends.map((to) => `${from} > ${to}`),
)

describe('the status of a payment', () => {
  it.each(Object.entries(WAYS))('goes %s', async (way, { steps, asked = {} }) => {
    const service = await startService()
    const { id } = await createPayment(service, asked)
    for (const step of steps) await step(service, id)
    const { status, statusTimeline } = await service.data(`GET /v3/payments/${id}`)
    const statuses = statusTimeline.map((entry: Json) => entry.status)
    expect(statuses.join(' > ')).toBe(way)
    expect(status).toBe(statuses.at(-1))
  })

  it('makes no other moves, and each of these', () => {
    const made = Object.keys(WAYS).flatMap((way) => {
      const statuses = way.split(' > ')
      return statuses.slice(1).map((to, i) => `${statuses[i]} > ${to}`)
    })
    expect([...new Set(made)].sort()).toEqual(MOVE_NAMES.sort())
  })
})
