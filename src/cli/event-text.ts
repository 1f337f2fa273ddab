import type { OtherBody, StoredEventDetail } from '../entitlements/stored-event.js'
import { alignColumns } from './columns.js'

/** A stored event for a person to read: what became of it, where it stands, what it says, and how it came. */
export function eventText(event: StoredEventDetail): string {
  const sections = [
    headline(event),
    indented(alignColumns(factsOf(event))),
    listText('It says', event.normalized === null ? [] : jsonLines(event.normalized)),
    listText('Signed headers', headerLines(event)),
    listText('Other bodies under this id, which changed nothing', alignColumns(otherBodies(event))),
  ]
  return sections.filter((section) => section !== '').join('\n')
}

/** `payment.authorized evt_1: held, waits until an event tells whose it is`. */
function headline({ type, id, disposition, reasonText }: StoredEventDetail): string {
  const became = reasonText === null ? disposition : `${disposition}, ${reasonText}`
  return `${type ?? 'unreadable'} ${id}: ${became}\n`
}

function factsOf(event: StoredEventDetail): string[][] {
  const { source, deliveries, conflicts } = event
  const again = deliveries === 1 ? 'once' : `${deliveries} times, last ${time(event.lastReceivedAt)}`
  return [
    ['environment', event.environment],
    ['endpoint', event.endpoint],
    ['happened', event.createdAt === null ? 'unknown' : time(event.createdAt)],
    ['received', `${time(event.receivedAt)}, ${again}`],
    ['customer', event.customerId ?? 'none named'],
    ['belongs to', source === null ? 'nothing' : `${source.kind} ${source.id}`],
    ['generation', event.generation ?? 'neither'],
    ['normaliser', String(event.normalizerVersion)],
    ['body', `${event.bodyBytes} bytes, sha256 ${event.bodySha256}`],
    ...(conflicts === 0 ? [] : [['conflicts', String(conflicts)]]),
  ]
}

/** Without what it leaves out: most events tell little of all that there is to tell. */
function jsonLines(normalized: NonNullable<StoredEventDetail['normalized']>): string[] {
  const told = JSON.stringify(normalized, (_key, value) => value ?? undefined, 2)
  return told.split('\n')
}

function headerLines({ headers }: StoredEventDetail): string[] {
  if (headers === null) return ['none: it was done by hand']
  return alignColumns([
    ['event', headers.event ?? 'not sent'],
    ['timestamp', headers.timestamp],
    ['signature', headers.signature],
  ])
}

function otherBodies({ otherBodies: bodies }: StoredEventDetail): string[][] {
  return bodies.map((body: OtherBody) => [
    body.sha256,
    `${body.bytes} bytes`,
    body.endpoint,
    time(body.receivedAt),
    body.deliveries === 1 ? 'once' : `${body.deliveries} times`,
  ])
}

function listText(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : `${title}\n${indented(lines)}`
}

function indented(lines: readonly string[]): string {
  return lines.map((line) => `  ${line}\n`).join('')
}

function time(instant: number): string {
  return new Date(instant).toISOString()
}
