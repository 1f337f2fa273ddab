/* Saves the lines of an export. */

import { useEffect, useRef, useState } from 'preact/hooks'
import { answerOf, api, type Problem } from '../../api.js'
import { useSession } from '../../session.js'
import { Dialog } from '../../shared/confirm.js'
import { ProblemBox } from '../../shared/show.js'
import { saveFile } from '../../shared/text.js'
import { problemOf } from '../../shared/use-query.js'
import type { ReplayFilter } from './replay.js'

/** The page keeps all lines in memory until they are saved. */
const MAX_CHARACTERS = 200_000_000

export function ExportDialog({
  filter,
  onClose,
}: {
  readonly filter: ReplayFilter
  readonly onClose: () => void
}) {
  const { environment } = useSession()
  const [progress, setProgress] = useState<{
    readonly done: number
    readonly total: number
    readonly lines: number
  }>()
  const [result, setResult] = useState<string | Problem | null>(null)
  const aborter = useRef(new AbortController())
  useEffect(() => {
    const { signal } = aborter.current
    save(signal).then(setResult, (error: unknown) => {
      if (!signal.aborted) setResult(problemOf(error))
    })
    return () => aborter.current.abort()
  }, [])

  async function save(signal: AbortSignal): Promise<string> {
    const lines: string[] = []
    let size = 0
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const query = { environment, ...filter, ...(cursor !== undefined && { cursor }) }
      const page = await answerOf(api.GET('/exports', { params: { query }, signal }))
      for (const line of page.lines) {
        lines.push(`${line}\n`)
        size += line.length
      }
      setProgress({ done: page.progress.reached, total: page.progress.total, lines: lines.length })
      if (size > MAX_CHARACTERS)
        return 'This is too much for a browser. Choose less, or run `latchkey events export` on the server.'
      cursor = page.pagination.nextCursor
    }
    if (lines.length === 0) return 'No event matches: there is nothing to save.'
    saveFile(`latchkey-${environment}-events.jsonl`, lines.join(''), 'application/x-ndjson')
    return `Saved ${lines.length} ${lines.length === 1 ? 'line' : 'lines'}. They hold personal data: keep them safe.`
  }

  return (
    <Dialog title="Export events" onClose={onClose}>
      {progress !== undefined && result === null && (
        <>
          <progress max={progress.total} value={progress.done} aria-label="Events looked at" />
          <p>{progress.lines} lines so far.</p>
        </>
      )}
      <div aria-live="polite">
        {typeof result === 'string' && <p>{result}</p>}
        {result !== null && typeof result !== 'string' && <ProblemBox problem={result} />}
      </div>
      <footer>
        <button type="button" class="primary" onClick={onClose}>
          {result === null ? 'Stop' : 'Close'}
        </button>
      </footer>
    </Dialog>
  )
}
