import {
  BODY_REMOVAL_TEXT,
  type BodyRemoval,
  type OtherBody,
  type StoredEventDetail,
} from '../entitlements/stored-event.js'
import { eventDetailJson } from '../handlers/event-json.js'
import { alignColumns } from './columns.js'

/** What came over the wire may hold some, and a terminal would obey them. */
const CONTROL_CHARACTER = /[^\P{Cc}\n]/gu

/** A stored event for a person to read: what became of it, where it stands, what it says, and how it came. */
export function eventText(event: StoredEventDetail): string {
  const sections = [
    headline(event),
    indented(alignColumns(factsOf(event))),
    listText('It says', alignColumns(toldBy(event))),
    listText('Signed headers', headerLines(event)),
    listText('Other bodies under this id, which changed nothing', alignColumns(otherBodies(event))),
  ]
  const text = sections.filter((section) => section !== '').join('\n')
  return text.replaceAll(CONTROL_CHARACTER, '\ufffd')
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
    ['body', `${event.bodyBytes} bytes, sha256 ${event.bodySha256}${removalText(event.bodyRemoved)}`],
    ...originalFacts(event),
    ...(conflicts === 0 ? [] : [['conflicts', String(conflicts)]]),
  ]
}

/** Of what came, where something else is there in its place. */
function originalFacts({ bodySha256, bodyRemoved: original }: StoredEventDetail): string[][] {
  if (original === null || original.sha256 === bodySha256) return []
  return [['as it came', `${original.bytes} bytes, sha256 ${original.sha256}`]]
}

/** What stands above is not told again, and what the event leaves out is left out. */
function toldBy(event: StoredEventDetail): string[][] {
  const { normalized } = eventDetailJson(event)
  if (normalized === null) return []
  const {
    id: _id,
    generation: _generation,
    createdAt: _createdAt,
    customerId: _customerId,
    ...told
  } = normalized
  return rowsOf(told)
}

/** `railProof.rail`, `card`. */
function rowsOf(told: object, path = ''): string[][] {
  return Object.entries(told).flatMap(([name, value]) => {
    if (value === null) return []
    return typeof value === 'object' ? rowsOf(value, `${path}${name}.`) : [[`${path}${name}`, String(value)]]
  })
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
    `${body.deliveries === 1 ? 'once' : `${body.deliveries} times`}${removalText(body.removed)}`,
  ])
}

function removalText(removed: BodyRemoval | null): string {
  return removed === null ? '' : `, which ${BODY_REMOVAL_TEXT[removed.why]}, at ${time(removed.at)}`
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
