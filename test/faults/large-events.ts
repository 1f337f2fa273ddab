import { customerStory, type SentEvent } from '../process/load.js'

const BODY_BYTES = 900_000

/** Of as many customers: together a little more than the write-ahead log takes before it moves into the database. */
export const LARGE_EVENTS: readonly SentEvent[] = Array.from({ length: 20 }, (_, n) => largeEvent(1000 + n))

function largeEvent(n: number): SentEvent {
  const [{ id, body }] = customerStory(n).events as [SentEvent]
  return { id, body: JSON.stringify({ ...JSON.parse(body), padding: 'x'.repeat(BODY_BYTES) }) }
}
