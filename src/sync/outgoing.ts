/** A call was not made, or its answer not awaited, because this process may make no more calls. */
export class HeldBackError extends Error {
  constructor() {
    super('This process may make no more calls.')
    this.name = 'HeldBackError'
  }
}

export type Outgoing = ReturnType<typeof createOutgoing>

/**
 * The last check of every call that only one process may make at a time. A library may keep a call in a queue for
 * seconds: by then another instance may make the calls, or sync may be paused.
 * @param mayLeave asked right before each call leaves
 */
export function createOutgoing(mayLeave: () => boolean) {
  const underWay = new Set<AbortController>()
  return {
    /**
     * Makes a call if it may still leave.
     * @param signal ends the call too
     * @throws {HeldBackError} it may not, or `end` was called before its answer came
     */
    async send<Answer>(
      call: (signal: AbortSignal) => Promise<Answer>,
      signal?: Pick<AbortSignal, 'aborted' | 'reason' | 'addEventListener' | 'removeEventListener'> | null,
    ): Promise<Answer> {
      if (!mayLeave()) throw new HeldBackError()
      // By hand: on Node 22, each `AbortSignal.any` keeps two kilobytes while one of its signals lives.
      const attempt = new AbortController()
      const giveUp = () => attempt.abort(signal?.reason)
      if (signal?.aborted) giveUp()
      signal?.addEventListener('abort', giveUp)
      underWay.add(attempt)
      try {
        return await call(attempt.signal)
      } catch (error) {
        throw attempt.signal.reason instanceof HeldBackError ? attempt.signal.reason : error
      } finally {
        underWay.delete(attempt)
        signal?.removeEventListener('abort', giveUp)
      }
    },
    /** Ends the calls under way: one that still waits for a connection would leave too late. */
    end(): void {
      for (const attempt of underWay) attempt.abort(new HeldBackError())
    },
  }
}
