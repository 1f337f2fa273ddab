import type { IncomingMessage, ServerResponse } from 'node:http'

/**
 * One route, written against node:http alone, so that it runs with and without Express: Express swaps
 * the prototypes of every request and response, which costs several times a bare request.
 * It rejects with a LatchkeyError for an expected failure; whoever calls it answers that.
 */
export type RawHandler<Param extends string = never> = (
  req: IncomingMessage,
  res: ServerResponse,
  params: Readonly<Record<Param, string>>,
) => Promise<void>

/** Takes the request if its path is this route's own; false: nothing was done, another may have it. */
export type Route = (req: IncomingMessage, res: ServerResponse) => boolean
