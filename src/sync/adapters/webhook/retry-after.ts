/** An answer that asks for more is taken for a mistake. */
const MAX_WAIT_MS = 86_400_000

/**
 * Until when a `Retry-After` asks to wait, in epoch milliseconds; null where it says nothing that can be read,
 * or that has passed. It is seconds, or a date (RFC 9110, 10.2.3).
 */
export function retryAfter(header: string | null, now: number): number | null {
  if (header === null) return null
  const asked = /^\d{1,10}$/.test(header) ? now + Number(header) * 1000 : Date.parse(header)
  return asked > now ? Math.min(asked, now + MAX_WAIT_MS) : null
}
