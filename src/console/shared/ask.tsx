/* A button that asks before it does something. */

import { useState } from 'preact/hooks'
import { Confirm, type ConfirmProps } from './confirm.js'
import { Button, type ButtonProps } from './page.js'
import { Text } from './text.js'

type Confirmed = Omit<ConfirmProps, 'about' | 'onClose' | 'reason'>
interface AskProps extends Confirmed, Pick<ButtonProps, 'name' | 'look' | 'isDisabled'> {
  /** On the button, if it is not the act itself. */
  readonly label?: string
  /** What it does. */
  readonly says?: string
  readonly onClose?: () => void
}

/** The reason is left out: it is for changes of access by hand. After a refusal the preview is asked for again. */
export function Ask({
  label,
  says,
  name,
  look,
  isDisabled,
  onClose,
  onConfirm,
  children,
  ...confirm
}: AskProps) {
  const [isOpen, setOpen] = useState(false)
  const [refusals, setRefusals] = useState(0)
  const close = (): void => {
    setOpen(false)
    onClose?.()
  }
  const act = (): Promise<void> =>
    onConfirm('').catch((error: unknown) => {
      setRefusals(refusals + 1)
      throw error
    })
  const button = { text: label ?? `${confirm.act}…`, onClick: () => setOpen(true), name, look, isDisabled }
  return (
    <>
      <Button {...button} />
      {isOpen && (
        <Confirm reason="none" {...confirm} about={[refusals]} onConfirm={act} onClose={close}>
          {says !== undefined && (
            <p>
              <Text>{says}</Text>
            </p>
          )}
          {children}
        </Confirm>
      )}
    </>
  )
}
