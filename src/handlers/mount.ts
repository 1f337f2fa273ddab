/* Serves the routes of the table, and does what they all have in common. */

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { performance } from 'node:perf_hooks'
import express, { type ErrorRequestHandler, type Express, type Request, type Response } from 'express'
import helmet from 'helmet'
import type { Logger } from 'pino'
import { z } from 'zod'
import { type Issue, LatchkeyError } from '../errors.js'
import { isUsableId } from '../provider/ids.js'
import { type ApiKey, UNLIMITED } from './api-key.js'
import { NO_ID, readParsed } from './body.js'
import { BOTH, chooseEnvironment, parseParameters, pathOf, readParameters, requireBoth } from './query.js'
import { type Content, type MountDeps, methodsOf, type RawHandler, type Route, type Stream } from './route.js'
import { answerFailure, send, sendJson, sendTagged, tagOf } from './send.js'
import { factsOf, takeNoMore } from './server.js'

/** A path of the table, with all its methods. */
export interface MountedPath {
  readonly path: string
  /**
   * Answers the request, failures included, and returns null; or returns the methods that the path takes if this is
   * another one.
   * @param path a matching path, still percent-encoded
   */
  serve(req: IncomingMessage, res: ServerResponse, path: string): string | null
}

/** In the order of the table. */
export function mountRoutes<Deps>(
  routes: readonly Route<Deps>[],
  deps: Deps & MountDeps,
): readonly MountedPath[] {
  const paths = [...new Set(routes.map(({ path }) => path))]
  return paths.map((path) =>
    mountPath(
      path,
      routes.filter((one) => one.path === path),
      deps,
    ),
  )
}

function mountPath<Deps>(path: string, routes: readonly Route<Deps>[], deps: Deps & MountDeps): MountedPath {
  const names = namesIn(path)
  const handlers = routes.map((one) => ({
    methods: methodsOf(one),
    isForAll: one.plain !== undefined,
    handler: timed(one, one.plain === undefined ? handlerOf(one, deps) : one.plain(deps), deps),
  }))
  const allowed = handlers.flatMap(({ methods }) => methods).join(', ')
  return {
    path,
    serve(req, res, given) {
      factsOf(req).route = path
      const fail = (error: unknown): void => answerFailure(res, error, deps.log)
      try {
        const params = decodeParams(names, given)
        const { method = '' } = req
        const found = handlers.find(({ isForAll, methods }) => isForAll || methods.includes(method))
        if (found === undefined) return allowed
        found.handler(req, res, params)?.catch(fail)
      } catch (error) {
        fail(error)
      }
      return null
    },
  }
}

/** Measures a handler, failures included. */
function timed(
  { timedAs }: Route<never>,
  handler: RawHandler<string>,
  { metrics }: MountDeps,
): RawHandler<string> {
  if (timedAs === undefined) return handler
  return (req, res, params) => {
    const startedAt = performance.now()
    const end = (): void => metrics.observeDuration(timedAs, (performance.now() - startedAt) / 1000)
    try {
      const answering = handler(req, res, params)
      if (answering !== undefined) return answering.finally(end)
    } catch (error) {
      end()
      throw error
    }
    end()
    return undefined
  }
}

function handlerOf<Deps>(route: Route<Deps>, deps: Deps & MountDeps): RawHandler<string> {
  const handle = route.handle as (asked: object, deps: Deps & MountDeps) => unknown
  return async (req, res, params) => {
    if (route.isLast) takeNoMore(res)
    sendAnswer(res, route, await handle(await readAsked(req, params, route, deps), deps))
  }
}

/** The key of a route that needs none. */
const NOBODY: ApiKey = { name: '', sha256: '', scopes: [], environments: BOTH, ...UNLIMITED }

/**
 * Parses a request. Checks the key before anything but the headers is read.
 * @throws LatchkeyError what `authenticate` throws, `forbidden`, `invalid_request`, and what `readBody` throws
 */
async function readAsked(
  req: IncomingMessage,
  params: Readonly<Record<string, string>>,
  route: Route<never>,
  { authenticate, endpoints }: MountDeps,
) {
  const { scope, environments: rule } = route
  const key = scope === null ? NOBODY : authenticate(req, scope)
  if (rule === 'both' || rule === 'shown of both') requireBoth(key)
  const takesEnvironment = rule !== 'none' && rule !== 'both'
  const given = readParameters(req, takesEnvironment, route.query)
  const named = given.environment ?? null
  const choose = () => chooseEnvironment(named, endpoints, key)
  const environments = takesEnvironment && (rule === 'one' || named !== null) ? [choose()] : key.environments
  const query = route.query === 'any' ? {} : parseParameters(route.query, given)
  const idempotencyKey = route.takesIdempotencyKey ? readIdempotencyKey(req) : null
  // Several make one that is no cursor.
  const lastEventId = (route.takesLastEventId && req.headersDistinct['last-event-id']?.join()) || null
  const body = route.body === undefined ? undefined : await readParsed(req, route.body, route.bodyType)
  const [environment] = environments
  return { params, query, body, key, idempotencyKey, lastEventId, environment, environments }
}

const MAX_IDEMPOTENCY_KEY_LENGTH = 255

function readIdempotencyKey(req: IncomingMessage): string | null {
  const [key, ...others] = req.headersDistinct['idempotency-key'] ?? []
  if (key === undefined) return null
  if (others.length === 0 && key !== '' && key.length <= MAX_IDEMPOTENCY_KEY_LENGTH) return key
  const issues = [{ path: 'Idempotency-Key', message: 'must be given once, with 1 to 255 characters' }]
  throw new LatchkeyError('invalid_request', 'The header is not valid.', { issues })
}

