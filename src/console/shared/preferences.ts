/* What a reader has chosen for this browser. */

import { type Signal, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

/** A choice among a few words, of which the first is the default. Some browsers keep nothing in a private window. */
function preference<const Word extends string>(name: string, words: readonly [Word, ...Word[]]) {
  const key = `latchkey.${name}`
  const kept = (): string | null => {
    try {
      return window.localStorage.getItem(key)
    } catch {
      return null
    }
  }
  const before = kept()
  const chosen: Signal<Word> = signal(words.find((one) => one === before) ?? words[0])
  const choose = (word: string): void => {
    chosen.value = words.find((one) => one === word) ?? words[0]
    try {
      window.localStorage.setItem(key, word)
    } catch {}
  }
  return () => [chosen.value, choose] as const
}

/** The zone that times are shown in: the reader's, or UTC. */
export const useZone = preference('zone', ['local', 'utc'])
const useThemePreference = preference('theme', ['system', 'light', 'dark'])

/** Light, dark, or as the system has it. */
export function useTheme() {
  const [theme, choose] = useThemePreference()
  useEffect(() => {
    document.documentElement.dataset.theme = theme
    document.documentElement.style.colorScheme = theme === 'system' ? 'light dark' : theme
  }, [theme])
  return [theme, choose] as const
}
