import { hash } from 'node:crypto'
import type { Selectable } from 'kysely'
import { LatchkeyError } from '../errors.js'
import { DETAIL_NAMES } from '../provider/accounts.js'
import { NO_DETAILS } from '../provider/customer.js'
import { EVENT_FIELDS, type NormalizedEvent } from '../provider/event.js'
import type { EventsTable } from './schema.js'

/** By subject, the fields of an event except the person's details and metadata, which are written last. */
const FIELDS: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  Object.entries(EVENT_FIELDS).map(([subject, names]) => [
    subject,
    names.filter((name) => name !== 'customer' && name !== 'metadata'),
  ]),
)

/** By subject, an event with only default values. */
const BLANK: Readonly<Partial<Record<string, object>>> = Object.fromEntries(
  Object.entries(FIELDS).map(([subject, names]) => [
    subject,
    Object.fromEntries(names.map((name) => [name, null])),
  ]),
)

/** An event as text for the store, without its default values: short rows share a page. */
export function formOf(event: NormalizedEvent): string {
  const fields: Readonly<Record<string, unknown>> = { ...event }
  const form: Record<string, unknown> = {}
  for (const name of FIELDS[event.subject] ?? []) if (fields[name] !== null) form[name] = fields[name]
  let customer: Record<string, string> | undefined
  for (const name of DETAIL_NAMES) {
    const detail = event.customer[name]
    if (detail === null) continue
    customer ??= {}
    customer[name] = detail
  }
  if (customer !== undefined) form.customer = customer
  for (const _ in event.metadata) {
    form.metadata = event.metadata
    break
  }
  return JSON.stringify(form)
}

/**
 * Parses a stored event. Only damage makes one unreadable.
 * @throws {LatchkeyError} `store_unavailable`: the message names the event, and quotes nothing of the text, which may
 * contain personal data
 */
export function eventInForm(text: string, eventId: string): NormalizedEvent {
  const event = eventInFormIfReadable(text)
  if (event === null) throw damagedForm(eventId)
  return event
}

export function damagedForm(eventId: string): LatchkeyError {
  return new LatchkeyError(
    'store_unavailable',
    `The normalised form of the event ${eventId} is damaged: \`latchkey replay\` makes it again from the body; ` +
      'if the body is gone, or it is a manual change, restore a backup with `latchkey restore`.',
  )
}

/** The same; null if it can't be read. */
export function eventInFormIfReadable(text: string): NormalizedEvent | null {
  try {
    const form = JSON.parse(text) as Form
    const blank = BLANK[form.subject]
    if (blank === undefined || !hasTypes(form)) return null
    const customer = form.customer === undefined ? NO_DETAILS : { ...NO_DETAILS, ...form.customer }
    return { ...blank, ...form, customer, metadata: form.metadata ?? {} } as NormalizedEvent
  } catch {
    return null
  }
}

const TEXTS = ['id', 'type', 'customerId', 'productId', 'paymentId', 'subscriptionId', 'externalRef'] as const

/** Whether what others look up, bind or show has its type: a form that was altered may be JSON of any shape. */
function hasTypes(form: Readonly<Record<string, unknown>>): boolean {
  for (const name of TEXTS) if (form[name] !== undefined && typeof form[name] !== 'string') return false
  return Number.isSafeInteger(form.createdAt)
}

type Form = Omit<NormalizedEvent, 'customer' | 'metadata'> &
  Partial<Pick<NormalizedEvent, 'customer' | 'metadata'>>

/**
 * Whether a disk or a person altered a body that should be stored byte for byte. Its present content is not what was
 * signed, so it must not be exported or read again.
 */
export function isAltered({
  body,
  body_sha256: sha256,
  body_removed: removed,
}: Pick<Selectable<EventsTable>, 'body' | 'body_sha256' | 'body_removed'>): boolean {
  return removed === null && (body === null || sha256Of(body) !== sha256)
}

/** The hash stored with every body, in lower-case hex. */
export function sha256Of(bytes: Buffer): string {
  return hash('sha256', bytes, 'hex')
}
