import { z } from 'zod'
import {
  BACKFILL_ENDPOINT,
  type Endpoint,
  MANUAL_ENDPOINT,
  MAX_TOLERANCE_SECONDS,
} from '../provider/endpoint.js'
import { USUAL_AHEAD_MS } from '../provider/envelope.js'
import { parseManualEvent, parseNormalizedEvent } from '../provider/event.js'
import { parseInstant } from '../provider/instant.js'
import { isJsonObject } from '../provider/json.js'
import { normalise } from '../provider/normalise.js'
import {
  type DistinctHeaders,
  EVENT_HEADER,
  type LastingRefusal,
  SIGNATURE_HEADER,
  TIMESTAMP_HEADER,
  verifySignatureAsOf,
} from '../provider/signature.js'
import type { DeliveryInput, SignedHeaders } from '../store/events.js'

const base64 = z.string().transform((text, context) => {
  const bytes = Buffer.from(text, 'base64')
  // Decoding skips invalid characters, which shows when the bytes are encoded again.
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

const environment = z.enum(['live', 'sandbox'])
const headers = z.record(z.string(), z.string())
const received = { bodyBase64: base64, receivedAt: instant }

/** An original delivery, whose signature can be checked again. Its endpoint decides its environment. */
const deliveryLine = z.object({
  kind: z.undefined('is not a known kind').optional(),
  endpoint: z.string(),
  headers,
  ...received,
})

/** A change by hand, which is not signed. */
const manualLine = z.object({ kind: z.literal('manual'), environment, ...received })

/** What Latchkey reported after a record of the provider, which is not signed either. */
const reportedLine = manualLine.extend({ kind: z.literal('reported') })

/** The normalised form of an event whose signed bytes were removed or rewritten. */
const readingLine = z.object({
  kind: z.literal('reading'),
  environment,
  endpoint: z.string().refine((name) => name !== MANUAL_ENDPOINT, 'is not an endpoint'),
  headers: headers.or(z.literal('reported')),
  event: z.unknown(),
  bodyRemoved: z.object({
    why: z.enum(['expired', 'erased', 'redacted']),
    at: instant,
    bytes: z.int().nonnegative(),
    sha256: z.string().regex(/^[0-9a-f]{64}$/, 'is not a hash'),
  }),
  ...received,
})

type Line = typeof deliveryLine | typeof manualLine | typeof reportedLine | typeof readingLine

/** One line of an export. */
export function exportLine(delivery: DeliveryInput): string {
  return `${JSON.stringify(toLine(delivery))}\n`
}

function toLine({ environment, endpoint, headers, body, receivedAt, reading }: DeliveryInput): z.input<Line> {
  const received = { bodyBase64: body.toString('base64'), receivedAt: new Date(receivedAt).toISOString() }
  if (headers === null) return { kind: 'manual', environment, ...received }
  const shown = headers === 'reported' ? headers : headerLines(headers)
  if (reading === undefined) {
    return shown === 'reported'
      ? { kind: shown, environment, ...received }
      : { endpoint, headers: shown, ...received }
  }
  const { why, at, bytes } = reading.removed
  return {
    kind: 'reading',
    environment,
    endpoint,
    headers: shown,
    event: reading.event,
    bodyRemoved: { why, at: new Date(at).toISOString(), bytes, sha256: reading.bodySha256 },
    ...received,
  }
}

function headerLines({ event, timestamp, signature }: SignedHeaders): Record<string, string> {
  return {
    ...(event === null ? {} : { [EVENT_HEADER]: event }),
    [TIMESTAMP_HEADER]: timestamp,
    [SIGNATURE_HEADER]: signature,
  }
}

/** Why a line is not imported. */
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
  /** For people: never contains anything of the line. */
  readonly detail: string
}

export type ReadLine = { readonly outcome: 'read'; readonly delivery: DeliveryInput } | RefusedLine

/**
 * Parses a line of `exportLine`, and checks its signature if it has one. Signatures do not cover the time of receipt:
 * a time after `now` (epoch milliseconds) or far from the signed time is refused, since it limits how far ahead an
 * event may be dated. A delivery gets the environment that its endpoint has today.
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
  if (!isJsonObject(value)) return refuseLine('line_invalid', 'is not a JSON object')
  if (value.bodyBase64 === undefined && value.endpoint === undefined)
    return refuseLine('line_invalid', NO_EXPORT)
  const parsed = schemaOf(value).safeParse(value, { error: describeIssue })
  if (!parsed.success) return refuseLine('line_invalid', describeIssues(parsed.error))
  const { data } = parsed
  if (data.receivedAt > now + USUAL_AHEAD_MS) {
    return refuseLine('received_at_in_future', 'its time of receipt is more than a day in the future')
  }
  if (data.kind === 'manual') return readManual(data)
  if (data.kind === 'reported') return readReported(data)
  const endpoint = endpointNamed(data.endpoint)
  return data.kind === 'reading' ? readReading(data, endpoint) : readDelivery(data, endpoint)
}

const NO_EXPORT =
  'is not a line of "latchkey events export"; "latchkey send" signs and sends bodies of your own'

/** By kind, so that the issues are those of the intended kind. */
function schemaOf({ kind }: Readonly<Record<string, unknown>>): Line {
  if (kind === 'manual') return manualLine
  if (kind === 'reported') return reportedLine
  return kind === 'reading' ? readingLine : deliveryLine
}

export function refuseLine(reason: LineRefusal, detail: string): RefusedLine {
  return { outcome: 'refused', reason, detail }
}

function readManual({ environment, bodyBase64: body, receivedAt }: z.output<typeof manualLine>): ReadLine {
  if (parseManualEvent(body) === null) {
    return refuseLine('line_invalid', 'bodyBase64 does not contain a manual change')
  }
  const delivery = { endpoint: MANUAL_ENDPOINT, environment, body, headers: null, receivedAt }
  return { outcome: 'read', delivery }
}

function readReported({
  environment,
  bodyBase64: body,
  receivedAt,
}: z.output<typeof reportedLine>): ReadLine {
  if (!normalise(body, { environment, receivedAt, isReport: true }).ok) {
    return refuseLine('line_invalid', 'bodyBase64 does not contain a reported event')
  }
  const delivery = {
    endpoint: BACKFILL_ENDPOINT,
    environment,
    body,
    headers: 'reported',
    receivedAt,
  } as const
  return { outcome: 'read', delivery }
}

function readReading(line: z.output<typeof readingLine>, current: Endpoint | undefined): ReadLine {
  const { environment, bodyBase64: body, receivedAt } = line
  const isReport = line.headers === 'reported'
  const endpoint = isReport ? BACKFILL_ENDPOINT : line.endpoint
  const event = parseNormalizedEvent(line.event, isReport)
  const isOurs = !isReport && current?.environment === environment
  const aheadAtMostMs = isOurs ? current.aheadAtMostMs : USUAL_AHEAD_MS
  if (event === null || event.createdAt > receivedAt + aheadAtMostMs) {
    return refuseLine('line_invalid', 'event cannot come from a delivery')
  }
  const { sha256: bodySha256, ...removed } = line.bodyRemoved
  const headers = line.headers === 'reported' ? line.headers : headersOf(distinct(line.headers))
  const reading = { event, bodySha256, removed }
  return { outcome: 'read', delivery: { environment, endpoint, headers, body, receivedAt, reading } }
}

function headersOf(sent: DistinctHeaders): SignedHeaders {
  return {
    event: sent[EVENT_HEADER]?.join(', ') ?? null,
    timestamp: sent[TIMESTAMP_HEADER]?.join(', ') ?? '',
    signature: sent[SIGNATURE_HEADER]?.join(', ') ?? '',
  }
}

function readDelivery(line: z.output<typeof deliveryLine>, endpoint: Endpoint | undefined): ReadLine {
  const { bodyBase64: body, receivedAt } = line
  if (endpoint === undefined) return refuseLine('endpoint_not_found', 'no such endpoint is configured')
  const sent = distinct(line.headers)
  const check = verifySignatureAsOf({ body, headers: sent, endpoint })
  if (!check.ok) return refuseSignature(check)
  const { timestamp, signature } = check
  // No endpoint accepts a delivery further from its signed time.
  if (Math.abs(receivedAt - Number(timestamp) * 1_000) > MAX_TOLERANCE_SECONDS * 1_000) {
    return refuseLine('received_at_unlikely', 'its time of receipt is over a day from its signed time')
  }
  const headers = { event: sent[EVENT_HEADER]?.join(', ') ?? null, timestamp, signature }
  const { name, environment, aheadAtMostMs } = endpoint
  const delivery = { endpoint: name, environment, body, headers, receivedAt, aheadAtMostMs }
  return { outcome: 'read', delivery }
}

const SIGNATURE_DETAIL: Readonly<Record<LastingRefusal['code'], string>> = {
  signature_missing: 'it has no signature',
  signature_invalid: 'the signature matches none of the endpoint’s secrets',
  timestamp_invalid: 'it has no timestamp in Unix seconds',
}

function refuseSignature({ code, expiredSecret }: LastingRefusal): RefusedLine {
  if (expiredSecret) return refuseLine('secret_expired', 'the secret that signed it had expired by then')
  return refuseLine(code, SIGNATURE_DETAIL[code])
}

/** Names in lower case, as Node gives them. */
function distinct(sent: Readonly<Record<string, string>>): DistinctHeaders {
  const values = new Map<string, readonly string[]>()
  for (const [name, value] of Object.entries(sent)) {
    const known = name.toLowerCase()
    values.set(known, [...(values.get(known) ?? []), value])
  }
  return Object.fromEntries(values)
}

const TYPES_IN_WORDS: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  object: 'an object',
  record: 'an object',
}

/** Words for a problem that the schema itself has none for; never anything of the line. */
const describeIssue: z.core.$ZodErrorMap = (issue) => {
  if (issue.input === undefined) return 'is missing'
  if (issue.code === 'invalid_type') return `is not ${TYPES_IN_WORDS[issue.expected] ?? issue.expected}`
  if (issue.code === 'invalid_value') return `is not one of ${issue.values.join(', ')}`
  return 'is not as in an export'
}

/** `endpoint is missing; receivedAt is not a time such as 2026-01-31T12:00:00.000Z`. */
function describeIssues({ issues }: z.ZodError): string {
  return issues.map(({ path, message }) => [path.join('.'), message].filter(Boolean).join(' ')).join('; ')
}
