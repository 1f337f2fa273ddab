import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { sendJson } from './send.js'

/**
 * Sends an answer that a caller may keep, if it asks each time whether it still holds: 304 when it does.
 * `state` is the part of `body` that counts for that.
 */
export function sendTagged(res: ServerResponse, body: unknown, state: unknown = body): void {
  const tag = `"${createHash('sha256').update(JSON.stringify(state)).digest('base64url')}"`
  const headers = { ETag: tag, 'Cache-Control': 'private, no-cache' }
  if (!isHeld(res.req.headers['if-none-match'], tag)) {
    sendJson(res, 200, body, headers)
    return
  }
  res.writeHead(304, headers)
  res.end()
}

/** A proxy that compresses marks a tag as weak (`W/`); for this question the two are the same. */
function isHeld(ifNoneMatch: string | undefined, tag: string): boolean {
  if (ifNoneMatch === undefined) return false
  const held = ifNoneMatch.split(',').map((candidate) => candidate.trim().replace(/^W\//, ''))
  return held.includes(tag) || held.includes('*')
}
