import { EVENT_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER } from '../provider/signature.js'
import type { ExportedDelivery, ExportedReading } from '../store/event-export.js'

/** A delivery with its exact bytes, or what it was read as. */
type ExportableDelivery = Omit<ExportedDelivery, 'body' | 'reading' | 'isAltered'> &
  (
    | { readonly body: Buffer; readonly reading?: null }
    | { readonly body?: null; readonly reading: ExportedReading }
  )

/** What can be exported of a delivery; null: nothing, since its bytes are not the ones that came. */
export function exportable({
  body,
  reading,
  isAltered: _,
  ...delivery
}: ExportedDelivery): ExportableDelivery | null {
  if (body !== null) return { ...delivery, body }
  return reading === null ? null : { ...delivery, reading }
}

/**
 * One line of an export. A delivery is told as it came, under the names of its headers, so that its signature can be
 * checked again. What nobody signed is of other kinds, and its environment is told outright: what was done by hand, and
 * what an event was read as whose bytes were removed or rewritten.
 */
export function exportLine(delivery: ExportableDelivery): string {
  return `${JSON.stringify(toldOf(delivery))}\n`
}

function toldOf({ environment, endpoint, headers, body, reading, receivedAt }: ExportableDelivery): object {
  const received = { receivedAt: new Date(receivedAt).toISOString() }
  if (reading) {
    const { event, left, bodySha256, removed } = reading
    const came = { why: removed.why, at: new Date(removed.at).toISOString(), bytes: removed.bytes }
    return {
      kind: 'reading',
      environment,
      endpoint,
      headers: headers && toldHeaders(headers),
      event,
      bodyRemoved: { ...came, sha256: bodySha256 },
      bodyBase64: left?.toString('base64') ?? '',
      ...received,
    }
  }
  const bytes = { bodyBase64: body.toString('base64'), ...received }
  return headers === null
    ? { kind: 'manual', environment, ...bytes }
    : { endpoint, headers: toldHeaders(headers), ...bytes }
}

function toldHeaders({ event, timestamp, signature }: NonNullable<ExportedDelivery['headers']>): object {
  return {
    ...(event === null ? {} : { [EVENT_HEADER]: event }),
    [TIMESTAMP_HEADER]: timestamp,
    [SIGNATURE_HEADER]: signature,
  }
}
