import type { Environment } from '../provider/event.js'
import { isUsableId } from '../provider/ids.js'
import { type CustomerDeps, readQuestion } from './customer-questions.js'
import { accessJson } from './entitlement-json.js'
import { type Page, pageJson, readPage, withOneMore } from './page.js'
import { invalidParameter, readInstant, readParameter } from './query.js'
import type { RawHandler } from './raw-handler.js'
import { requireMethod } from './route.js'
import { sendTagged } from './send-tagged.js'

const PARAMETERS = ['environment', 'externalRef', 'at', 'limit', 'cursor'] as const

/** GET /entitlements?externalRef=: what the customers may use whom the merchant's own reference leads to. */
export function findEntitlements(deps: CustomerDeps): RawHandler {
  const { findByReference } = deps.customers
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const { environment, query } = readQuestion(req, deps, PARAMETERS)
    const reference = readReference(query)
    const page = readPage(query)
    const at = readInstant(query, 'at')
    const found = await findByReference({ environment, reference, page: withOneMore(page) })
    const body = await answerPage(deps, { environment, found, page, at })
    // As with one customer: neither of the two says anything about what these customers may use.
    const items = body.items.map(({ asOf: _asOf, cursor: _cursor, ...state }) => state)
    sendTagged(res, body, { ...body, items })
  }
}

/** The page's customers, each with everything they may use. `found`: as many as the page holds, and one more. */
export async function answerPage(
  { customers }: CustomerDeps,
  {
    environment,
    found,
    page,
    at,
  }: {
    readonly environment: Environment
    readonly found: readonly string[]
    readonly page: Page
    readonly at: number | null
  },
) {
  const answers = await customers.readAccesses({ environment, customerIds: found, at })
  return pageJson(answers, page, ({ customerId }) => customerId, accessJson)
}

function readReference(query: URLSearchParams): string {
  const reference = readParameter(query, 'externalRef')
  if (reference === null) throw invalidParameter('externalRef', 'is required')
  if (!isUsableId(reference)) {
    throw invalidParameter('externalRef', 'is not a text of 1 to 255 characters without control characters')
  }
  return reference
}
