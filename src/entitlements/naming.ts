import type { Reading } from './reading.js'

/** How an event may name a subscription's product, best first: outright, as a subscription event, as a grant. */
const NAMING_KINDS = ['naming', 'subscription', 'grant', 'any'] as const
export type NamingKind = (typeof NAMING_KINDS)[number]

const NAMING_TYPES: readonly string[] = [
  'subscription.created',
  'subscription.renewed',
  'subscription.updated',
]

/** The best kind that this event is of, provided that it names a product. */
export function namingKindOf({ event, effect }: Reading): NamingKind {
  if (NAMING_TYPES.includes(event.type)) return 'naming'
  if (event.subject === 'subscription') return 'subscription'
  return effect === 'grant' ? 'grant' : 'any'
}

function isBetterNaming(a: NamingKind, b: NamingKind): boolean {
  return NAMING_KINDS.indexOf(a) < NAMING_KINDS.indexOf(b)
}

/** Only the best kind of naming that there is counts; the others are not read at all. */
export function chooseNamings(walk: readonly Reading[]): {
  namingKind: NamingKind | null
  firstProduct: string | null
} {
  let namingKind: NamingKind | null = null
  let firstProduct: string | null = null
  for (const reading of walk) {
    if (reading.event.productId === null) continue
    const kind = namingKindOf(reading)
    if (kind === namingKind) continue
    if (namingKind === null || isBetterNaming(kind, namingKind)) {
      namingKind = kind
      firstProduct = reading.event.productId
    }
  }
  return { namingKind, firstProduct }
}
