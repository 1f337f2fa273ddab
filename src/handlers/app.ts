import type { IncomingMessage, ServerResponse } from 'node:http'
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express'
import helmet from 'helmet'
import type { Logger } from 'pino'
import { LatchkeyError } from '../errors.js'
import { answerFailure } from './answer-failure.js'
import { problemOf } from './problem.js'
import type { RawHandler, Route } from './raw-handler.js'
import { send } from './send.js'

export interface AppDeps {
  /** The hot routes. A server tries them before the app; here they serve whoever embeds it. */
  readonly routes: readonly Route[]
  readonly healthz: RawHandler
  readonly readyz: RawHandler
  readonly getMetrics: RawHandler
  readonly log: Logger
}

/** The whole API as an Express app. */
export function createApp({ routes, healthz, readyz, getMetrics, log }: AppDeps): Express {
  const app = express()
  app.disable('x-powered-by')
  app.use(
    // Upgrading would break every page that is served over plain HTTP, which is the default.
    helmet({ contentSecurityPolicy: { directives: { upgradeInsecureRequests: null } } }),
  )
  app.use((req, res, next) => {
    if (!routes.some((take) => take(req, res))) next()
  })
  app.all('/healthz', mount(healthz))
  app.all('/readyz', mount(readyz))
  app.all('/metrics', mount(getMetrics))
  app.use(routeNotFound)
  app.use(failures(log))
  return app
}

function mount(handler: RawHandler): RequestHandler {
  return (req, res) => handler(req, res, {})
}

function failures(log: Logger): ErrorRequestHandler {
  // Express knows an error handler by its four parameters.
  return (error, _req, res, _next) => answerFailure(res, error, log)
}

/** Answers whatever no route took. */
export function routeNotFound(_req: IncomingMessage, res: ServerResponse): void {
  const { status, headers, body } = problemOf(new LatchkeyError('route_not_found', 'There is nothing here.'))
  send(res, status, headers, body)
}
