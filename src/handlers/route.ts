/* A route: one declaration of its inputs and its answer, and the function that handles it. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { z } from 'zod'
import type { Catalog } from '../entitlements/features.js'
import type { ErrorCode } from '../errors.js'
import type { RequestMetrics, TimedRoute } from '../operations/metrics.js'
import type { Endpoint } from '../provider/endpoint.js'
import type { Environment } from '../provider/event.js'
import type { Db } from '../store/schema.js'
import type { DeepReadonly } from './answers.js'
import type { ApiKey } from './api-key.js'
import type { Authenticate, NeededScope } from './authenticate.js'

/**
 * The environments of a request. `one`: the one in `?environment=`; if omitted, the key's only one, else the only
 * configured one, else live. `shown`: the named one, or all of the key's. `both`: always both, so the key must cover
 * both. `shown of both`: the key must cover both, and one may be named. `none`: shows no data, or another part of the
 * request names it.
 */
type EnvironmentRule = 'one' | 'shown' | 'both' | 'shown of both' | 'none'

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** The default: one environment. */
export const READ = { scope: 'read', environments: 'one' } as const
/** For operators: of the environments of their key. */
export const ADMIN = { scope: 'admin', environments: 'shown' } as const
/** For operators, with a key for both environments. */
export const ADMIN_OF_BOTH = { scope: 'admin', environments: 'both' } as const

/** The names in a path: `'/entitlements/:customerId'` binds `customerId`. */
export type ParamNames<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamNames<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never

/** A parsed and authorised request. */
export type ParsedRequest<Path extends string, Rule extends EnvironmentRule, Query, Body> = {
  readonly params: Readonly<Record<ParamNames<Path>, string>>
  readonly query: Query
  readonly body: Body
  readonly key: ApiKey
  /** Null if the route takes none, or the request has none. */
  readonly idempotencyKey: string | null
  /** Null if the route takes none, or the request has none. */
  readonly lastEventId: string | null
} & (Rule extends 'one'
  ? { readonly environment: Environment }
  : { readonly environments: readonly Environment[] })

/** An answer that is not JSON. With `sha256`, callers may cache it and revalidate. */
export interface Content {
  readonly content: string | Buffer
  readonly type: string
  readonly sha256?: string
  /** Keeps browsers from rendering it as a page. */
  readonly fileName?: string
}

/** Sends an answer that goes on until one side ends it. */
export type Stream = (res: ServerResponse) => void

type AnswerOf<Answer> = Answer extends z.ZodType ? DeepReadonly<z.output<Answer>> : Content | Stream
type JsonOf<Answer> = Answer extends z.ZodType ? z.input<Answer> : never

/**
 * Uses only node:http, so that the busiest routes run without Express, which swaps the prototypes of every request and
 * response. Throws, or rejects with, a LatchkeyError for an expected failure. A synchronous answer needs no promise.
 */
export type RawHandler<Param extends string = never> = (
  req: IncomingMessage,
  res: ServerResponse,
  params: Readonly<Record<Param, string>>,
) => Promise<void> | undefined

/** What serving any route needs. What a reload may change is asked for each time. */
export interface MountDeps {
  readonly authenticate: Authenticate
  /** The configured ones. */
  readonly endpoints: () => readonly Endpoint[]
  readonly catalog: () => Catalog
  /** The name of the reference by which apps look up customers. */
  readonly reference: string
  /** For reads. Rejects with `store_unavailable` if it can't answer: never with an empty answer. */
  readonly db: Db
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly metrics: Pick<RequestMetrics, 'observeDuration'>
  readonly log: Logger
}

type AnyAnswer = z.ZodType | `${string}/${string}`

