import { hash } from 'node:crypto'
import type { Selectable } from 'kysely'
import { LatchkeyError } from '../errors.js'
import type { CustomerDetails, NormalizedEvent } from '../provider/event.js'
import type { EventsTable } from './schema.js'

const NO_DETAILS: CustomerDetails = {
  email: null,
  name: null,
  communityId: null,
  communityUsername: null,
  messengerId: null,
  messengerUsername: null,
}

const BLANK_END = {
  customerId: null,
  customer: NO_DETAILS,
  productId: null,
  externalRef: null,
  metadata: {},
}

/** By subject, every field in its order, as it is where an event says nothing: a form leaves that out. */
const BLANK = {
  payment: {
    ...blankBefore('payment'),
    paymentId: null,
    subscriptionId: null,
    productId: null,
    customerId: null,
    customer: NO_DETAILS,
    railProof: null,
    externalRef: null,
    metadata: {},
  },
  subscription: {
    ...blankBefore('subscription'),
    subscriptionId: null,
    paymentId: null,
    productId: null,
    customerId: null,
    customer: NO_DETAILS,
    status: null,
    cycles: null,
    cancelAtPeriodEnd: null,
    expiresAt: null,
    externalRef: null,
    metadata: {},
  },
  customer: { ...blankBefore('customer'), ...BLANK_END },
  other: { ...blankBefore('other'), ...BLANK_END },
  manual: {
    id: null,
    generation: null,
    apiVersion: null,
    subject: 'manual',
    type: null,
    customerId: null,
    productId: null,
    until: null,
    customer: NO_DETAILS,
    externalRef: null,
    metadata: {},
    actor: null,
    reason: null,
    createdAt: null,
  },
} as const satisfies Record<NormalizedEvent['subject'], object>

const NAMES = new Map(
  Object.entries(BLANK).map(([subject, blank]) => [
    subject,
    Object.keys(blank).filter((name) => name !== 'customer' && name !== 'metadata'),
  ]),
)
const DETAILS = Object.keys(NO_DETAILS) as (keyof CustomerDetails)[]

function blankBefore<Subject extends NormalizedEvent['subject']>(subject: Subject) {
  return { id: null, generation: null, createdAt: null, apiVersion: null, subject, type: null }
}

/** An event as text for the store, without what it leaves open: rows that are short share a page. */
export function formOf(event: NormalizedEvent): string {
  const fields: Readonly<Record<string, unknown>> = { ...event }
  const form: Record<string, unknown> = {}
  for (const name of NAMES.get(event.subject) ?? []) if (fields[name] !== null) form[name] = fields[name]
  let customer: Record<string, string> | undefined
  for (const name of DETAILS) {
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
 * The event that a form is of. As this program writes it, only damage makes one unreadable.
 * @throws {LatchkeyError} `store_unavailable`: it names the event, and quotes nothing of the text, which may hold
 * personal data
 */
export function eventInForm(text: string, eventId: string): NormalizedEvent {
  const event = eventInFormIfReadable(text)
  if (event !== null) return event
  throw new LatchkeyError(
    'store_unavailable',
    `The normalised form of the event ${eventId} is damaged: \`latchkey replay\` makes it again from the body; ` +
      'where the body is gone, or the event was made by hand, put a backup in place with `latchkey restore`.',
  )
}

/** The same; null if it can't be read. */
export function eventInFormIfReadable(text: string): NormalizedEvent | null {
  try {
    const form: unknown = JSON.parse(text)
    return isForm(form) ? filled(form) : null
  } catch {
    return null
  }
}

/**
 * Whether a body that should be stored byte for byte is not, because a disk or a person changed the database. Nobody
 * signed what is there now, so it must not be exported or read again.
 */
export function isAltered({
  body,
  body_sha256: sha256,
  body_removed: removed,
}: Pick<Selectable<EventsTable>, 'body' | 'body_sha256' | 'body_removed'>): boolean {
  return removed === null && (body === null || sha256Of(body) !== sha256)
}

/** As it is stored beside every body, in lower-case hex. */
export function sha256Of(bytes: Buffer): string {
  return hash('sha256', bytes, 'hex')
}

/** Of several, with commas between: faster than each by itself. Null where one can't be read. */
export function eventsInForms(text: string, count: number): readonly NormalizedEvent[] | null {
  try {
    const forms: unknown = JSON.parse(`[${text}]`)
    return Array.isArray(forms) && forms.length === count && forms.every(isForm) ? forms.map(filled) : null
  } catch {
    return null
  }
}

type Form = Omit<NormalizedEvent, 'customer' | 'metadata'> &
  Partial<Pick<NormalizedEvent, 'customer' | 'metadata'>>

/** As much as tells an event from anything else: more would cost every reader of a source for each event. */
function isForm(value: unknown): value is Form {
  const subject = (value as Partial<Form> | null)?.subject
  return typeof subject === 'string' && Object.hasOwn(BLANK, subject)
}

function filled(form: Form): NormalizedEvent {
  const customer = form.customer === undefined ? NO_DETAILS : { ...NO_DETAILS, ...form.customer }
  return {
    ...BLANK[form.subject],
    ...form,
    customer,
    metadata: form.metadata ?? {},
  } as NormalizedEvent
}
