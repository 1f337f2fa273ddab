/* What a reader has chosen for this browser. */

import { useEffect, useState } from 'preact/hooks'

type Name = 'theme' | 'zone'

const CHANGED = 'latchkey-preference'

function read(name: Name): string | null {
  try {
    return window.localStorage.getItem(`latchkey.${name}`)
  } catch {
    // Some browsers keep nothing in a private window.
    return null
  }
}

/** A choice among a few words, of which the first is the default. */
export function usePreference<const Word extends string>(
  name: Name,
  words: readonly [Word, ...Word[]],
): readonly [Word, (word: Word) => void] {
  const readNow = (): Word => words.find((one) => one === read(name)) ?? words[0]
  const [word, setWord] = useState(readNow)
  useEffect(() => {
    const changed = (): void => setWord(readNow())
    window.addEventListener(CHANGED, changed)
    return () => window.removeEventListener(CHANGED, changed)
  }, [])
  const choose = (next: Word): void => {
    try {
      window.localStorage.setItem(`latchkey.${name}`, next)
    } catch {}
    setWord(next)
    window.dispatchEvent(new Event(CHANGED))
  }
  return [word, choose]
}

/** Light, dark, or as the system has it. */
export function useTheme() {
  const preference = usePreference('theme', ['system', 'light', 'dark'])
  const [theme] = preference
  useEffect(() => {
    document.documentElement.dataset.theme = theme
  }, [theme])
  return preference
}

/** The zone that times are shown in: the reader's, or UTC. */
export const useZone = () => usePreference('zone', ['local', 'utc'])
