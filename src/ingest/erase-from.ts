import type { Transaction } from 'kysely'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import type { ErasedPeople } from '../provider/known-people.js'
import type { Database } from '../store/schema.js'
import { loadNamelessSeqs } from '../store/stored-bodies.js'
import { reopenErasures } from '../store/unfinished-erasures.js'
import { beginErasure } from './begin-erasure.js'
import type { FoldedBatch } from './fold-batch.js'
import { scrubStored } from './scrub-stored.js'

/** What is new in the batch, stored by now. */
interface Written {
  readonly folded: FoldedBatch
  readonly events: readonly NormalizedEvent[]
  readonly people: ErasedPeople
  readonly now: number
}

/**
 * Takes out of what is stored already what new events tell to be of somebody erased: those whom they erase, and events
 * that named nobody, now that their source is known to be of somebody who is.
 */
export async function eraseFrom(
  trx: Transaction<Database>,
  environment: Environment,
  { folded, events, people, now }: Written,
): Promise<void> {
  for (const event of events) {
    if (event.subject === 'manual' && event.type === 'manual.erased') {
      await beginErasure(trx, environment, event, people, now)
    }
  }
  const theirs = folded.changes.filter(({ after }) => {
    const customerId = after?.customerId ?? null
    return customerId !== null && people.isErased(customerId)
  })
  const nameless = await loadNamelessSeqs(
    trx,
    environment,
    theirs.map(({ key }) => key),
  )
  if ((await scrubStored(trx, environment, nameless, people, now)) === 0) return
  await reopenErasures(
    trx,
    theirs.flatMap(({ after }) => after?.customerId ?? []).map((customerId) => ({ environment, customerId })),
  )
}
