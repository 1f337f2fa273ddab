/* The OpenAPI 3.1 description of the API, made from the table of routes. */

import { STATUS_CODES } from 'node:http'
import { z } from 'zod'
import { ERRORS, type ErrorCode } from '../../src/errors.js'
import * as answers from '../../src/handlers/answers.js'
import { ID_BOUNDS, LINES_TYPE } from '../../src/handlers/body.js'
import { changeAnswer } from '../../src/handlers/changes.js'
import { check } from '../../src/handlers/checks.js'
import { consoleSession } from '../../src/handlers/console.js'
import * as control from '../../src/handlers/control.js'
import * as customers from '../../src/handlers/customers.js'
import { deliveriesAnswer } from '../../src/handlers/deliveries.js'
import * as entitlements from '../../src/handlers/entitlements.js'
import * as events from '../../src/handlers/events.js'
import { doctorAnswer } from '../../src/handlers/health.js'
import { problem } from '../../src/handlers/problem.js'
import * as rebuilds from '../../src/handlers/rebuilds.js'
import { replay } from '../../src/handlers/replays.js'
import type { Route, RouteGroup } from '../../src/handlers/route.js'
import { membership } from '../../src/handlers/sync/memberships.js'
import { MESSAGE_TYPES, message } from '../../src/handlers/sync/messages.js'
import * as sync from '../../src/handlers/sync.js'
import type { ApiDocument, Content, JsonSchema, Operation, Parameter, Response } from './api-document.js'
import { EXAMPLES } from './examples.js'

/** What an outbound webhook posts. */
const webhookMessage = z.object({
  type: message.shape.type,
  timestamp: answers.instant,
  test: z.literal(true).exactOptional().describe('A test: it is about nobody.'),
  data: changeAnswer,
})

/** The names of types in generated clients. Other schemas are written where they are used. */
const NAMED: Readonly<Record<string, z.ZodType>> = {
  Environment: answers.environment,
  Rail: answers.rail,
  Status: answers.status,
  EndReason: answers.endReason,
  SourceKey: answers.sourceKey,
  Source: answers.source,
  AccessSnapshot: answers.snapshot,
  Entitlement: answers.entitlement,
  CustomerAccess: answers.access,
  ProductAccess: answers.productAccess,
  Feature: answers.feature,
  FeatureAccess: answers.featureAccess,
  PlatformCall: answers.platformCall,
  Check: check,
  Explanation: entitlements.explanationAnswer,
  Customer: customers.customerAnswer,
  Change: changeAnswer,
  Act: customers.actAnswer,
  Erasure: customers.erasureAnswer,
  StoredEvent: events.storedEvent,
  EventDetail: events.eventDetail,
  Policy: rebuilds.policy,
  AccessDifference: rebuilds.summary,
  Job: rebuilds.jobAnswer,
  Replay: replay,
  SyncStatus: sync.syncStatus,
  Membership: membership,
  SyncPlan: sync.planAnswer,
  Message: message,
  WebhookMessage: webhookMessage,
  SyncRun: sync.ran,
  Findings: doctorAnswer,
  DaemonStatus: control.statusAnswer,
  Reloaded: control.reloaded,
  Keys: control.keysAnswer,
  ConsoleSession: consoleSession,
  Deliveries: deliveriesAnswer,
  Problem: problem,
}

