import { z } from 'zod'
import { type Endpoint, MAX_TOLERANCE_SECONDS } from '../provider/endpoint.js'
import { MAX_AHEAD_MS } from '../provider/envelope.js'
import { parseManualEvent, parseToldEvent } from '../provider/event-form.js'
import { parseInstant } from '../provider/instant.js'
import { isJsonObject } from '../provider/json.js'
import {
  type DistinctHeaders,
  EVENT_HEADER,
  type LastingRefusal,
  SIGNATURE_HEADER,
  TIMESTAMP_HEADER,
  verifySignatureAsOf,
} from '../provider/signature.js'
import type { RecordedDelivery } from './delivery.js'
import { MANUAL_ENDPOINT } from './prepare.js'

/** Why a line is not taken. */
export type LineRefusal =
  | 'line_too_long'
  | 'line_invalid'
  | 'endpoint_not_found'
  | LastingRefusal['code']
  | 'secret_expired'
  | 'other_environment'
  | 'received_at_in_future'
  | 'received_at_unlikely'

export interface RefusedLine {
  readonly outcome: 'refused'
  readonly reason: LineRefusal
  /** For people: never holds anything of the line. */
  readonly detail: string
}

export type ReadLine = { readonly outcome: 'read'; readonly delivery: RecordedDelivery } | RefusedLine

const base64 = z.string().transform((text, context) => {
  const bytes = Buffer.from(text, 'base64')
  // What is no base64 is passed over in reading, which shows when it is written again.
  if (bytes.toString('base64') === text) return bytes
  context.addIssue('is not base64')
  return z.NEVER
})

const instant = z.string().transform((text, context) => {
  const parsed = parseInstant(text)
  if (parsed !== null) return parsed
  context.addIssue('is not a time such as 2026-01-31T12:00:00.000Z')
  return z.NEVER
})

const received = { bodyBase64: base64, receivedAt: instant }

const deliveryLine = z.object({
  kind: z.undefined('is none that is known').optional(),
  endpoint: z.string(),
  headers: z.record(z.string(), z.string()),
  ...received,
})

const readingLine = z.object({
  kind: z.literal('reading'),
  environment: z.enum(['live', 'sandbox']),
  endpoint: z.string().refine((name) => name !== MANUAL_ENDPOINT, 'is no endpoint'),
  headers: z.record(z.string(), z.string()),
  event: z.unknown(),
  bodyRemoved: z.object({
    why: z.enum(['expired', 'erased', 'redacted']),
    at: instant,
    bytes: z.int().nonnegative(),
    sha256: z.string().regex(/^[0-9a-f]{64}$/, 'is not a hash'),
  }),
  ...received,
})

const manualLine = z.object({
  kind: z.literal('manual'),
  environment: z.enum(['live', 'sandbox']),
  ...received,
})

/**
 * Reads what `exportLine` wrote, and checks all that is said to have been signed. The place that a delivery had in
 * time is taken from the line, since no signature covers it: unless it is yet to come at `now` (epoch milliseconds), or
 * nowhere near the signed time, since an event may be dated no further ahead than its receipt allows. A delivery's
 * environment is the one that its endpoint has today; what nobody signed tells its own.
 */
export function readImportLine(
  line: string,
  endpointNamed: (name: string) => Endpoint | undefined,
  now: number,
): ReadLine {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return refuseLine('line_invalid', 'is not JSON')
  }
  const parsed = lineOf(value).safeParse(value)
  if (!parsed.success) return refuseLine('line_invalid', describeIssues(parsed.error))
  const { data } = parsed
  if (data.receivedAt > now + MAX_AHEAD_MS) {
    return refuseLine('received_at_in_future', 'it is said to have been received more than a day from now')
  }
  if (data.kind === 'manual') return readManual(data)
  return data.kind === 'reading' ? readReading(data) : readDelivery(data, endpointNamed)
}

