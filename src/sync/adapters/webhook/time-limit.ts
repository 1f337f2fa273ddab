/**
 * Does work that is called off after so many milliseconds, by a `TimeoutError`, or when `signal` is.
 *
 * By hand, since on Node 20 `AbortSignal.any` leaves two kilobytes behind at every call for as long as one of its
 * signals lives.
 */
export async function withTimeLimit<T>(
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limited = new AbortController()
  const callOff = () => limited.abort(signal.reason)
  const timer = setTimeout(() => limited.abort(new DOMException('It took too long.', 'TimeoutError')), ms)
  signal.addEventListener('abort', callOff)
  try {
    signal.throwIfAborted()
    return await work(limited.signal)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', callOff)
  }
}