/** What the parameters of paths, queries and headers mean. */
const PARAMETERS: Readonly<Record<string, string>> = {
  customerId: 'The id of a customer of the payments service.',
  productId: 'The id of a product of the payments service.',
  feature: 'The id of a feature in the config.',
  eventId: 'The id of a stored event.',
  replayId: 'The id of a replay.',
  backfillId: 'The id of a backfill.',
  endpoint: 'The name of an endpoint in the config.',
  environment:
    'The environment that the request is about. If omitted: the only one of the key, else the only one with an endpoint, else live.',
  at: 'The instant that the answer is about; now if omitted.',
  limit: 'The maximum number of items on the page.',
  cursor: 'The `nextCursor` of the page before; the first page if omitted.',
  query: 'What an id, a reference or, with the scope `write`, an email, an account or its name begins with.',
  by: 'Whether to count days or weeks. Both are in UTC, and weeks begin on Monday.',
  externalRef: 'Your own reference to the customer.',
  disposition: 'Only events with this disposition.',
  type: 'Only events of this type: the v3 name, for both generations.',
  paymentId: 'Only events of this payment.',
  subscriptionId: 'Only events of this subscription.',
  conflicts: 'If true, only events under whose id another body came.',
  from: 'Only what was received, changed or queued at this instant or later.',
  to: 'Only what was received, changed or queued before this instant.',
  sha256: 'The SHA-256 of another body that came under the same id.',
  withManual: 'Imports changes by hand too.',
  dryRun: 'Checks every line and stores nothing.',
  expect: 'The fingerprint of the policy that you mean.',
  state: 'Only memberships in this state.',
  webhook: 'The id of an address in `sync.webhooks` of the config.',
  id: 'Only the message with this id, which each address may have.',
  status: 'Only messages with this status.',
  target: 'Only members of this role or group.',
  thorough: 'Reads every page and every body.',
  'Idempotency-Key': 'The same act under the same key is done once.',
  'Last-Event-ID': 'The cursor of the last event received: goes on after it, whatever `cursor` says.',
  'If-None-Match': 'The `ETag` of an earlier answer: 304 if it still holds.',
  'X-Webhook-Timestamp': 'When the delivery was signed, in Unix seconds.',
  'X-Webhook-Event': 'The type of the event. No signature covers it.',
}

const HEADERS: Readonly<Record<string, string>> = {
  ETag: 'Identifies this state of the answer, for `If-None-Match`.',
  'Cache-Control': 'Whether a client may keep the answer.',
  Location: 'Where to ask for the progress.',
  'Retry-After': 'Seconds to wait before another attempt.',
  'WWW-Authenticate': '`Bearer`, or `Signature` for a delivery.',
  'X-Request-Id':
    'Your own `X-Request-Id` if it is 1 to 128 letters, digits or characters of `_.:=+/-`; a new one if not. The log has it too.',
}

/** Failures of the server ahead of the route, and bugs. */
const ANY_TIME = ['body_incomplete', 'headers_too_large', 'internal_error'] as const
type Code = ErrorCode | 'internal_error'

const ABOUT = `Latchkey turns signed payment webhooks into access, and answers who may use what.

Every \`GET\` also takes \`HEAD\`, except those of \`/doctor\`, \`/sync/check\` and \`/changes/stream\`. Unknown parameters and unknown keys of a body are refused. A list is \`{ "items": […], "pagination": { "nextCursor", "hasMore" } }\`: send \`nextCursor\` back as \`cursor\`. Times are ISO 8601. A failure is \`application/problem+json\` with a stable \`code\`.

The guide is docs/api.md in the repository.`

/** @param version of the program */
export function describeApi(groups: readonly RouteGroup<never>[], version: string): ApiDocument {
  const paths: Record<string, Record<string, Operation>> = {}
  const made = { schemas: {}, responses: {} }
  for (const { name, routes } of groups) {
    for (const route of routes) {
      const path = route.path.replaceAll(/:(\w+)/g, '{$1}')
      paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, name, made) }
    }
  }
  const document = {
    openapi: '3.1.1',
    info: { title: 'Latchkey', version, description: ABOUT, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: '/', description: 'The daemon that serves this document.' }],
    tags: groups.map(({ name, about }) => ({ name, description: about })),
    paths,
    webhooks: webhooksOf(made),
    components: {
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'An API key, made with `latchkey keys create`.' },
        signature: {
          type: 'apiKey',
          in: 'header',
          name: 'X-Webhook-Signature',
          description: '`v1=` and the hex HMAC-SHA256 of the timestamp, a dot and the body.',
        },
      },
      schemas: sorted(made.schemas),
      responses: sorted(made.responses),
    },
  }
  return JSON.parse(JSON.stringify(document).replaceAll('"#/$defs/', '"#/components/schemas/')) as ApiDocument
}

