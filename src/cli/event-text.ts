import { BODY_REMOVAL_TEXT, type BodyRemovalReason } from '../entitlements/stored-event.js'
import type { EventDetailJson } from '../handlers/event-json.js'
import { alignColumns } from './columns.js'

/** A sender's text may hold some, and a terminal would obey them. */
const CONTROL_CHARACTER = /[^\P{Cc}\n]/gu

/** A stored event for a person to read: what became of it, where it belongs, what it says, and how it came. */
export function eventText(event: EventDetailJson): string {
  const { id, type, disposition, reasonText, headers } = event
  const sections = [
    `${type ?? 'unreadable'} ${id}: ${reasonText === null ? disposition : `${disposition}, ${reasonText}`}\n`,
    indented(alignColumns(factsOf(event))),
    listText('It says', alignColumns(rowsIn(event))),
    listText(
      'Signed headers',
      headers === null
        ? ['none: it was done by hand']
        : alignColumns([
            ['event', headers.event ?? 'not sent'],
            ['timestamp', headers.timestamp],
            ['signature', headers.signature],
          ]),
    ),
    listText('Other bodies under this id, which changed nothing', alignColumns(otherBodies(event))),
  ]
  const text = sections.filter((section) => section !== '').join('\n')
  return text.replaceAll(CONTROL_CHARACTER, '\ufffd')
}

function factsOf(event: EventDetailJson): string[][] {
  const { source, deliveries, conflicts, bodySha256, bodyRemoved: original } = event
  const again = deliveries === 1 ? 'once' : `${deliveries} times, last ${event.lastReceivedAt}`
  // Shown only if something else is in its place now.
  const isRewritten = original !== null && original.sha256 !== bodySha256
  return [
    ['environment', event.environment],
    ['endpoint', event.endpoint],
    ['happened', event.createdAt ?? 'unknown'],
    ['received', `${event.receivedAt}, ${again}`],
    ['customer', event.customerId ?? 'none named'],
    ['belongs to', source === null ? 'nothing' : `${source.kind} ${source.id}`],
    ['generation', event.generation ?? 'neither'],
    ['normaliser', String(event.normalizerVersion)],
    ['body', `${event.bodyBytes} bytes, sha256 ${bodySha256}${removalText(original)}`],
    ...(isRewritten ? [['as it came', `${original.bytes} bytes, sha256 ${original.sha256}`]] : []),
    ...(conflicts === 0 ? [] : [['conflicts', String(conflicts)]]),
  ]
}

/** What the event says, but for what is shown above. */
function rowsIn({ normalized }: EventDetailJson): string[][] {
  if (normalized === null) return []
  const { id: _id, generation: _generation, createdAt: _at, customerId: _customer, ...others } = normalized
  return rowsOf(others)
}

/** `railProof.rail`, `card`. */
function rowsOf(fields: object, path = ''): string[][] {
  return Object.entries(fields).flatMap(([name, value]) => {
    if (value === null) return []
    return typeof value === 'object' ? rowsOf(value, `${path}${name}.`) : [[`${path}${name}`, String(value)]]
  })
}

function otherBodies({ otherBodies: others }: EventDetailJson): string[][] {
  return others.map(({ sha256, bytes, endpoint, receivedAt, deliveries, removed }) => [
    sha256,
    `${bytes} bytes`,
    endpoint,
    receivedAt,
    `${deliveries === 1 ? 'once' : `${deliveries} times`}${removalText(removed)}`,
  ])
}

function removalText(removed: { readonly why: BodyRemovalReason; readonly at: string } | null): string {
  return removed === null ? '' : `, which ${BODY_REMOVAL_TEXT[removed.why]}, at ${removed.at}`
}

function listText(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : `${title}\n${indented(lines)}`
}

function indented(lines: readonly string[]): string {
  return lines.map((line) => `  ${line}\n`).join('')
}
