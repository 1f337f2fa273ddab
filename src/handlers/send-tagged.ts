import { hash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { JSON_TYPE, send, sendJson, sendWhole } from './send.js'

const REVALIDATE = 'private, no-cache'

type Headers = Readonly<Record<string, string>>

/**
 * Sends an answer that a caller may keep, if it asks each time whether it still holds: 304 when it does.
 * `state` is the part of `body` that counts for that.
 */
export function sendTagged(res: ServerResponse, body: unknown, state: unknown = body): void {
  unlessHeld(res, tagOf(JSON.stringify(state)), (headers) => sendJson(res, 200, body, headers))
}

/** The same with JSON that is written already, and its tag. */
export function sendTaggedJson(res: ServerResponse, tag: string, text: string): void {
  if (isHeld(res.req.headers['if-none-match'], tag)) {
    sendHeld(res, tag)
    return
  }
  // All headers at once, in one literal: most answers are sent from here.
  const headers = {
    'Content-Type': JSON_TYPE['Content-Type'],
    ETag: tag,
    'Cache-Control': REVALIDATE,
    'Content-Length': Buffer.byteLength(text),
    'X-Content-Type-Options': 'nosniff',
  }
  sendWhole(res, 200, headers, text)
}

/** The ETag of an answer whose state this is. */
export function tagOf(state: string): string {
  return `"${hash('sha256', state, 'base64url')}"`
}

/** The same with bytes, of which `sha256` tells whether they are still those. */
export function sendTaggedBytes(res: ServerResponse, sha256: string, bytes: Buffer, headers: Headers): void {
  unlessHeld(res, `"${sha256}"`, (tagHeaders) => send(res, 200, { ...headers, ...tagHeaders }, bytes))
}

function unlessHeld(res: ServerResponse, tag: string, sendWhole: (headers: Headers) => void): void {
  if (isHeld(res.req.headers['if-none-match'], tag)) sendHeld(res, tag)
  else sendWhole({ ETag: tag, 'Cache-Control': REVALIDATE })
}

function sendHeld(res: ServerResponse, tag: string): void {
  res.writeHead(304, { ETag: tag, 'Cache-Control': REVALIDATE })
  res.end()
}

/** A proxy that compresses marks a tag as weak (`W/`); for this question the two are the same. */
function isHeld(ifNoneMatch: string | undefined, tag: string): boolean {
  if (ifNoneMatch === undefined) return false
  const held = ifNoneMatch.split(',').map((candidate) => candidate.trim().replace(/^W\//, ''))
  return held.includes(tag) || held.includes('*')
}