/** The outbound webhooks. One message has the same headers and form as another; its type says what has happened. */
function webhooksOf(made: Made): ApiDocument['webhooks'] {
  const header = (name: string, description: string): Parameter => ({
    name,
    in: 'header',
    required: true,
    description,
    schema: { type: 'string' },
  })
  const parameters = [
    header('webhook-id', 'The same at every attempt and at every address.'),
    header('webhook-timestamp', 'When this attempt was signed, in Unix seconds.'),
    header(
      'webhook-signature',
      'One or more of `v1,` and the base64 HMAC-SHA256, by the Standard Webhooks scheme.',
    ),
  ]
  const content = { 'application/json': { schema: schemaOf(webhookMessage, made) } }
  const post = (type: string, summary: string): Operation => ({
    operationId: type.replace(/\.(.)/, (_, letter) => letter.toUpperCase()),
    tags: ['Sync'],
    summary,
    description: 'Posted to your addresses.',
    security: [],
    parameters,
    requestBody: { required: true, content },
    responses: {
      '2XX': { description: 'Delivered.' },
      410: { description: 'Never to be sent again.' },
      default: { description: 'Tried again, for three days.' },
    },
  })
  return Object.fromEntries(
    Object.entries(MESSAGE_TYPES).map(([type, summary]) => [type, { post: post(type, summary) }]),
  )
}

interface Made {
  readonly schemas: Record<string, JsonSchema>
  readonly responses: Record<string, Response>
}

function operationOf(route: Route<never>, tag: string, made: Made): Operation {
  const { operationId, summary, scope, isSigned, environments, body, bodyType } = route
  const both = environments === 'both' || environments === 'shown of both'
  const rights = isSigned
    ? 'Needs a signature.'
    : scope === null
      ? 'Needs no key.'
      : scope === 'any'
        ? 'Needs a key, of any scope.'
        : `Needs a key with the scope \`${scope}\`${both ? ' for both environments' : ''}.`
  const example = EXAMPLES[operationId]?.body
  return {
    operationId,
    tags: [tag],
    summary,
    description: rights,
    security: isSigned
      ? [{ signature: [] }]
      : scope === null
        ? []
        : [{ key: scope === 'any' ? [] : [scope] }],
    parameters: parametersOf(route, made),
    ...(body !== undefined && {
      requestBody: {
        required: isSigned || !body.safeParse({}).success,
        content:
          bodyType === 'lines'
            ? { [LINES_TYPE]: { schema: { type: 'string', description: 'Lines of an export.' } } }
            : {
                'application/json': {
                  schema: schemaOf(body, made),
                  ...(example !== undefined && { example }),
                },
              },
      },
    }),
    responses: { ...answersOf(route, made), ...failuresOf(route, made) },
  }
}

function parametersOf(route: Route<never>, made: Made): readonly Parameter[] {
  const { path, environments, query, isSigned, takesIdempotencyKey, takesLastEventId, tagged } = route
  const one = (place: Parameter['in'], name: string, required: boolean, schema: JsonSchema): Parameter => ({
    name,
    in: place,
    required,
    description: schema.description ?? PARAMETERS[name] ?? '',
    schema,
  })
  const header = (name: string, required: boolean) =>
    one('header', name, required, { type: 'string', ...(name === 'Idempotency-Key' && ID_BOUNDS) })
  const { properties = {}, required = [] } = query === 'any' ? {} : schemaOf(query, made)
  return [
    ...[...path.matchAll(/:(\w+)/g)].map(([, name = '']) =>
      one('path', name, true, { type: 'string', ...ID_BOUNDS }),
    ),
    ...(environments === 'none' || environments === 'both'
      ? []
      : [one('query', 'environment', false, schemaOf(answers.environment, made))]),
    ...Object.entries(properties).map(([name, schema]) =>
      one('query', name, required.includes(name), schema),
    ),
    ...(takesIdempotencyKey ? [header('Idempotency-Key', false)] : []),
    ...(takesLastEventId ? [header('Last-Event-ID', false)] : []),
    ...(tagged === undefined ? [] : [header('If-None-Match', false)]),
    ...(isSigned ? [header('X-Webhook-Timestamp', true), header('X-Webhook-Event', false)] : []),
  ]
}

function answersOf(route: Route<never>, made: Made): Readonly<Record<string, Response>> {
  const { operationId, answer, status = 200, tagged, acceptedAt } = route
  const example = EXAMPLES[operationId]?.answer
  const content =
    answer instanceof z.ZodType
      ? {
          'application/json': { schema: schemaOf(answer, made), ...(example !== undefined && { example }) },
        }
      : { [answer]: { schema: answer.startsWith('text/') ? { type: 'string' } : {} } }
  const isAlwaysAccepted = status === 202
  const kept = tagged === undefined ? [] : ['ETag', 'Cache-Control']
  return {
    ...(isAlwaysAccepted ? {} : { [status]: responseOf(status, kept, content) }),
    ...(isAlwaysAccepted || acceptedAt !== undefined
      ? { 202: responseOf(202, acceptedAt === undefined ? [] : ['Location'], content) }
      : {}),
    ...(tagged === undefined ? {} : { 304: responseOf(304, kept) }),
  }
}

