/* Short messages about what was done, which screen readers read out. */

import { signal } from '@preact/signals'

const SHOWN_MS = 6_000

interface Toast {
  readonly text: string
  readonly kind: 'good' | 'bad'
}

const toasts = signal<readonly Toast[]>([])

/** Says what was done. A failure stays until it is closed. */
export function toast(text: string, kind: Toast['kind'] = 'good'): void {
  const added = { text, kind }
  toasts.value = [...toasts.value, added]
  if (kind === 'good') setTimeout(() => close(added), SHOWN_MS)
}

const close = (closed: Toast): void => {
  toasts.value = toasts.value.filter((one) => one !== closed)
}

/** Once on the page. */
export function Toasts() {
  return (
    <div class="fixed right-4 bottom-4 grid max-w-120 justify-items-end gap-2" role="status">
      {toasts.value.map((one) => (
        <p class={`toast ${one.kind}`}>
          {one.text}
          <button
            type="button"
            class="small border-transparent bg-transparent"
            aria-label="Close"
            onClick={() => close(one)}
          >
            ×
          </button>
        </p>
      ))}
    </div>
  )
}
