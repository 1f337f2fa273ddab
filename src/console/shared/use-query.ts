/* Questions to the API that a page shows the answers of. */

import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { Problem } from '../api.js'

export interface Query<Answer> {
  /** Undefined before the first answer. Stays while it is asked for again. */
  readonly data: Answer | undefined
  /** Of the last attempt; null if that went well. */
  readonly problem: Problem | null
  readonly isLoading: boolean
  /** What is shown is older than a change, or than a failed attempt to read it again. */
  readonly isStale: boolean
  /** Asks again, and keeps what is shown meanwhile. */
  readonly reload: () => void
}

/**
 * Asks when the page is shown, and again whenever `about` changes: then nothing of the earlier answer is shown. A
 * question that nobody waits for any more is given up.
 * @param about texts, numbers or null that the question depends on
 */
export function useQuery<Answer>(
  ask: (signal: AbortSignal) => Promise<Answer>,
  about: readonly unknown[],
): Query<Answer> {
  const key = JSON.stringify(about)
  const asking = useRef(ask)
  asking.current = ask
  const [count, setCount] = useState(0)
  const [state, setState] = useState<{
    readonly key: string
    readonly data: Answer | undefined
    readonly problem: Problem | null
    readonly isLoading: boolean
  }>({ key, data: undefined, problem: null, isLoading: true })

  useEffect(() => {
    const aborter = new AbortController()
    setState((before) => ({
      key,
      data: before.key === key ? before.data : undefined,
      problem: before.key === key ? before.problem : null,
      isLoading: true,
    }))
    asking.current(aborter.signal).then(
      (data) => {
        if (!aborter.signal.aborted) setState({ key, data, problem: null, isLoading: false })
      },
      (error: unknown) => {
        if (aborter.signal.aborted) return
        setState((before) => ({ ...before, problem: problemOf(error), isLoading: false }))
      },
    )
    return () => aborter.abort()
  }, [key, count])

  const reload = useCallback(() => setCount((before) => before + 1), [])
  const isCurrent = state.key === key
  const data = isCurrent ? state.data : undefined
  const problem = isCurrent ? state.problem : null
  const isLoading = state.isLoading || !isCurrent
  return { data, problem, isLoading, isStale: data !== undefined && (isLoading || problem !== null), reload }
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
  const [further, setFurther] = useState<{
    readonly of: Page<Item> | undefined
    readonly pages: readonly Page<Item>[]
  }>({
    of: undefined,
    pages: [],
  })
  const [problem, setProblem] = useState<Problem | null>(null)
  const [isLoading, setLoading] = useState(false)
  // Those behind another first page are of another list.
  const pages =
    first.data === undefined ? [] : [first.data, ...(further.of === first.data ? further.pages : [])]
  const { nextCursor = null, hasMore = false } = pages.at(-1)?.pagination ?? {}
  const more = (): void => {
    if (nextCursor === null || isLoading) return
    setLoading(true)
    setProblem(null)
    ask(nextCursor, new AbortController().signal)
      .then((page) => setFurther({ of: first.data, pages: [...pages.slice(1), page] }))
      .catch((error: unknown) => setProblem(problemOf(error)))
      .finally(() => setLoading(false))
  }
  return {
    data: first.data === undefined ? undefined : pages.flatMap(({ items }) => items),
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
