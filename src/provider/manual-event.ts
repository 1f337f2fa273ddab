import { z } from 'zod'
import type { ManualEvent } from './event.js'
import { MANUAL_EVENT_TYPES } from './event-types.js'
import { isUsableId } from './ids.js'

const id = z.string().refine(isUsableId)
const detail = z.string().nullable()

/** What was done by hand as it is stored, all of it: nobody else ever wrote one, so that nothing is left open. */
const manualEvent = z.strictObject({
  // Any other could take the place of a provider's event that is still to come.
  id: id.startsWith('man_'),
  generation: z.null(),
  apiVersion: z.null(),
  subject: z.literal('manual'),
  type: z.enum(MANUAL_EVENT_TYPES),
  customerId: id,
  productId: id.nullable(),
  until: z.int().nullable(),
  customer: z.strictObject({
    email: detail,
    name: detail,
    communityId: detail,
    communityUsername: detail,
    messengerId: detail,
    messengerUsername: detail,
  }),
  externalRef: detail,
  metadata: z.record(z.string(), z.string()),
  actor: z.string(),
  reason: detail,
  createdAt: z.int(),
})

/** The event by hand that these bytes hold, as an export has it; null where they hold none. */
export function parseManualEvent(body: Uint8Array): ManualEvent | null {
  try {
    return manualEvent.parse(JSON.parse(Buffer.from(body).toString('utf8')))
  } catch {
    return null
  }
}
