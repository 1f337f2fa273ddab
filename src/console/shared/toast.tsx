/* Short messages about what was done, which screen readers read out. */

import { useEffect, useState } from 'preact/hooks'

const SHOWN_MS = 6_000

interface Toast {
  readonly id: number
  readonly text: string
  readonly kind: 'good' | 'bad'
}

let toasts: readonly Toast[] = []
let count = 0
const listeners = new Set<() => void>()

function show(next: readonly Toast[]): void {
  toasts = next
  for (const tell of listeners) tell()
}

/** Says what was done. A failure stays until it is closed. */
export function toast(text: string, kind: Toast['kind'] = 'good'): void {
  count += 1
  const id = count
  show([...toasts, { id, text, kind }])
  if (kind === 'good') setTimeout(() => close(id), SHOWN_MS)
}

const close = (id: number): void => show(toasts.filter((one) => one.id !== id))

/** Once on the page. */
export function Toasts() {
  const [shown, setShown] = useState(toasts)
  useEffect(() => {
    const tell = (): void => setShown(toasts)
    listeners.add(tell)
    return () => void listeners.delete(tell)
  }, [])
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.map(({ id, text, kind }) => (
        <p key={id} class={`toast ${kind}`}>
          {text}
          <button type="button" class="quiet small" aria-label="Close" onClick={() => close(id)}>
            ×
          </button>
        </p>
      ))}
    </div>
  )
}
