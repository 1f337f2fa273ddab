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
  return (
    <span class="id">
      <code>
        <Text>{children}</Text>
      </code>
      <CopyButton text={children} />
    </span>
  )
}

function CopyButton({ text }: { readonly text: string }) {
  const copy = (): void => {
    const failed = () => toast('The browser does not allow to copy: select the text instead.', 'bad')
    // Browsers have no clipboard for pages over plain HTTP, except on this machine.
    if (navigator.clipboard === undefined) failed()
    else navigator.clipboard.writeText(text).then(() => toast('Copied.'), failed)
  }
  return (
    <button
      type="button"
      class="quiet small"
      onClick={copy}
      aria-label={`Copy ${visible(text)}`}
      title="Copy"
    >
      ⧉
    </button>
  )
}
