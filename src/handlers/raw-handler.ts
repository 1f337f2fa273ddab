import type { IncomingMessage, ServerResponse } from 'node:http'

/**
 * One route, written against node:http alone, so that the two that most requests are for run without Express, too:
 * Express swaps the prototypes of every request and response.
 * It throws, or rejects with, a LatchkeyError for an expected failure, which its route answers. What is answered at
 * once needs no promise.
 */
export type RawHandler<Param extends string = never> = (
  req: IncomingMessage,
  res: ServerResponse,
  params: Readonly<Record<Param, string>>,
) => Promise<void> | undefined

/** A handler at its path. */
export interface Route {
  /** Such as `/entitlements/:customerId`. */
  readonly pattern: string
  /** Only POST comes here: another route has the other methods. */
  readonly isOnlyPost: boolean
  /** Answers the request, its failures included. `path`: one that fits the pattern, still percent-encoded. */
  serve(req: IncomingMessage, res: ServerResponse, path: string): void
}
