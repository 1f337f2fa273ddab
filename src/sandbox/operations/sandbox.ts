/* What the documents leave to clocks and networks. */

import { z } from 'zod'
import { formatInstant } from '../../provider/instant.js'
import { INSTANT, TEXT } from '../../provider/requests.js'
import { refuse, refuseField } from '../codes.js'
import { DAY_MS, DELIVERY_STATUSES, type Delivery, DURATION_MS, FAULTS } from '../model.js'
import { accessAt } from '../truth.js'
import { shown } from '../views-v3.js'
import type { World } from '../world.js'
import { CURSOR_QUERY, cursorPage } from './lists.js'
import { type Call, found, operation } from './operation.js'

/** Ten years: more is a slip of the hand. */
const FURTHEST_MS = 3_660 * DAY_MS

const BY_OR_TO = { path: ['by'], message: 'send by or to' }
const ADVANCE = z
  .object({ by: DURATION_MS.optional(), to: INSTANT.optional() })
  .refine(({ by, to }) => (by === undefined) !== (to === undefined), BY_OR_TO)

const clock = ({ world }: Call): object => ({ now: formatInstant(world.now) })

async function advance({ world: { now }, input, advance }: Call<typeof ADVANCE>): Promise<void> {
  const to = input.to ?? now + (input.by ?? 0)
  if (to < now || to > now + FURTHEST_MS) {
    refuseField('to', `must be between ${formatInstant(now)} and ten years later`)
  }
  await advance(to)
}

function setFaults({ world, input }: Call<typeof FAULTS>): void {
  const { answers, ...fault } = input
  if (fault.endpoint !== null) found(world, 'endpoint', fault.endpoint, 'WEBHOOK_ENDPOINT_NOT_FOUND')
  const others = world.settings.faults.filter(({ endpoint }) => endpoint !== fault.endpoint)
  world.change({ faults: [...others, fault], ...(answers && { answers }) })
}

const endFaults = ({ world }: Call): void => world.change({ faults: [], answers: [] })

function showFaults(_: unknown, { settings: { faults, answers } }: World): object {
  return { items: faults.map((fault) => ({ ...fault, delay: `${fault.delay / 1000}s` })), answers }
}

const DELIVERIES = CURSOR_QUERY.extend({
  endpoint: TEXT.optional(),
  status: z.enum(DELIVERY_STATUSES).optional(),
})

const deliveryNamed = ({ world, id }: Call) =>
  world.find('delivery', id) ?? refuse('NOT_FOUND', `There is no delivery ${id}.`)

const send = (call: Call) => call.courier.sendNow(deliveryNamed(call))

const deliveryView = (delivery: Delivery): object => ({
  ...shown(delivery, 'id eventId type status createdAt dueAt'),
  endpoint: delivery.endpointId,
  attempts: delivery.attempts.map(({ at, ...result }) => ({ at: formatInstant(at), ...result })),
  event: JSON.parse(delivery.event),
})

export const SANDBOX_OPERATIONS = [
  operation('GET /sandbox/clock', {}, clock),
  operation('POST /sandbox/clock/advance', { input: ADVANCE, before: advance }, clock),
  operation('GET /sandbox/faults', {}, () => {}, showFaults),
  operation('POST /sandbox/faults', { input: FAULTS }, setFaults, showFaults),
  operation('DELETE /sandbox/faults', {}, endFaults, showFaults),
  operation('GET /sandbox/deliveries', { input: DELIVERIES }, ({ world, input }) => {
    const where = { endpointId: input.endpoint, status: input.status }
    return cursorPage(world, input, { kind: 'delivery', view: deliveryView, where })
  }),
  operation('POST /sandbox/deliveries/:id/send', { before: send }, deliveryNamed, deliveryView),
  operation('GET /sandbox/truth', { input: z.object({ at: INSTANT.optional() }) }, ({ world, input }) => {
    const { at = world.now } = input
    if (at > world.now)
      refuseField('at', `must not be after the sandbox's clock, ${formatInstant(world.now)}`)
    return { at: formatInstant(at), access: accessAt(world, at) }
  }),
]
