/* Short messages about what was done, which screen readers read out. */

import { signal } from '@preact/signals'
import { problemOf } from '../api.js'
import { visible } from './plain.js'

const SHOWN_MS = 6_000

type Toast = { readonly text: string; readonly kind: 'good' | 'bad' }

const toasts = signal<readonly Toast[]>([])

/** Says what was done. A failure stays until it is closed. */
export function toast(text: string, kind: Toast['kind'] = 'good'): void {
  const added = { text, kind }
  toasts.value = [...toasts.value, added]
  if (kind === 'good') setTimeout(() => close(added), SHOWN_MS)
}

/** Does what needs no confirmation, and says why it failed. */
export const attempt = (doing: Promise<unknown>): void =>
  void doing.catch((error: unknown) => toast(problemOf(error).message, 'bad'))

const close = (closed: Toast): void => {
  toasts.value = toasts.value.filter((one) => one !== closed)
}

export function Toasts() {
  return (
    <div class="fixed right-4 bottom-4 grid max-w-120 justify-items-end gap-2" role="status">
      {toasts.value.map((one) => (
        <p class={`notice ${one.kind}`} role={one.kind === 'bad' ? 'alert' : undefined}>
          <bdi>{visible(one.text)}</bdi>
          <button type="button" class="small" aria-label="Close" onClick={() => close(one)}>
            ×
          </button>
        </p>
      ))}
    </div>
  )
}
