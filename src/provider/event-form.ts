import { z } from 'zod'
import { isUsableId } from './ids.js'

/** The parts of an event in the one vocabulary, for reading it where somebody else may have written it. */

export const usableId = z.string().refine(isUsableId)
export const detail = z.string().nullable()

/** What every event tells, but for what each kind restricts further. */
export const eventFacts = {
  createdAt: z.int(),
  apiVersion: detail,
  customerId: usableId.nullable(),
  productId: usableId.nullable(),
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
}
