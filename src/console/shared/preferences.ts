/* What a reader has chosen for this browser. */

import { type Signal, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

let kept: Storage | null = null
try {
  kept = window.localStorage
} catch {}

export const ZONES = ['local', 'utc'] as const
export const THEMES = ['system', 'light', 'dark'] as const

/** A choice among a few words, of which the first is the default. Some browsers keep nothing in a private window. */
function preference<const Word extends string>(name: string, words: readonly [Word, ...Word[]]) {
  const key = `latchkey.${name}`
  const wordOf = (text: string | null | undefined): Word => words.find((one) => one === text) ?? words[0]
  const chosen: Signal<Word> = signal(wordOf(kept?.getItem(key)))
  const choose = (text: string): void => {
    chosen.value = wordOf(text)
    kept?.setItem(key, text)
  }
  return () => [chosen.value, choose] as const
}

export const useZone = preference('zone', ZONES)
const useThemePreference = preference('theme', THEMES)

export function useTheme() {
  const [theme, choose] = useThemePreference()
  useEffect(() => {
    document.documentElement.dataset.theme = theme
    document.documentElement.style.colorScheme = theme === 'system' ? 'light dark' : theme
  }, [theme])
  return [theme, choose] as const
}