/** The declaration of a route. */
interface RouteSpec<Rule extends EnvironmentRule, Query, Body, Answer> {
  /** Its name in generated clients. */
  readonly operationId: string
  /** One sentence. */
  readonly summary: string
  /** The scope that the key needs; `any`: none in particular; null: no key needed. */
  readonly scope: NeededScope | null
  /** Callers sign the body instead of sending a key. */
  readonly isSigned?: true
  readonly environments: Rule
  /** Besides `environment`. Omitted: no parameters. `any`: unknown ones are ignored, since they filter nothing. */
  readonly query?: Query | 'any'
  /** Omitted: no body is read. */
  readonly body?: Body
  /** `json`: requires the JSON media type. `lines`: lines of text, sent as NDJSON. Omitted: JSON of any media type. */
  readonly bodyType?: 'json' | 'lines'
  readonly takesIdempotencyKey?: boolean
  readonly takesLastEventId?: boolean
  /** The answer, whatever it is, is the last one on its connection: requests behind it have no effect. */
  readonly isLast?: true
  /** The schema of a JSON answer, or the media type of another one. */
  readonly answer: Answer
  /** 200 if omitted. */
  readonly status?: 201 | 202
  /**
   * Callers may cache the answer and revalidate; the ETag covers this part of it, or all of it (true). Content brings
   * its own tag.
   */
  readonly tagged?: true | ((json: JsonOf<Answer>) => unknown)
  /** The URL to poll, sent with a 202; null if the work is done. */
  readonly acceptedAt?: (json: JsonOf<Answer>) => string | null
  /** The expected failures beyond those that the other fields imply. */
  readonly errors?: readonly ErrorCode[]
  /** It calls platforms, reads a lot, or never ends: HEAD, which shows none of it, is refused. */
  readonly hasNoHead?: boolean
  readonly timedAs?: TimedRoute
}

/** One route of the table, with the types that differ between routes erased. */
export interface Route<Deps>
  extends Omit<RouteSpec<EnvironmentRule, z.ZodObject, z.ZodType, AnyAnswer>, 'tagged' | 'acceptedAt'> {
  readonly method: Method
  readonly path: string
  readonly query: z.ZodObject | 'any'
  readonly tagged?: true | ((json: never) => unknown)
  readonly acceptedAt?: (json: never) => string | null
  readonly handle?: (asked: never, deps: Deps & MountDeps) => unknown
  readonly plain?: (deps: Deps & MountDeps) => RawHandler<string>
}

const NO_PARAMETERS = z.object({})

/** Declares a route, such as `GET /entitlements/:customerId`. */
export function route<
  const Path extends string,
  Rule extends EnvironmentRule,
  const Answer extends AnyAnswer,
  Deps = unknown,
  Query extends z.ZodObject = typeof NO_PARAMETERS,
  Body = undefined,
>(
  name: `${Method} ${Path}`,
  declared: RouteSpec<Rule, Query, Body, Answer> &
    (
      | {
          readonly handle: (
            asked: ParsedRequest<Path, Rule, z.output<Query>, BodyOf<Body>>,
            deps: Deps & MountDeps,
          ) => AnswerOf<Answer> | Promise<AnswerOf<Answer>>
        }
      // Does everything itself, for every method of its path: the other fields are for readers of the table.
      | { readonly plain: (deps: Deps & MountDeps) => RawHandler<ParamNames<Path>> }
    ),
): Route<Deps> {
  // Type-checked by now; the table has one type for all.
  const [method, path] = name.split(' ')
  return { method, path, query: NO_PARAMETERS, ...declared } as unknown as Route<Deps>
}

type BodyOf<Body> = Body extends z.ZodType ? z.output<Body> : undefined

/** The HTTP methods of a route. */
export function methodsOf({ method, hasNoHead }: Route<never>): readonly string[] {
  return method === 'GET' && !hasNoHead ? ['GET', 'HEAD'] : [method]
}

/** The routes about one subject. */
export interface RouteGroup<Deps> {
  readonly name: string
  /** One sentence. */
  readonly about: string
  readonly routes: readonly Route<Deps>[]
}
