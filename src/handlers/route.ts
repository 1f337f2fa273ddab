/* What a route is: one declaration of what it takes and answers, and the function that does it. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { z } from 'zod'
import type { ErrorCode } from '../errors.js'
import type { RequestMetrics, TimedRoute } from '../operations/metrics.js'
import type { Environment } from '../provider/event.js'
import type { Told } from './answers.js'
import type { ApiKey, ApiScope } from './api-key.js'
import type { Authenticate } from './authenticate.js'

/**
 * Which environments a request is about. `one`: the one that `?environment=` names; left out, the only one of the key,
 * else the only one that is configured, else live. `shown`: the one that is named, or all of the key's. `both`: always
 * both, so that the key must be for both. `shown of both`: the key must be for both, and one may be named. `none`: it
 * shows no data, or another part of the request says so.
 */
type EnvironmentRule = 'one' | 'shown' | 'both' | 'shown of both' | 'none'

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** Of most questions: about one environment. */
export const READ = { scope: 'read', environments: 'one' } as const

/** The names that a path binds: `'/entitlements/:customerId'` binds `customerId`. */
export type ParamNames<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamNames<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never

/** What a request says, parsed and allowed. */
export type Asked<Path extends string, Rule extends EnvironmentRule, Query, Body> = {
  readonly params: Readonly<Record<ParamNames<Path>, string>>
  readonly query: Query
  readonly body: Body
  readonly key: ApiKey
  /** Null unless the route takes one, and the request has it. */
  readonly idempotencyKey: string | null
} & (Rule extends 'one'
  ? { readonly environment: Environment }
  : { readonly environments: readonly Environment[] })

/** An answer that is not JSON. With `sha256` a caller may keep it, and ask whether it is still that one. */
export interface Content {
  readonly content: string | Buffer
  readonly type: string
  readonly sha256?: string
  /** No browser may take it for a page of ours. */
  readonly fileName?: string
}

type AnswerOf<Answer> = Answer extends z.ZodType ? Told<z.output<Answer>> : Content
type JsonOf<Answer> = Answer extends z.ZodType ? z.input<Answer> : never

/**
 * Written against node:http alone, so that the routes that most requests are for run without Express, too: Express
 * swaps the prototypes of every request and response. It throws, or rejects with, a LatchkeyError for an expected
 * failure. What is answered at once needs no promise.
 */
export type RawHandler<Param extends string = never> = (
  req: IncomingMessage,
  res: ServerResponse,
  params: Readonly<Record<Param, string>>,
) => Promise<void> | undefined

/** What serving any route needs. */
export interface MountDeps {
  readonly authenticate: Authenticate
  /** The environments of the configured endpoints; asked each time, since a reload may change them. */
  readonly environments: () => readonly Environment[]
  readonly metrics: RequestMetrics
  readonly log: Logger
}

type AnyAnswer = z.ZodType | `${string}/${string}`

/** What every route says of itself. */
interface Facts<Path extends string, Rule extends EnvironmentRule, Query, Body, Answer> {
  /** One sentence. */
  readonly summary: string
  /** What a key must have; null: nobody needs a key. */
  readonly scope: ApiScope | null
  readonly environments: Rule
  /** What an id of the path must be, beyond what every one must. */
  readonly params?: Readonly<Partial<Record<ParamNames<Path>, z.ZodType<string>>>>
  /** Beside `environment`; left out: no parameter. `any`: others are ignored, since they ask for nothing. */
  readonly query?: Query | 'any'
  /** Left out: no body is read. */
  readonly body?: Body
  /** `json`: only one that says it is JSON. `lines`: lines of text, sent as NDJSON. Left out: JSON, whatever it says. */
  readonly bodyType?: 'json' | 'lines'
  readonly takesIdempotencyKey?: boolean
  /** JSON, in which the values of the program are encoded; or the media type of another answer. */
  readonly answer: Answer
  /** 200 if left out. */
  readonly status?: 201 | 202
  /** Callers may keep the answer, and ask whether it still holds: this part of it counts for that; true: all of it. */
  readonly tagged?: true | ((json: JsonOf<Answer>) => unknown)
  /** Where to ask how it goes on, with a 202; null: it is done. */
  readonly acceptedAt?: (json: JsonOf<Answer>) => string | null
  /** The expected failures beyond those that its other facts imply. */
  readonly errors?: readonly ErrorCode[]
  /** It asks platforms, or reads much: not to be asked by HEAD, which shows none of it. */
  readonly hasNoHead?: boolean
  readonly timedAs?: TimedRoute
}

/** One route of the table; what differs between routes in type is erased. */
export interface Route<Deps>
  extends Omit<Facts<string, EnvironmentRule, z.ZodObject, z.ZodType, AnyAnswer>, 'tagged' | 'acceptedAt'> {
  readonly method: Method
  readonly path: string
  readonly query: z.ZodObject | 'any'
  readonly params: Readonly<Record<string, z.ZodType<string>>>
  readonly tagged?: true | ((json: never) => unknown)
  readonly acceptedAt?: (json: never) => string | null
  readonly handle?: (asked: never, deps: Deps) => unknown
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
  declared: Facts<Path, Rule, Query, Body, Answer> & {
    readonly handle: (
      asked: Asked<Path, Rule, z.output<Query>, BodyOf<Body>>,
      deps: Deps,
    ) => AnswerOf<Answer> | Promise<AnswerOf<Answer>>
  },
): Route<Deps> {
  return entry(name, declared)
}

type BodyOf<Body> = Body extends z.ZodType ? z.output<Body> : undefined

/**
 * Declares a route that does everything itself, for every method of its path: what else it declares is for those who
 * read the table.
 */
export function plainRoute<
  const Path extends string,
  const Answer extends AnyAnswer,
  Deps,
  Query extends z.ZodObject = typeof NO_PARAMETERS,
>(
  name: `${Method} ${Path}`,
  declared: Facts<Path, EnvironmentRule, Query, z.ZodType, Answer> & {
    readonly plain: (deps: Deps & MountDeps) => RawHandler<ParamNames<Path>>
  },
): Route<Deps> {
  return entry(name, declared)
}

/** The types of the handler are checked by now: the table has one for all. */
function entry<Deps>(name: string, declared: object): Route<Deps> {
  const [method, path] = name.split(' ')
  return { method, path, query: NO_PARAMETERS, params: {}, ...declared } as unknown as Route<Deps>
}

/** The methods by which a route is asked. */
export function methodsOf({ method, hasNoHead }: Route<never>): readonly string[] {
  return method === 'GET' && !hasNoHead ? ['GET', 'HEAD'] : [method]
}

/** Every expected failure that a route answers. */
export function errorsOf({ scope, body, bodyType, errors = [] }: Route<never>): readonly ErrorCode[] {
  return [
    'invalid_request',
    'method_not_allowed',
    ...(scope === null ? [] : (['unauthorized', 'forbidden', 'rate_limited', 'store_unavailable'] as const)),
    ...(body === undefined
      ? []
      : (['body_too_large', 'body_incomplete', 'encoding_not_supported', 'not_stored'] as const)),
    ...(bodyType === undefined ? [] : (['media_type_not_supported'] as const)),
    ...errors,
  ]
}
