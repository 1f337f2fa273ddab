/* The change log as the daemon streams it: without a hole or a double, however often the connection breaks. */

import type { components } from '../../openapi.js'
import { type Api, isUnavailable, LatchkeyError, sleep, unexpected } from './request.js'

export type Change = components['schemas']['Change']

/** The daemon sends something at least every 15 seconds; without it for this long, the connection counts as cut. */
export const SILENCE_MS = 20_000

const FIRST_WAIT_MS = 1_000
const LONGEST_WAIT_MS = 15_000

export type StreamEvent =
  /** A request is about to be sent; `cut` ends its connection. */
  | { readonly kind: 'opening'; readonly cut: () => void }
  /** The stream has sent everything up to here. */
  | { readonly kind: 'place'; readonly cursor: string }
  | { readonly kind: 'change'; readonly change: Change }
  /** It has sent everything that was stored up to so many milliseconds after the request arrived. */
  | { readonly kind: 'complete'; readonly afterMs: number }
  | { readonly kind: 'cut' }

/**
 * Ends when the signal aborts. The next event is taken once the last has been worked on, and only then is it behind us.
 * @param after a cursor; null: from now on
 * @throws LatchkeyError `cursor_reset`: the change log has no such cursor; and what an unusable key is answered
 */
export async function* follow(
  api: Api,
  after: string | null,
  signal: AbortSignal,
): AsyncGenerator<StreamEvent, void> {
  let place = after
  for (let failures = 0; !signal.aborted; failures += 1) {
    const connection = new AbortController()
    const cut = (): void => connection.abort()
    signal.addEventListener('abort', cut)
    try {
      yield { kind: 'opening', cut }
      for await (const block of blocksOf(api, place, connection)) {
        const event = eventIn(block)
        if (event === null) continue
        // A stream that can't go on still says its place.
        if (event.kind !== 'place') failures = 0
        if (event.kind === 'change' && !api.isOwn(event.change)) break
        yield event
        if (event.kind === 'place') place = event.cursor
        if (event.kind === 'change') place = event.change.cursor
      }
      yield { kind: 'cut' }
    } finally {
      signal.removeEventListener('abort', cut)
      cut()
    }
    if (!signal.aborted) await sleep(api.backoff(failures, FIRST_WAIT_MS, LONGEST_WAIT_MS), signal)
  }
}

/** What one connection sends. Ends however the connection does; throws only if there is no use in another one. */
async function* blocksOf(api: Api, place: string | null, connection: AbortController) {
  const { signal } = connection
  const headers = { Accept: 'text/event-stream', ...(place !== null && { 'Last-Event-ID': place }) }
  let watchdog = setTimeout(() => connection.abort(), api.timeout)
  try {
    const { body, headers: given, status } = await api.send('/changes/stream', { headers, signal })
    if (body === null || !given.get('content-type')?.startsWith('text/event-stream')) {
      throw unexpected('/changes/stream', status)
    }
    const reader = body.getReader()
    const decoder = new TextDecoder()
    for (let text = ''; ; ) {
      clearTimeout(watchdog)
      watchdog = setTimeout(() => connection.abort(), SILENCE_MS)
      const { done, value } = await reader.read()
      clearTimeout(watchdog)
      if (done) return
      const blocks = (text + decoder.decode(value, { stream: true })).split('\n\n')
      text = blocks.pop() ?? ''
      yield* blocks
    }
  } catch (error) {
    if (error instanceof LatchkeyError && !isUnavailable(error)) throw error
  } finally {
    clearTimeout(watchdog)
  }
}

function eventIn(block: string): StreamEvent | null {
  const complete = /^: (\d+)$/.exec(block)
  if (complete !== null) return { kind: 'complete', afterMs: Number(complete[1]) }
  // Not by a pattern: its lines also end at U+2028 and U+2029, which an id may contain.
  const lines = block.split('\n')
  const fieldOf = (name: string) => lines.find((line) => line.startsWith(name))?.slice(name.length)
  const data = fieldOf('data: ')
  if (data !== undefined) return { kind: 'change', change: JSON.parse(data) as Change }
  const cursor = fieldOf('id: ')
  return cursor === undefined ? null : { kind: 'place', cursor }
}
