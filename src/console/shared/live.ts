/* Changes of access, as they come. */

import { useEffect, useRef, useState } from 'preact/hooks'
import { API_BASE, type Environment, type Schemas } from '../api.js'

/** Many changes come at once where a batch was stored: one call for all is enough. */
const TOGETHER_MS = 500
const AGAIN_MS = 5_000

/**
 * Calls back after changes of access, with the customers of all that came together. Returns whether changes come.
 * @param environment null: the key may not read them, and nothing is asked
 */
export function useChanges(
  environment: Environment | null,
  onChanges: (customerIds: readonly string[]) => void,
): boolean {
  const told = useRef(onChanges)
  told.current = onChanges
  const [isOn, setOn] = useState(false)
  useEffect(() => {
    if (environment === null) return
    const changed: string[] = []
    const timers: number[] = []
    let source: EventSource | null = null
    const open = (): void => {
      source = new EventSource(`${API_BASE}/changes/stream?environment=${environment}`)
      source.addEventListener('open', () => setOn(true))
      source.addEventListener('change', ({ data }) => {
        const { customerId }: Schemas['Change'] = JSON.parse(data)
        const isFirst = changed.push(customerId) === 1
        if (isFirst) timers.push(window.setTimeout(() => told.current(changed.splice(0)), TOGETHER_MS))
      })
      source.addEventListener('error', () => {
        setOn(false)
        // After a refusal the browser does not try again by itself.
        if (source?.readyState === EventSource.CLOSED) timers.push(window.setTimeout(open, AGAIN_MS))
      })
    }
    open()
    return () => {
      source?.close()
      for (const timer of timers) window.clearTimeout(timer)
    }
  }, [environment])
  return isOn
}
