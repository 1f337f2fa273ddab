import { expect } from 'vitest'
import { API_KEY, type RunningDaemon } from './running-daemon.js'

export interface StreamedChange {
  readonly cursor: string
  readonly customerId: string
}

/** A client of GET /changes/stream. */
export interface StreamClient {
  /** Every change so far. */
  readonly changes: readonly StreamedChange[]
  /** How many changes had come before each comment. */
  readonly comments: readonly number[]
  readonly head: Response
  /** What the next connection sends as `Last-Event-ID`. */
  readonly lastEventId: () => string
  readonly leave: () => void
  /** Resolves once the daemon has ended the stream in order, or the client has left. */
  readonly ended: Promise<void>
}

export async function openStream(
  { url }: Pick<RunningDaemon, 'url'>,
  query = '',
  headers: Readonly<Record<string, string>> = {},
): Promise<StreamClient> {
  const leaving = new AbortController()
  const head = await fetch(`${url}/changes/stream${query}`, {
    headers: { Authorization: `Bearer ${API_KEY}`, ...headers },
    signal: leaving.signal,
  })
  expect(head.status).toBe(200)
  const changes: StreamedChange[] = []
  const comments: number[] = []
  let lastEventId = headers['Last-Event-ID'] ?? ''

  function take(event: string): void {
    if (/^: \d+$/.test(event)) comments.push(changes.length)
    const fields = Object.fromEntries(event.split('\n').map((line) => line.split(/: (.*)/s, 2)))
    lastEventId = fields.id ?? lastEventId
    if (fields.event === undefined) return
    const change = JSON.parse(fields.data)
    expect(fields).toMatchObject({ event: 'change', id: change.cursor })
    changes.push(change)
  }

  async function read(): Promise<void> {
    let text = ''
    const pieces = head.body?.pipeThrough(new TextDecoderStream()) ?? []
    for await (const piece of pieces) {
      if (leaving.signal.aborted) return
      const events = `${text}${piece}`.split('\n\n')
      text = events.pop() ?? ''
      for (const event of events) take(event)
    }
  }

  const ended = read().catch((error: unknown) => {
    if (!leaving.signal.aborted) throw error
  })
  ended.catch(() => {})
  return { changes, comments, head, lastEventId: () => lastEventId, leave: () => leaving.abort(), ended }
}
