/* Text from elsewhere: shown as it is, and never obeyed. */

import { visible } from './plain.js'
import { toast } from './toast.js'

/** A text that somebody else wrote: a name, an id, a reason. Its direction stays within it. */
export function Text({ children }: { readonly children: string }) {
  return <bdi>{visible(children)}</bdi>
}

/** Has the browser save a text. */
export function saveFile(name: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}

/** An id in full, with a button that copies it. */
export function Id({ children }: { readonly children: string }) {
  const failed = (): void => toast('The browser does not allow to copy: select the text instead.', 'bad')
  // Browsers have no clipboard for pages over plain HTTP, except on this machine.
  const copy = (): void =>
    void (navigator.clipboard?.writeText(children) ?? Promise.reject()).then(() => toast('Copied.'), failed)
  const name = `Copy ${visible(children)}`
  return (
    <span class="inline-flex items-center gap-1">
      <code>
        <Text>{children}</Text>
      </code>
      <button
        type="button"
        class="small border-transparent bg-transparent"
        onClick={copy}
        aria-label={name}
        title="Copy"
      >
        ⧉
      </button>
    </span>
  )
}
