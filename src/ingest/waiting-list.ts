/** Bounds how long one transaction occupies the writer, and how many requests a crash delays. */
const MAX_BATCH = 256

/** Of bodies, since reading them takes several times their size in memory; every batch has at least one. */
const MAX_BATCH_BYTES = 4 * 1024 * 1024

/** Of all batches under way in one process: PostgreSQL has room for some thousand locks of all processes together. */
const MAX_LOCKS = 2_000

/** More than can arrive in the seconds before they would be refused as late. */
const MAX_WAITING = 4_096

/** Of bodies: the queue must fit into a small server's memory. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024

/** What decides whether a delivery goes into the next batch. */
export interface Waiting {
  /** Of its body. */
  readonly bytes: number
  /** The names of what it locks: none, where batches are committed in order. */
  readonly locks: readonly string[]
}

/**
 * Deliveries in the order in which they came, and what goes into the next batch: none that would wait for a batch under
 * way, nor for one that is left.
 */
export function createWaitingList<One extends Waiting>() {
  let waiting: One[] = []
  let waitingBytes = 0
  /** What the batches under way lock. */
  const locked = new Set<string>()

  function fits(one: One, count: number, bytes: number): boolean {
    return count < MAX_BATCH && (count === 0 || bytes + one.bytes <= MAX_BATCH_BYTES)
  }

  /** One that needs more than all may have is alone. */
  function hasRoom(one: One, locks: number, count: number): boolean {
    return locks + one.locks.length <= MAX_LOCKS || (count === 0 && locked.size === 0)
  }

  return {
    get length() {
      return waiting.length
    },
    /** Of the bodies of all. */
    get bytes() {
      return waitingBytes
    },
    hasRoomFor: (bytes: number) => waiting.length < MAX_WAITING && waitingBytes + bytes <= MAX_WAITING_BYTES,
    add(one: One): void {
      waiting.push(one)
      waitingBytes += one.bytes
    },
    /** The next batch, under way from now on: the first that are free, as many as one transaction may hold. */
    take(): readonly One[] {
      const taken: One[] = []
      const left: One[] = []
      const awaited = new Set<string>()
      let bytes = 0
      let locks = locked.size
      for (const [i, one] of waiting.entries()) {
        if (one.locks.some((name) => locked.has(name) || awaited.has(name))) {
          left.push(one)
          for (const name of one.locks) awaited.add(name)
        } else if (hasRoom(one, locks, taken.length) && fits(one, taken.length, bytes)) {
          taken.push(one)
          bytes += one.bytes
          locks += one.locks.length
        } else {
          left.push(...waiting.slice(i))
          break
        }
      }
      for (const { locks } of taken) for (const name of locks) locked.add(name)
      waitingBytes -= bytes
      waiting = left
      return taken
    },
    /** A batch is not under way any more. */
    end(batch: readonly One[]): void {
      for (const { locks } of batch) for (const name of locks) locked.delete(name)
    },
  }
}
