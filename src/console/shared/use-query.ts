/* Questions to the API that a page shows the answers of. */

import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { Problem } from '../api.js'

export interface Query<Answer> {
  /** Undefined before the first answer. Stays while it is asked for again. */
  readonly data: Answer | undefined
  /** Of the last attempt; null if that went well. */
  readonly problem: Problem | null
  readonly isLoading: boolean
  /** Not to be acted on: the answer is being read, or the last attempt to read it failed. */
  readonly isStale: boolean
  /** Asks again, and keeps what is shown meanwhile. */
  readonly reload: () => void
}

interface Asked<Answer> {
  readonly key: string
  readonly data?: Answer
  readonly problem: Problem | null
  readonly isLoading: boolean
}

/**
 * Asks when the page is shown, and again whenever `about` changes: then nothing of the earlier answer is shown. A
 * question that nobody waits for any more is given up.
 * @param about texts, numbers or null that the question depends on
 * @param round asks again when it changes, and keeps what is shown meanwhile
 */
export function useQuery<Answer>(
  ask: (signal: AbortSignal) => Promise<Answer>,
  about: readonly unknown[],
  round = 0,
): Query<Answer> {
  const key = JSON.stringify(about)
  const asking = useRef(ask)
  asking.current = ask
  const [count, setCount] = useState(0)
  const [asked, setAsked] = useState<Asked<Answer>>({ key, problem: null, isLoading: true })
  const { data, problem, isLoading } = asked.key === key ? asked : { problem: null, isLoading: true }

  useEffect(() => {
    const aborter = new AbortController()
    const set = (next: (before: Asked<Answer>) => Asked<Answer>): void => {
      if (!aborter.signal.aborted) setAsked(next)
    }
    set((before) =>
      before.key === key ? { ...before, isLoading: true } : { key, problem: null, isLoading: true },
    )
    asking.current(aborter.signal).then(
      (answer) => set(() => ({ key, data: answer, problem: null, isLoading: false })),
      (error: unknown) => set((before) => ({ ...before, problem: problemOf(error), isLoading: false })),
    )
    return () => aborter.abort()
  }, [key, count, round])

  const reload = useCallback(() => setCount((before) => before + 1), [])
  return { data, problem, isLoading, isStale: isLoading || problem !== null, reload }
}

/** Anything else is a bug, which the error boundary shows. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error
  return new Problem(0, { code: 'bug', detail: error instanceof Error ? error.message : String(error) })
}

interface Page<Item> {
  readonly items: readonly Item[]
  readonly pagination: { readonly nextCursor: string | null; readonly hasMore: boolean }
}

export interface Pages<Item> extends Omit<Query<readonly Item[]>, 'isStale'> {
  readonly hasMore: boolean
  /** Adds the next page to those shown. */
  readonly more: () => void
}

/** A list by pages, which grows. Parameters as of `useQuery`. */
export function usePages<Item>(
  ask: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<Item>>,
  about: readonly unknown[],
): Pages<Item> {
  const first = useQuery((signal) => ask(undefined, signal), about)
  const [further, setFurther] = useState<readonly (Page<Item> | undefined)[]>([])
  const [problem, setProblem] = useState<Problem | null>(null)
  const [isLoading, setLoading] = useState(false)
  // Those behind another first page are of another list.
  const pages = further[0] === first.data ? further : [first.data]
  const { nextCursor = null, hasMore = false } = pages.at(-1)?.pagination ?? {}
  const more = (): void => {
    if (nextCursor === null || isLoading) return
    setLoading(true)
    setProblem(null)
    ask(nextCursor, new AbortController().signal)
      .then((page) => setFurther([...pages, page]))
      .catch((error: unknown) => setProblem(problemOf(error)))
      .finally(() => setLoading(false))
  }
  return {
    data: first.data && pages.flatMap((page) => page?.items ?? []),
    problem: first.problem ?? problem,
    isLoading: first.isLoading || isLoading,
    hasMore,
    more,
    reload: first.reload,
  }
}

/** The value once it has not changed for a while, such as what somebody types. */
export function useSettled<Value>(value: Value, ms: number): Value {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(value), ms)
    return () => window.clearTimeout(timer)
  }, [value, ms])
  return settled
}
