import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { LatchkeyError } from '../errors.js'
import type { Erase } from '../people/erase.js'
import type { Environment } from '../provider/event.js'
import { isUsableId } from '../provider/ids.js'
import type { Authenticate } from './authenticate.js'
import { readJson } from './body.js'
import { iso, isoOrNull } from './entitlement-json.js'
import { reasonText } from './manual-act.js'
import { ENVIRONMENT_ONLY, readEnvironment, readQuery } from './query.js'
import type { RawHandler } from './route.js'
import { sendJson } from './send.js'

const eraseBody = z.strictObject({ reason: reasonText.nullish() })

export interface EraseDeps {
  readonly authenticate: Authenticate
  readonly environments: () => readonly Environment[]
  readonly erase: Erase
}

/** DELETE /customers/:customerId: erases a person, once: asked again it answers with the same erasure. */
export function eraseCustomer(deps: EraseDeps): RawHandler<'customerId'> {
  return async (req, res, { customerId }) => {
    const { actor, environment } = authorize(req, deps)
    const { reason = null } = await readJson(req, eraseBody)
    if (!isUsableId(customerId)) {
      const issues = [{ path: 'customerId', message: 'is not an id' }]
      throw new LatchkeyError('invalid_request', 'The path is not valid.', { issues })
    }
    const erased = erasureJson(await deps.erase({ environment, customerId, actor, reason }))
    sendJson(res, 200, erased, { 'Cache-Control': 'no-store' })
  }
}

function authorize(req: IncomingMessage, { authenticate, environments }: EraseDeps) {
  const key = authenticate(req, 'admin')
  return {
    actor: key.name,
    environment: readEnvironment(readQuery(req, ENVIRONMENT_ONLY), environments(), key),
  }
}

/** An erasure, as it goes over the wire. */
export function erasureJson(erasure: Awaited<ReturnType<Erase>>) {
  const { customerId, environment, eventId, erasedAt, wasKnown, finishedAt } = erasure
  return {
    customerId,
    environment,
    eventId,
    erasedAt: iso(erasedAt),
    wasKnown,
    finishedAt: isoOrNull(finishedAt),
  }
}

export type ErasureJson = Readonly<ReturnType<typeof erasureJson>>
