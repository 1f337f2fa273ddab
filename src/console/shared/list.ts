/* Answers and lists of the API, in the environment that is shown, typed by their path. */

import type { paths } from '../../../openapi.js'
import { answerOf, api } from '../api.js'
import type { Parameters } from '../router.js'
import { useSession } from '../session.js'
import { type Pages, type Query, usePages, useQuery } from './use-query.js'

type Path = keyof paths
export type AnswerOf<P extends Path> = paths[P] extends {
  get: { responses: { 200: { content: { 'application/json': infer Answer } } } }
}
  ? Answer
  : never
type ItemOf<P extends Path> = AnswerOf<P> extends { items: readonly (infer Item)[] } ? Item : never
type Ids = Readonly<Record<string, string>>

/** The query may be from the address, and hold what the API then refuses in its own words. */
function ask<Answer>(path: Path, ids: Ids, query: Parameters, signal: AbortSignal): Promise<Answer> {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined)
  const get = api.GET as (path: Path, init: object) => Promise<{ data?: Answer; response: Response }>
  return answerOf(get(path, { params: { path: ids, query: Object.fromEntries(given) }, signal }))
}

/** @param query null and undefined are left out */
export function useGet<P extends Path>(path: P, query: Parameters = {}, round = 0): Query<AnswerOf<P>> {
  const { environment } = useSession()
  const all = { environment, ...query }
  return useQuery((signal) => ask(path, {}, all, signal), [path, all], round)
}

/** So many are shown at once, and so many pages are read for them at most. */
const SHOWN = 50
const MOST_READS = 20

interface ListOptions<Item> {
  readonly ids?: Ids
  /** What the API can't filter by: there may be none at first, though there are more. */
  readonly isAsked?: (item: Item) => boolean
  /** What `isAsked` depends on. */
  readonly about?: readonly unknown[]
}

/** @param query null and undefined are left out */
export function useList<P extends Path>(
  path: P,
  query: Parameters = {},
  { ids = {}, isAsked = () => true, about = [] }: ListOptions<ItemOf<P>> = {},
): Pages<ItemOf<P>> {
  const { environment } = useSession()
  const all = { environment, limit: SHOWN, ...query }
  type Page = { items: ItemOf<P>[]; pagination: { nextCursor: string | null; hasMore: boolean } }
  return usePages(
    async (first, signal) => {
      const items: ItemOf<P>[] = []
      let cursor: string | null | undefined = first
      for (let reads = 1; ; reads += 1) {
        const page: Page = await ask(path, ids, { ...all, cursor }, signal)
        items.push(...page.items.filter(isAsked))
        cursor = page.pagination.nextCursor
        if (cursor === null || items.length >= SHOWN || reads === MOST_READS) return { ...page, items }
      }
    },
    [path, ids, all, about],
  )
}
