import type { Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import type { ErasedPeople } from '../provider/known-people.js'
import { type Withheld, withholdErased } from '../provider/withhold-erased.js'
import { forgetMentions } from '../store/forget-mentions.js'
import type { Database } from '../store/schema.js'
import {
  loadConflictBodies,
  loadStoredBodies,
  type RewrittenBody,
  rewriteBody,
  rewriteConflict,
  type StoredBody,
} from '../store/stored-bodies.js'
import { bodyOfAct, isSame, withoutErasedIn } from './hide-erased.js'

/** A body has up to a mebibyte, and only so many are in memory at a time. */
const BODIES_AT_ONCE = 16

/** Of a body that was altered in the database nothing is: a part of it would pass for a part of what came. */
const NOTHING_LEFT: Withheld = { why: 'erased', body: null }

/**
 * Takes out of stored events what they tell of people who are erased. What is about others, and all ids, stays.
 * @returns how many bodies were written anew
 */
export async function scrubStored(
  trx: Transaction<Database>,
  environment: Environment,
  seqs: readonly number[],
  people: ErasedPeople,
  now: number,
): Promise<number> {
  let count = 0
  for (let i = 0; i < seqs.length; i += BODIES_AT_ONCE) {
    const stored = await loadStoredBodies(trx, seqs.slice(i, i + BODIES_AT_ONCE))
    const own = stored.filter((one) => one.environment === environment)
    for (const one of own) {
      const rewritten = withoutErased(one, people)
      if (rewritten === null) continue
      await rewriteBody(trx, one.seq, rewritten, now)
      if (one.event !== null && rewritten.event !== null && !isOf(one, people)) {
        await forgetMentions(trx, environment, one.event, rewritten.event)
      }
      count += 1
    }
    const owners = new Map(own.map(({ eventId, customerId }) => [eventId, customerId]))
    for (const other of await loadConflictBodies(trx, environment, [...owners.keys()])) {
      const withheld = withholdErased(other.body, owners.get(other.event_id) ?? null, people)
      if (withheld === null) continue
      await rewriteConflict(trx, other, other.isAltered ? NOTHING_LEFT : withheld, now)
      count += 1
    }
  }
  return count
}

/** Null: nothing of it is about them, or nothing is left to be taken out. */
function withoutErased(stored: StoredBody, people: ErasedPeople): RewrittenBody | null {
  const { event, customerId, isByHand } = stored
  const isTheirs = isOf(stored, people)
  const withheld = withheldFrom(stored, people)
  const isAllTheirs = isTheirs || withheld?.why === 'erased'
  const left = event && withoutErasedIn(event, customerId, isAllTheirs, people)
  if (withheld === null && isSame(left, event)) return null
  // What was done by hand is its event and nothing else.
  if (isByHand) return { body: left && bodyOfAct(left), why: 'redacted', event: left }
  return { body: withheld?.body ?? null, why: withheld?.why ?? null, event: left }
}

/** What was done by hand is not parted: it is written anew from its event. */
function withheldFrom(stored: StoredBody, people: ErasedPeople): Withheld | null {
  const { body, customerId, isByHand, isAltered } = stored
  if (body === null || isByHand) return null
  const withheld = withholdErased(body, customerId, people)
  return isAltered && (withheld !== null || isOf(stored, people)) ? NOTHING_LEFT : withheld
}

function isOf({ customerId }: StoredBody, { isErased }: ErasedPeople): boolean {
  return customerId !== null && isErased(customerId)
}