function responseOf(status: number, headers: readonly string[], content?: Content): Response {
  return {
    description: STATUS_CODES[status] ?? '',
    headers: headersOf([...headers, 'X-Request-Id']),
    ...(content !== undefined && { content }),
  }
}

function headersOf(names: readonly string[]): NonNullable<Response['headers']> {
  return Object.fromEntries(
    names.map((name) => [
      name,
      {
        description: HEADERS[name] ?? '',
        required: true,
        schema: { type: name === 'Retry-After' ? 'integer' : 'string' },
      },
    ]),
  )
}

/** Every expected failure of a route, apart from those that any request may have. */
export function errorsOf(route: Route<never>): readonly ErrorCode[] {
  const { path, scope, environments, query, body, bodyType, errors = [] } = route
  const takesAnything = query === 'any' && environments === 'none' && !path.includes(':')
  return [
    ...(takesAnything ? [] : (['invalid_request'] as const)),
    ...(scope === null
      ? []
      : ([
          'unauthorized',
          'key_expired',
          'too_many_wrong_keys',
          'forbidden',
          'rate_limited',
          'store_unavailable',
        ] as const)),
    ...(body === undefined
      ? []
      : (['body_too_large', 'body_incomplete', 'encoding_not_supported', 'not_stored'] as const)),
    ...(bodyType === undefined ? [] : (['media_type_not_supported'] as const)),
    ...errors,
  ]
}

/** By status, with the codes that each may have. Routes share them by reference. */
function failuresOf(route: Route<never>, made: Made): Readonly<Record<string, { readonly $ref: string }>> {
  const codes = new Set<Code>([...errorsOf(route), ...ANY_TIME])
  const byStatus = Map.groupBy(codes, (code) => kindOf(code)[0])
  return Object.fromEntries(
    [...byStatus].map(([status, own]) => [status, failureOf(status, own.toSorted(), made)]),
  )
}

function kindOf(code: Code): readonly [status: number, title: string] {
  return (code === 'internal_error' ? null : ERRORS[code]) ?? [500, 'Internal error']
}

function failureOf(status: number, codes: readonly Code[], made: Made) {
  const name = codes.join('-or-')
  const titles = codes.map((code) => `\`${code}\`: ${kindOf(code)[1]}.`)
  const headers =
    status === 401 ? ['WWW-Authenticate'] : status === 429 || status === 503 ? ['Retry-After'] : []
  made.responses[name] = {
    description: titles.join(' '),
    headers: headersOf([...headers, 'X-Request-Id']),
    content: {
      'application/problem+json': {
        schema: {
          allOf: [
            schemaOf(problem, made),
            { type: 'object', required: ['code'], properties: { code: { type: 'string', enum: codes } } },
          ],
        },
      },
    },
  }
  return { $ref: `#/components/responses/${name}` }
}

const names = z.registry<{ id: string }>()
for (const [id, schema] of Object.entries(NAMED)) names.add(schema, { id })

/** The JSON Schema of a value on the wire: a reference, if it has a name. */
function schemaOf(schema: z.ZodType, { schemas }: Made): JsonSchema {
  const options = { io: 'input', metadata: names, override: describe } as const
  const { $defs = {}, properties = {} } = z.toJSONSchema(z.object({ it: schema }), options) as JsonSchema
  Object.assign(schemas, $defs)
  return properties.it ?? {}
}

/** A query holds text; a description names the type that a client should have for it. */
const described = z.object({ described: z.record(z.string(), z.unknown()) })

const describe: NonNullable<z.core.JSONSchemaGeneratorParams['override']> = ({ zodSchema, jsonSchema }) => {
  const own = z.globalRegistry.get(zodSchema) ?? {}
  const replaced = described.safeParse(own)
  if (replaced.success) {
    for (const key of Object.keys(jsonSchema)) delete jsonSchema[key]
    Object.assign(jsonSchema, replaced.data.described)
    return
  }
  Object.assign(jsonSchema, own)
  // The format says it all.
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
}

function sorted<Value>(record: Readonly<Record<string, Value>>): Readonly<Record<string, Value>> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)))
}
