/* Hono: routes that need a feature or a product. */

import type { Context, MiddlewareHandler } from 'hono'
import type { Needed } from './client.js'
import { type GateOptions, type Refusal, refusalFor, refusalOf } from './gate.js'
import { validGate } from './valid.js'

export type { Refusal }

export type HonoGateOptions = GateOptions<Context> & {
  /** Answers instead of the problem that `refusal` holds. */
  readonly onDenied?: (refusal: Refusal, context: Context) => Response | Promise<Response>
}

/** Lets customers with the feature pass. Others are answered 402, 401 or 503. */
export function requireFeature(feature: string, options: HonoGateOptions): MiddlewareHandler {
  return gate({ feature }, options)
}

/** The same for a product. Features are the better choice: a new plan is then a change of the config alone. */
export function requireProduct(productId: string, options: HonoGateOptions): MiddlewareHandler {
  return gate({ productId }, options)
}

function gate(needed: Needed, options: HonoGateOptions): MiddlewareHandler {
  validGate(needed, options)
  return async (context, next) => {
    const refusal = await refusalOf(context, needed, options).catch((error: unknown) => {
      const unavailable = refusalFor(error, needed)
      if (unavailable === null) throw error
      return unavailable
    })
    if (refusal === null) return next()
    if (options.onDenied !== undefined) return options.onDenied(refusal, context)
    const { status, headers, body } = refusal
    return new Response(JSON.stringify(body), { status, headers })
  }
}