function sendAnswer(res: ServerResponse, route: Route<never>, value: unknown): void {
  const { answer, status = 200, tagged, acceptedAt } = route
  if (typeof answer === 'string') {
    if (typeof value === 'function') (value as Stream)(res)
    else sendContent(res, value as Content)
    return
  }
  const json = z.encode(answer, value) as never
  if (tagged !== undefined) {
    const text = JSON.stringify(json)
    sendTagged(res, tagOf(tagged === true ? text : JSON.stringify(tagged(json))), text)
    return
  }
  const location = acceptedAt?.(json) ?? null
  const headers = { 'Cache-Control': 'no-store', ...(location !== null && { Location: location }) }
  sendJson(res, location === null ? status : 202, json, headers)
}

function sendContent(res: ServerResponse, { content, type, sha256, fileName }: Content): void {
  if (fileName !== undefined) res.setHeader('Content-Disposition', `attachment; filename="${fileName}"`)
  if (sha256 !== undefined) sendTagged(res, `"${sha256}"`, content, type)
  else send(res, 200, { 'Content-Type': type, 'Cache-Control': 'no-store' }, content)
}

/** The parameter names of a path, with the index of each segment. */
function namesIn(path: string): readonly (readonly [place: number, name: string])[] {
  return [...path.split('/').entries()]
    .filter(([, segment]) => segment.startsWith(':'))
    .map(([place, segment]) => [place, segment.slice(1)])
}

/**
 * Decodes the ids of a path, segment by segment: `..%2f` is one segment and stays one.
 *
 * @throws LatchkeyError `invalid_request` for an id that none can have: events with such ids are quarantined.
 */
function decodeParams(names: ReturnType<typeof namesIn>, path: string): Record<string, string> {
  const decoded: Record<string, string> = {}
  if (names.length === 0) return decoded
  const segments = path.split('/')
  const issues: Issue[] = []
  for (const [place, name] of names) {
    const id = decodeSegment(segments[place] ?? '')
    if (id !== null && isUsableId(id)) decoded[name] = id
    else issues.push({ path: name, message: id === null ? 'is not valid percent-encoded UTF-8' : NO_ID })
  }
  if (issues.length > 0) throw new LatchkeyError('invalid_request', 'The path is not valid.', { issues })
  return decoded
}

function decodeSegment(segment: string): string | null {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch {
    return null
  }
}

/** Allows the style of `openapi.html`, and no other. */
const STYLE_SOURCE = "'sha256-cffLFcRazVDGnV317dFWzdKGgVB8mG7XhfrrwxvBmK8='"

/** These paths as an Express app, and a problem 404 for all others. */
export function createApp(paths: readonly MountedPath[], log: Logger): Express {
  const app = express()
  app.disable('x-powered-by')
  app.use(
    helmet({
      contentSecurityPolicy: {
        useDefaults: false,
        directives: {
          defaultSrc: ["'none'"],
          styleSrc: [STYLE_SOURCE],
          baseUri: ["'none'"],
          formAction: ["'none'"],
          frameAncestors: ["'none'"],
        },
      },
    }),
  )
  for (const { path, serve } of paths) {
    // By route: app.all() would make one layer for each of the 35 methods.
    app.route(patternOf(path)).all((req, res, next) => {
      const allowed = serve(req, res, req.path)
      if (allowed === null) return
      // A later path may match: a customer's id may equal the name of a route.
      res.locals.allowed = allowed
      next()
    })
  }
  app.use((_req, res) => answerFailure(res, notServed(res), log))
  const failed: ErrorRequestHandler = (error, _req, res, _next) => answerFailure(res, error, log)
  app.use(failed)
  return app
}

function notServed(res: Response): LatchkeyError {
  const { allowed } = res.locals as { readonly allowed?: string }
  return allowed === undefined ? routeNotFound() : methodNotAllowed(res, allowed)
}

function routeNotFound(): LatchkeyError {
  return new LatchkeyError('route_not_found', 'There is no such route: see GET /docs.')
}

/** The error for a method that the path does not take. Sets `Allow` on the answer. */
export function methodNotAllowed(res: ServerResponse, allowed: string): LatchkeyError {
  res.setHeader('Allow', allowed)
  return new LatchkeyError(
    'method_not_allowed',
    `This route takes ${allowed.replaceAll(', ', ' and ')} only.`,
  )
}

/** A regular expression: Express would decode its own path syntax, and not say which id is wrong. */
export function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/:\w+/g, '[^/]+')}$`)
}

/** Serves these paths with Express, and requests that a shortcut takes without it. */
export function createListener(
  paths: readonly MountedPath[],
  log: Logger,
  shortcuts: readonly Shortcut[] = [],
): RequestListener {
  const app = createApp(paths, log)
  return (req, res) => {
    if (shortcuts.some((take) => take(req, res))) return
    // Express tries no route for a target that it can't parse. It accepts plain requests; its types don't say so.
    app(req as Request, res as Response, () => answerFailure(res, routeNotFound(), log))
  }
}

/** Returns whether it answered the request. */
type Shortcut = (req: IncomingMessage, res: ServerResponse) => boolean

/**
 * Serves a path that ends with its only id, without Express, which costs 13 to 22 µs of CPU (Node 24): a quarter of a
 * cached read, and a quarter of a delivery without its store work.
 */
export function createShortcut({ path: pattern, serve }: MountedPath, methods?: readonly string[]): Shortcut {
  const prefix = pattern.slice(0, pattern.indexOf(':'))
  return (req, res) => {
    const { url = '', method = '' } = req
    if (!url.startsWith(prefix) || methods?.includes(method) === false) return false
    const path = pathOf(url)
    if (path.length === prefix.length || path.includes('/', prefix.length)) return false
    serve(req, res, path)
    return true
  }
}
