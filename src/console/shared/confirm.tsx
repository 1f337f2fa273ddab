/* Asks before something is changed. */

import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Problem } from '../api.js'
import { Answer, ProblemBox } from './show.js'
import { problemOf, useQuery } from './use-query.js'

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}

/** The browser's own dialog: it keeps the focus, and Escape closes it. Shown for as long as it is on the page. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const before = document.activeElement
    dialog.current?.showModal()
    return () => {
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="dialog-title">
      <h2 id="dialog-title">{title}</h2>
      {children}
    </dialog>
  )
}

export interface ConfirmProps {
  /** What will be done, such as `Grant Gold to cus_1`. */
  readonly title: string
  /** The word on the button, such as `Grant`. */
  readonly act: string
  /** It takes something away. */
  readonly isDangerous?: boolean
  /** Whether the API takes a reason. */
  readonly reason: 'required' | 'optional' | 'none'
  /** Names what will change, such as by a dry run; nothing can be confirmed before it is shown. */
  readonly preview?: (signal: AbortSignal) => Promise<ComponentChildren>
  /** What the preview depends on: it is asked for again when this changes. */
  readonly about?: readonly unknown[]
  /** False: a field is not filled in right. */
  readonly isReady?: boolean
  /** Does it. The dialog closes when that went well, and shows the problem if not. */
  readonly onConfirm: (reason: string) => Promise<void>
  readonly onClose: () => void
  /** What it says, and further fields. */
  readonly children?: ComponentChildren
}

export function Confirm(props: ConfirmProps) {
  const { title, act, reason, preview, about = [], isReady = true, onConfirm, onClose } = props
  const [why, setWhy] = useState('')
  const [problem, setProblem] = useState<Problem | null>(null)
  const [isDoing, setDoing] = useState(false)
  const seen = useQuery(async (signal) => ({ shown: await preview?.(signal) }), about)
  const isReasonMissing = reason === 'required' && why.trim() === ''
  const mayConfirm = isReady && !isDoing && !seen.isStale && !isReasonMissing

  async function confirm(event: Event): Promise<void> {
    event.preventDefault()
    if (!mayConfirm) return
    setDoing(true)
    setProblem(null)
    try {
      await onConfirm(why.trim())
      onClose()
    } catch (error) {
      setProblem(problemOf(error))
      setDoing(false)
    }
  }

  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={(event) => void confirm(event)}>
        {props.children}
        {reason !== 'none' && (
          <label class="field">
            <span>Reason{reason === 'optional' && ' (optional)'}</span>
            <input
              value={why}
              required={reason === 'required'}
              maxLength={1000}
              autocomplete="off"
              onInput={({ currentTarget }) => setWhy(currentTarget.value)}
            />
            <small>It is stored with the change.</small>
          </label>
        )}
        {preview !== undefined && (
          <div class="border-l-4 border-link bg-page px-3 py-2">
            <Answer query={seen}>{({ shown }) => shown}</Answer>
          </div>
        )}
        {problem !== null && <ProblemBox problem={problem} />}
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class={props.isDangerous ? 'danger' : 'primary'} disabled={!mayConfirm}>
            {isDoing ? 'Working…' : act}
          </button>
        </footer>
      </form>
    </Dialog>
  )
}
