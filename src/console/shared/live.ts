/* Changes of access, as they come. */

import { useEffect, useRef, useState } from 'preact/hooks'
import { API_BASE, type Environment, type Schemas } from '../api.js'

export type Change = Schemas['Change']
/** `off`: the key may not read changes. */
export type LiveState = 'on' | 'connecting' | 'off'

/** Many changes come at once where a batch was stored: one call for all is enough. */
const TOGETHER_MS = 500
const AGAIN_MS = 5_000

/**
 * Calls back after changes of access, with all that came together.
 * @param environment null: the key may not read them, and nothing is asked
 */
export function useChanges(
  environment: Environment | null,
  onChanges: (changes: readonly Change[]) => void,
): LiveState {
  const told = useRef(onChanges)
  told.current = onChanges
  const [state, setState] = useState<LiveState>('connecting')
  useEffect(() => {
    if (environment === null) {
      setState('off')
      return
    }
    let waiting: Change[] = []
    let timer: number | undefined
    let again: number | undefined
    let source: EventSource | null = null
    const tell = (): void => {
      timer = undefined
      told.current(waiting.splice(0))
    }
    const open = (): void => {
      source = new EventSource(`${API_BASE}/changes/stream?environment=${environment}`)
      source.addEventListener('open', () => setState('on'))
      source.addEventListener('change', ({ data }) => {
        waiting = [...waiting, JSON.parse(data)]
        timer ??= window.setTimeout(tell, TOGETHER_MS)
      })
      source.addEventListener('error', () => {
        setState('connecting')
        // After a refusal the browser does not try again by itself.
        if (source?.readyState === EventSource.CLOSED) again = window.setTimeout(open, AGAIN_MS)
      })
    }
    open()
    return () => {
      source?.close()
      window.clearTimeout(timer)
      window.clearTimeout(again)
    }
  }, [environment])
  return state
}
