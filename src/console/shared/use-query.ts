/* Questions to the API that a page shows the answers of. */

import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { type AnswerOf, get, type Path, type Problem, problemOf, revision } from '../api.js'
import type { Parameters } from '../router.js'
import { useSession } from '../session.js'

export interface Query<Answer> {
  /** Undefined before the first answer. Stays while it is asked for again. */
  readonly data: Answer | undefined
  readonly problem: Problem | null
  readonly isLoading: boolean
  /** Asks again, and keeps what is shown meanwhile. */
  readonly reload: () => void
}

/** What was answered last, to the question of that turn. */
type Asked<Answer> = { key: string; turn: string; data?: Answer | undefined; problem: Problem | null }

/**
 * Asks when the page is shown, and again whenever `about` changes: then nothing of the earlier answer is shown. A
 * question that nobody waits for any more is given up.
 * @param about texts, numbers or null that the question depends on
 * @param round asks again when it changes, and keeps what is shown meanwhile
 */
export function useQuery<Answer>(
  ask: (signal: AbortSignal) => Promise<Answer>,
  about: readonly unknown[],
  round: number | string = 0,
): Query<Answer> {
  const [count, setCount] = useState(0)
  const key = JSON.stringify(about)
  const turn = `${count} ${round} ${key}`
  const asking = useRef(ask)
  asking.current = ask
  const [asked, setAsked] = useState<Asked<Answer>>({ key, turn: '', problem: null })
  const { data, problem }: Partial<Asked<Answer>> = asked.key === key ? asked : {}

  useEffect(() => {
    const aborter = new AbortController()
    const set = (answered: Partial<Asked<Answer>>): void => {
      const since = (before: Asked<Answer>) => (before.key === key ? before : { problem: null })
      if (!aborter.signal.aborted) setAsked((before) => ({ ...since(before), key, turn, ...answered }))
    }
    asking.current(aborter.signal).then(
      (answer) => set({ data: answer, problem: null }),
      (error: unknown) => set({ problem: problemOf(error) }),
    )
    return () => aborter.abort()
  }, [turn])

  const reload = useCallback(() => setCount((before) => before + 1), [])
  return { data, problem: problem ?? null, isLoading: asked.turn !== turn, reload }
}

export function useGet<P extends Path>(path: P, given: Parameters = {}): Query<AnswerOf<P>> {
  const { environment } = useSession()
  const all = { environment, ...given }
  return useQuery((signal) => get(path, all, signal), [path, all], revision.value)
}

type Item<P extends Path> = AnswerOf<P> extends { items: readonly (infer One)[] } ? One : never
type Page<One> = { readonly items: One[]; readonly pagination: { readonly nextCursor: string | null } }

type Items<One> = { readonly items: readonly One[]; readonly hasMore: boolean }
export type List<One> = Query<Items<One>> & { readonly more: () => void }

/** So many are shown at once, and so many pages are read for them at most: some have no match. */
const SHOWN = 50
const MOST_READS = 20

type ListOptions<One> = { readonly isAsked?: (item: One) => boolean; readonly about?: readonly unknown[] }

/**
 * A list in the environment that is shown.
 * @param given of `get`; `isAsked` is what the API can't filter by, and depends on `about`
 */
export function useList<P extends Path>(
  path: P,
  given: Parameters = {},
  { isAsked = () => true, about = [] }: ListOptions<Item<P>> = {},
): List<Item<P>> {
  const all = { environment: useSession().environment, limit: SHOWN, ...given }
  const key = JSON.stringify([path, all, about])
  const [grown, setGrown] = useState({ key, times: 1 })
  const times = grown.key === key ? grown.times : 1
  async function read(signal: AbortSignal) {
    const items: Item<P>[] = []
    for (let cursor: string | null = null, reads = 1; ; reads += 1) {
      const page = (await get(path, { ...all, cursor }, signal)) as Page<Item<P>>
      items.push(...page.items.filter(isAsked))
      cursor = page.pagination.nextCursor
      const isEnough = items.length >= times * all.limit || reads === times * MOST_READS
      if (cursor === null || isEnough) return { items, hasMore: cursor !== null }
    }
  }
  const list = useQuery(read, [key], `${revision.value} ${times}`)
  return { ...list, more: () => setGrown({ key, times: times + 1 }) }
}

const SETTLED_MS = 200

/** The value once it has not changed for a moment, such as what somebody types. */
export function useSettled<Value>(value: Value): Value {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(value), SETTLED_MS)
    return () => window.clearTimeout(timer)
  }, [value])
  return settled
}
