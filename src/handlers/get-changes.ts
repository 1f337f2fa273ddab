import { LatchkeyError } from '../errors.js'
import { changeJson } from './change-json.js'
import { type CustomerDeps, readQuestion } from './customer-questions.js'
import { readLimit } from './page.js'
import { readParameter } from './query.js'
import type { RawHandler } from './raw-handler.js'
import { requireMethod } from './route.js'
import { sendJson } from './send.js'

const PARAMETERS = ['environment', 'limit', 'cursor'] as const

/**
 * GET /changes: the change log, oldest first, after `cursor` or from its beginning. A cursor is one that any change or
 * answer about access bears, so that who has read up to the end goes on from the last one.
 */
export function getChanges(deps: CustomerDeps): RawHandler {
  const { readChangePage } = deps.customers
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const { environment, query } = readQuestion(req, deps, PARAMETERS)
    const limit = readLimit(query)
    const after = readParameter(query, 'cursor')
    const found = await readChangePage({ environment, after, limit: limit + 1 })
    if (found === null) {
      throw new LatchkeyError('cursor_reset', 'The cursor is not one of this change log: begin anew.')
    }
    const shown = found.slice(0, limit)
    const hasMore = found.length > limit
    const nextCursor = hasMore ? (shown.at(-1)?.cursor ?? null) : null
    const body = { items: shown.map(changeJson), pagination: { nextCursor, hasMore } }
    sendJson(res, 200, body, { 'Cache-Control': 'no-store' })
  }
}