/** The kind of line that something is, or is nearest to. */
function lineOf(value: unknown): typeof manualLine | typeof readingLine | typeof deliveryLine {
  const kind = isJsonObject(value) ? value.kind : undefined
  if (kind === 'manual') return manualLine
  return kind === 'reading' ? readingLine : deliveryLine
}

export function refuseLine(reason: LineRefusal, detail: string): RefusedLine {
  return { outcome: 'refused', reason, detail }
}

function readManual({ environment, bodyBase64: body, receivedAt }: z.infer<typeof manualLine>): ReadLine {
  if (parseManualEvent(body) === null) {
    return refuseLine('line_invalid', 'bodyBase64 holds nothing that was done by hand')
  }
  const delivery = { endpoint: MANUAL_ENDPOINT, environment, body, headers: null, receivedAt }
  return { outcome: 'read', delivery }
}

function readReading({
  environment,
  endpoint,
  headers: told,
  event: toldEvent,
  bodyRemoved: { sha256: bodySha256, ...removed },
  bodyBase64: body,
  receivedAt,
}: z.infer<typeof readingLine>): ReadLine {
  const event = parseToldEvent(toldEvent)
  if (event === null || event.createdAt > receivedAt + MAX_AHEAD_MS) {
    return refuseLine('line_invalid', 'event is none that a delivery can be read as')
  }
  const values = distinct(told)
  const headers = {
    event: values[EVENT_HEADER]?.join(', ') ?? null,
    timestamp: values[TIMESTAMP_HEADER]?.join(', ') ?? '',
    signature: values[SIGNATURE_HEADER]?.join(', ') ?? '',
  }
  const reading = { event, bodySha256, removed }
  return { outcome: 'read', delivery: { environment, endpoint, headers, body, receivedAt, reading } }
}

function readDelivery(
  { endpoint: name, headers: told, bodyBase64: body, receivedAt }: z.infer<typeof deliveryLine>,
  endpointNamed: (name: string) => Endpoint | undefined,
): ReadLine {
  const endpoint = endpointNamed(name)
  if (endpoint === undefined) return refuseLine('endpoint_not_found', 'no such endpoint is configured')
  const headers = distinct(told)
  const check = verifySignatureAsOf({ body, headers, endpoint })
  if (!check.ok) return refuseSignature(check)
  const { timestamp, signature } = check
  // No endpoint takes what was signed longer before, or after, it is received.
  if (Math.abs(receivedAt - Number(timestamp) * 1_000) > MAX_TOLERANCE_SECONDS * 1_000) {
    return refuseLine(
      'received_at_unlikely',
      'it is said to have been received over a day from its signed time',
    )
  }
  const event = headers[EVENT_HEADER]?.join(', ') ?? null
  const { environment } = endpoint
  return {
    outcome: 'read',
    delivery: { endpoint: name, environment, body, headers: { event, timestamp, signature }, receivedAt },
  }
}

const SIGNATURE_DETAIL: Readonly<Record<LastingRefusal['code'], string>> = {
  signature_missing: 'it has no signature',
  signature_invalid: 'no secret that the endpoint has signed these bytes',
  timestamp_invalid: 'it has no timestamp in Unix seconds',
}

function refuseSignature({ code, expiredSecret }: LastingRefusal): RefusedLine {
  if (expiredSecret) return refuseLine('secret_expired', 'the secret that signed it had ended by then')
  return refuseLine(code, SIGNATURE_DETAIL[code])
}

/** Under names in lower case, as Node shows them. */
function distinct(headers: Readonly<Record<string, string>>): DistinctHeaders {
  const values = new Map<string, readonly string[]>()
  for (const [name, value] of Object.entries(headers)) {
    const known = name.toLowerCase()
    values.set(known, [...(values.get(known) ?? []), value])
  }
  return Object.fromEntries(values)
}

function describeIssues({ issues }: z.ZodError): string {
  return issues.map(({ path, message }) => [path.join('.'), message].filter(Boolean).join(': ')).join('; ')
}
