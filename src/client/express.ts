/* Express: routes that need a feature or a product. */

import type { NextFunction, Request, RequestHandler, Response } from 'express'
import type { Needed } from './client.js'
import { type GateOptions, type Refusal, refusalOf } from './gate.js'
import { validGate } from './valid.js'

export type { Refusal }

export type ExpressGateOptions = GateOptions<Request> & {
  /** Answers instead of the problem that `refusal` holds. */
  readonly onDenied?: (refusal: Refusal, req: Request, res: Response, next: NextFunction) => unknown
}

/** Lets customers with the feature pass. Others are answered 402, 401 or 503; errors of the client go to `next`. */
export function requireFeature(feature: string, options: ExpressGateOptions): RequestHandler {
  return gate({ feature }, options)
}

/** The same for a product. Features are the better choice: a new plan is then a change of the config alone. */
export function requireProduct(productId: string, options: ExpressGateOptions): RequestHandler {
  return gate({ productId }, options)
}

function gate(needed: Needed, options: ExpressGateOptions): RequestHandler {
  validGate(needed, options)
  return (req, res, next) => {
    const refused = async (): Promise<boolean> => {
      const refusal = await refusalOf(req, needed, options)
      if (refusal === null) return false
      if (options.onDenied === undefined)
        res.status(refusal.status).set(refusal.headers).send(JSON.stringify(refusal.body))
      else await options.onDenied(refusal, req, res, next)
      return true
    }
    // What a later handler throws is not for this one.
    refused().then(
      (isRefused) => isRefused || next(),
      // Express takes nothing, and some texts, for leave to go on.
      (cause: unknown) => next(cause instanceof Error ? cause : new Error('The gate failed.', { cause })),
    )
  }
}
