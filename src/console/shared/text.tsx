/* Text from elsewhere: shown as it is, and never obeyed. */

import { toast } from './toast.js'

/** Controls, direction marks and what has no width: they would hide or reorder what is around them. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\u2028\u2029]/gu

/** The same text with what one can't see as escapes, such as `\u202e`. */
export function visible(text: string): string {
  return text.replaceAll(UNSEEN, (mark) => {
    const code = (mark.codePointAt(0) ?? 0).toString(16)
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`
  })
}

/** A text that somebody else wrote: a name, an id, a reason. Its direction stays within it. */
export function Text({ children }: { readonly children: string }) {
  return <bdi>{visible(children)}</bdi>
}

/** A cell of a CSV file: quoted, and no formula, whatever program opens it. */
export function csvCell(value: string | number | boolean | null): string {
  const text = value === null ? '' : String(value)
  const plain = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain
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
