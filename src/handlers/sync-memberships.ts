import { z } from 'zod'
import { isUsableId } from '../provider/ids.js'
import type { MembershipKey, MembershipQuery, MembershipState } from '../sync/sync.js'
import { shownEnvironments } from './environment.js'
import { readLimit } from './page.js'
import { invalidParameter, readParameter, readQuery } from './query.js'
import type { RawHandler } from './raw-handler.js'
import { requireMethod } from './route.js'
import { sendJson } from './send.js'
import { membershipJson } from './sync-json.js'
import { NOT_STORED, requireTargets, type SyncDeps, targetProblem } from './sync-questions.js'

const PARAMETERS = ['environment', 'state', 'target', 'customerId', 'limit', 'cursor'] as const

const STATES = {
  settled: true,
  due: true,
  retrying: true,
  waiting: true,
  parked: true,
  unconfirmed: true,
} as const satisfies Record<MembershipState, true>

const place = z.tuple([z.enum(['live', 'sandbox']), z.string(), z.string()])

/** GET /sync/memberships: who should be, and is, a member of which role or group. */
export function getMemberships({ authenticate, environments, sync }: SyncDeps): RawHandler {
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const key = authenticate(req, 'admin')
    const query = readQuery(req, PARAMETERS)
    const shown = shownEnvironments(query, environments(), key)
    await requireTargets(sync)
    const filter = readFilter(query)
    const { items, next } = await sync.memberships({ environments: shown, ...filter })
    if (items.length === 0 && filter.target !== undefined) {
      const problem = await targetProblem(filter.target, shown, sync)
      if (problem !== null) throw invalidParameter('target', problem)
    }
    const pagination = { nextCursor: next === null ? null : cursorAt(next), hasMore: next !== null }
    sendJson(res, 200, { items: items.map(membershipJson), pagination }, NOT_STORED)
  }
}

/** @throws LatchkeyError `invalid_request` */
function readFilter(query: URLSearchParams): Omit<MembershipQuery, 'environments'> {
  const target = readWord(query, 'target')
  const customerId = readWord(query, 'customerId')
  const state = readState(query)
  const after = readPlace(query)
  return {
    limit: readLimit(query),
    ...(target !== null && { target }),
    ...(customerId !== null && { customerId }),
    ...(state !== null && { state }),
    ...(after !== null && { after }),
  }
}

function readState(query: URLSearchParams): MembershipState | null {
  const text = readParameter(query, 'state')
  if (text === null || isState(text)) return text
  throw invalidParameter('state', `is none of ${Object.keys(STATES).join(', ')}`)
}

function isState(text: string): text is MembershipState {
  return Object.hasOwn(STATES, text)
}

function readWord(query: URLSearchParams, name: string): string | null {
  const text = readParameter(query, name)
  if (text === null || isUsableId(text)) return text
  throw invalidParameter(name, 'is not a text of 1 to 255 characters without control characters')
}

function cursorAt({ environment, target, accountId }: MembershipKey): string {
  return Buffer.from(JSON.stringify([environment, target, accountId])).toString('base64url')
}

function readPlace(query: URLSearchParams): MembershipKey | null {
  const cursor = readParameter(query, 'cursor')
  if (cursor === null) return null
  const parsed = place.safeParse(parseJson(Buffer.from(cursor, 'base64url').toString('utf8')))
  if (!parsed.success) throw invalidParameter('cursor', 'is none that was given out')
  const [environment, target, accountId] = parsed.data
  return { environment, target, accountId }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
