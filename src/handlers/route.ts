import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { LatchkeyError } from '../errors.js'
import { answerFailure } from './answer-failure.js'
import { createPathMatcher, decodeParams, type ParamNames, pathOf } from './path.js'
import type { RawHandler, Route } from './raw-handler.js'

/** Puts a handler at a path, such as `/entitlements/:customerId`, and answers for its failures. */
export function createRoute<Pattern extends string>(
  pattern: Pattern,
  handler: RawHandler<ParamNames<Pattern>>,
  log: Logger,
): Route {
  const match = createPathMatcher(pattern)

  async function serve(req: IncomingMessage, res: ServerResponse, encoded: Record<string, string>) {
    try {
      // The matcher binds exactly the names of the pattern, which no type can follow.
      await handler(req, res, decodeParams(encoded) as Record<ParamNames<Pattern>, string>)
    } catch (error) {
      answerFailure(res, error, log)
    }
  }

  return (req, res) => {
    const encoded = match(pathOf(req.url ?? ''))
    if (encoded === null) return false
    void serve(req, res, encoded)
    return true
  }
}

/**
 * Lets only these methods through.
 *
 * @throws LatchkeyError `method_not_allowed`, with `Allow` already on the answer.
 */
export function requireMethod(req: IncomingMessage, res: ServerResponse, ...allowed: string[]): void {
  if (req.method !== undefined && allowed.includes(req.method)) return
  res.setHeader('Allow', allowed.join(', '))
  throw new LatchkeyError('method_not_allowed', `This route takes ${allowed.join(' and ')} only.`)
}
