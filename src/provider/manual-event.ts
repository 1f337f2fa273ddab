import { z } from 'zod'
import type { ManualEvent } from './event.js'
import { detail, eventFacts, usableId } from './event-form.js'
import { MANUAL_EVENT_TYPES } from './event-types.js'

/** With what the ids of all that is done by hand begin. */
export const MANUAL_ID_PREFIX = 'man_'

/** What was done by hand as it is stored, all of it: nobody else ever wrote one, so that nothing is left open. */
const manualEvent = z.strictObject({
  ...eventFacts,
  // Any other could take the place of a provider's event that is still to come.
  id: usableId.startsWith(MANUAL_ID_PREFIX),
  generation: z.null(),
  apiVersion: z.null(),
  subject: z.literal('manual'),
  type: z.enum(MANUAL_EVENT_TYPES),
  customerId: usableId,
  until: z.int().nullable(),
  actor: z.string(),
  reason: detail,
})

/** The event by hand that these bytes hold, as an export has it; null where they hold none. */
export function parseManualEvent(body: Uint8Array): ManualEvent | null {
  try {
    const told: unknown = JSON.parse(Buffer.from(body).toString('utf8'))
    // Not what the schema makes of it, whose order is another: events are compared as text.
    return manualEvent.safeParse(told).success ? (told as ManualEvent) : null
  } catch {
    return null
  }
}
