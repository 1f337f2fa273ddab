/* Saves the lines of an export. */

import { useState } from 'preact/hooks'
import { type AnswerOf, get } from '../../api.js'
import { useSession } from '../../session.js'
import { Ask } from '../../shared/ask.js'
import type { Values } from '../../shared/fields.js'
import { counted } from '../../shared/plain.js'
import { Progress } from '../../shared/show.js'
import { saveFile } from '../../shared/text.js'

/** The page keeps all lines in memory until they are saved. */
const MAX_CHARACTERS = 200_000_000
const TOO_MUCH = 'This is too much for a browser. Choose less, or run `latchkey events export` on the server.'

/** @param filter as the API takes it */
export function Export({ filter, isDisabled }: { readonly filter: Values; readonly isDisabled: boolean }) {
  const { environment } = useSession()
  const [progress, setProgress] = useState({ reached: 0, total: 0 })
  const [lines, setLines] = useState<readonly string[]>([])

  async function read(_: unknown, signal: AbortSignal): Promise<string> {
    const found: string[] = []
    setLines([])
    for (let cursor: string | null = null, size = 0; ; ) {
      const page: AnswerOf<'/exports'> = await get('/exports', { environment, ...filter, cursor }, signal)
      found.push(...page.lines)
      setProgress(page.progress)
      size += page.lines.reduce((sum, line) => sum + line.length, 0)
      if (size > MAX_CHARACTERS) return TOO_MUCH
      cursor = page.pagination.nextCursor
      if (cursor === null) break
    }
    setLines(found)
    if (found.length === 0) return 'No event matches: there is nothing to save.'
    return `${counted(found.length, 'line')}. They hold personal data: keep them safe.`
  }

  return (
    <Ask
      label="Export these…"
      act="Save"
      title="Export events"
      isDisabled={isDisabled}
      preview={read}
      isReady={() => lines.length > 0}
      onConfirm={async () => {
        saveFile(`latchkey-${environment}-events.jsonl`, lines.join(''), 'application/x-ndjson')
        return `Saved ${counted(lines.length, 'line')}.`
      }}
    >
      <Progress name="Events looked at" what="events looked at" {...progress} />
    </Ask>
  )
}
