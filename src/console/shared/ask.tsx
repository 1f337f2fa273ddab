/* A button that asks before it does something. */

import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { type Problem, problemOf } from '../api.js'
import { Control, type Field, type Values } from './fields.js'
import { Answer, Button, ProblemBox, Says } from './show.js'
import { Said } from './text.js'
import { toast } from './toast.js'
import { useQuery } from './use-query.js'

type DialogProps = { readonly title: string; readonly onClose: () => void; readonly children: unknown }

/** The browser's own dialog. It tells late that it was closed, when another may be shown: Escape ends it at once. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const shown = dialog.current
    shown?.showModal()
    // It gives the focus back.
    return () => shown?.close()
  }, [])
  return (
    <dialog
      ref={dialog}
      class="m-auto w-136 max-w-[calc(100vw-1.5rem)] rounded-lg border border-line bg-panel p-4 text-text backdrop:bg-black/45"
      onCancel={onClose}
      onClose={({ currentTarget }) => currentTarget.isConnected && onClose()}
      aria-labelledby="dialog-title"
    >
      <h2 id="dialog-title" class="mb-3 font-bold">
        <Said>{title}</Said>
      </h2>
      {children}
    </dialog>
  )
}

export interface Asked {
  readonly title: string
  readonly act: string
  readonly isDangerous?: boolean
  readonly says?: string
  readonly fields?: (values: Values) => readonly Field[]
  /** What is still to be filled in; null: nothing. */
  readonly missing?: ((values: Values) => string | null) | undefined
  /** Names what will change, such as by a dry run; nothing can be confirmed before it is shown. */
  readonly preview?: (values: Values, signal: AbortSignal) => Promise<ComponentChildren>
  /** False: it can't be confirmed yet. */
  readonly isReady?: (values: Values) => boolean
  /** Does it, and gives a sentence to say or an element to show, if any. A problem is shown in the dialog. */
  readonly onConfirm: (values: Values) => Promise<unknown>
  readonly children?: ComponentChildren
}

export interface AskProps extends Asked {
  readonly label?: string | undefined
  readonly name?: string
  readonly look?: 'small' | 'danger' | undefined
  readonly isDisabled?: boolean
}

export function Ask({ label, name, look, isDisabled, ...asked }: AskProps) {
  const [isOpen, setOpen] = useState(false)
  const button = { text: label ?? `${asked.act}…`, name, look, isDisabled }
  return (
    <>
      <Button {...button} onClick={() => setOpen(true)} />
      {isOpen && <Asking {...asked} onClose={() => setOpen(false)} />}
    </>
  )
}

function Asking(asked: Asked & { readonly onClose: () => void }) {
  const { title, act, says, preview, onClose } = asked
  const [chosen, setChosen] = useState<Values>({})
  const [problem, setProblem] = useState<Problem | null>(null)
  const [isDoing, setDoing] = useState(false)
  const [refusals, setRefusals] = useState(0)
  const [result, setResult] = useState<ComponentChildren>(null)
  const fields = asked.fields?.(chosen) ?? []
  const filled = fields.map(({ name, initial = '' }) => [name, chosen[name] ?? initial] as const)
  const values: Values = Object.fromEntries(filled)
  const missing = asked.missing?.(values) ?? null
  // What is said beside a change has no effect on it.
  const about = fields.map(({ name, kind }) => (kind === 'said' ? null : values[name]))
  const ask = async (signal: AbortSignal) => ({ shown: missing ?? (await preview?.(values, signal)) })
  const seen = useQuery(ask, [about, missing], refusals)
  const isSeen = !seen.isLoading && seen.problem === null
  const mayConfirm = missing === null && asked.isReady?.(values) !== false && !isDoing && isSeen

  async function confirm(event: Event): Promise<void> {
    event.preventDefault()
    if (!mayConfirm) return
    setDoing(true)
    setProblem(null)
    try {
      const done = await asked.onConfirm(values)
      if (typeof done === 'string') toast(done)
      if (typeof done === 'object' && done !== null) setResult(done)
      else onClose()
    } catch (error) {
      setProblem(problemOf(error))
      setRefusals(refusals + 1)
      setDoing(false)
    }
  }

  return (
    <Dialog title={title} onClose={onClose}>
      {result !== null ? (
        <>
          {result}
          <Button text="Close" onClick={onClose} />
        </>
      ) : (
        <form class="parts" onSubmit={(event) => void confirm(event)}>
          {says !== undefined && <Says text={says} />}
          {asked.children}
          {fields.map((field) => (
            <Control
              key={field.name}
              field={field}
              value={values[field.name] ?? ''}
              onChange={(value) => setChosen((before) => ({ ...before, [field.name]: value }))}
            />
          ))}
          {preview !== undefined && (
            <div class="border-l-4 border-link bg-page px-3 py-2">
              <Answer query={seen}>{({ shown }) => shown}</Answer>
            </div>
          )}
          {problem !== null && seen.problem === null && <ProblemBox problem={problem} />}
          <footer class="acts justify-end">
            <Button text="Cancel" onClick={onClose} />
            <button type="submit" class={asked.isDangerous ? 'danger' : 'primary'} disabled={!mayConfirm}>
              {isDoing ? 'Working…' : act}
            </button>
          </footer>
        </form>
      )}
    </Dialog>
  )
}
