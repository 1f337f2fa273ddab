/* A button that asks before it does something. */

import { useState } from 'preact/hooks'
import { Confirm, type ConfirmProps } from './confirm.js'

interface AskProps extends Omit<ConfirmProps, 'onClose' | 'reason'> {
  /** On the button. */
  readonly label: string
  /** Of the button, where several have the same label. */
  readonly name?: string
  readonly look?: 'small' | 'danger'
  readonly isDisabled?: boolean
  readonly onClose?: () => void
}

/** The reason is left out: it is for changes of access by hand. */
export function Ask({ label, name, look, isDisabled = false, onClose, ...confirm }: AskProps) {
  const [isOpen, setOpen] = useState(false)
  const close = (): void => {
    setOpen(false)
    onClose?.()
  }
  return (
    <>
      <button
        type="button"
        class={look}
        aria-label={name}
        disabled={isDisabled}
        onClick={() => setOpen(true)}
      >
        {label}
      </button>
      {isOpen && <Confirm reason="none" {...confirm} onClose={close} />}
    </>
  )
}
