/* What one can do for a customer: each act is previewed by a dry run, and confirmed. */

import { get, type Schemas, send } from '../../api.js'
import type { Parameters } from '../../router.js'
import { useSession } from '../../session.js'
import { DETAILS } from '../../shared/access.js'
import { Ask, type AskProps } from '../../shared/ask.js'
import { type Field, untilOf, type Values } from '../../shared/fields.js'
import { Notes, Says } from '../../shared/show.js'
import { Id } from '../../shared/text.js'

/** Null: nothing is stored about them. */
type Known = Schemas['Customer'] | null
/** Without a product: none in particular, or all of them. */
type About = { readonly customerId: string; readonly productId?: string | null; readonly known: Known }

/** Of a product or a customer, as titles name them. */
type Names = { readonly who: string; readonly what: string }

interface Act extends Pick<AskProps, 'act' | 'label' | 'says' | 'isDangerous' | 'missing'> {
  readonly title: (names: Names) => string
  readonly done: (names: Names) => string
  readonly needsReason?: boolean
  readonly fields?: (about: About, values: Values) => readonly Field[]
  /** @param given the customer, the product if any, the environment, and whether it is a dry run */
  readonly perform: (given: Parameters, values: Values, signal?: AbortSignal) => Promise<Schemas['Act']>
}

const UNITS = 'A number and s, m, h, d, w or y: 3w is three weeks.'
const WAYS = ['for a time', 'until a date', 'for good'] as const
const HOW = { name: 'how', label: 'How long', options: WAYS, initial: WAYS[0] }
/** How long a grant is, where there is more to say. */
const ENDS = [
  { needs: 'for a time', name: 'span', label: 'Time from now', kind: 'duration', hint: UNITS },
  { needs: 'until a date', name: 'until', label: 'Ends at', kind: 'instant' },
] as const

function endOf({ how, span = '', until }: Values): string | null | undefined {
  if (how === 'for good') return null
  if (how === 'until a date') return until || undefined
  const end = untilOf(span)
  return end === null ? undefined : new Date(end).toISOString()
}

const blocksOf = ({ productId }: Parameters) =>
  productId === null ? '/customers/{customerId}/blocks' : '/customers/{customerId}/blocks/{productId}'

function account({ known }: About, name: 'communityId' | 'messengerId'): Field {
  const now = known?.identities[name]?.value ?? 'none'
  return { name, label: DETAILS[name] ?? name, hint: `Now: ${now}. An id in digits; left empty, it stays.` }
}

const ACTS = {
  grant: {
    act: 'Grant',
    title: ({ who }) => `Grant access to ${who}`,
    done: ({ what }) => `Granted ${what}.`,
    needsReason: true,
    fields: (_, { how = 'for a time' }) => [HOW, ...ENDS.filter(({ needs }) => needs === how)],
    missing: ({ productId, ...values }) =>
      productId === '' || endOf(values) === undefined ? 'Say what to grant, and for how long.' : null,
    perform({ productId: _, ...given }, { productId = '', reason = '', ...values }, signal) {
      const body = { productId, until: endOf(values) ?? null, reason }
      return send('post', '/customers/{customerId}/grants', given, body, signal)
    },
  },
  revoke: {
    act: 'Revoke',
    title: ({ who, what }) => `Revoke the grant of ${what} to ${who}`,
    done: ({ what }) => `Revoked the grant of ${what}.`,
    says: 'This ends what was granted by hand, and nothing that was paid.',
    isDangerous: true,
    perform: (given, { reason }, signal) =>
      send('delete', '/customers/{customerId}/grants/{productId}', given, { reason: reason || null }, signal),
  },
  block: {
    act: 'Block',
    title: ({ who, what }) => `Block ${who} from ${what}`,
    done: ({ what }) => `Blocked from ${what}.`,
    says: 'A block holds against everything that was paid or granted, until it is lifted.',
    isDangerous: true,
    needsReason: true,
    perform: (given, { reason = '' }, signal) => send('put', blocksOf(given), given, { reason }, signal),
  },
  unblock: {
    act: 'Unblock',
    title: ({ who, what }) => `Lift the block of ${who} on ${what}`,
    done: ({ what }) => `Lifted the block on ${what}.`,
    says: 'Lifting the block on every product lifts those on single ones, too.',
    perform: (given, { reason }, signal) =>
      send('delete', blocksOf(given), given, { reason: reason || null }, signal),
  },
  link: {
    act: 'Link',
    label: 'Link accounts…',
    title: ({ who }) => `Link accounts to ${who}`,
    done: () => 'Linked.',
    fields: (about) => [account(about, 'communityId'), account(about, 'messengerId')],
    missing: (ids) => (ids.communityId || ids.messengerId ? null : 'Say which account is theirs.'),
    perform({ productId: _, ...given }, { reason, ...accounts }, signal) {
      const ids = Object.fromEntries(Object.entries(accounts).filter(([, id]) => id !== ''))
      const body = { ...ids, reason: reason || null }
      return send('put', '/customers/{customerId}/identities', given, body, signal)
    },
  },
} as const satisfies Record<string, Act>

function reasonField(isNeeded: boolean): Field {
  const label = isNeeded ? 'Reason' : 'Reason (optional)'
  return { name: 'reason', label, kind: 'said', hint: 'It is stored with the change.' }
}

/** Asks before a change by hand, with its dry run as the preview. */
export function ByHand({ kind, ...about }: About & { readonly kind: keyof typeof ACTS }) {
  const { environment, products, productName } = useSession()
  const { customerId, productId = null } = about
  const { title, done, needsReason = false, fields, perform, ...rest }: Act = ACTS[kind]
  const given = { customerId, productId, environment }
  const namesOf = (id: string | null) => ({ who: customerId, what: id ? productName(id) : 'every product' })
  const ids = [...new Set([productId ?? [], products.map(({ id }) => id)].flat())]
  const options = ids.map((id) => [id, productName(id) === id ? id : `${productName(id)} (${id})`] as const)
  const choice =
    ids.length > 0 ? { options, initial: ids[0] ?? '' } : { hint: 'Its id: the config names none.' }
  const product = { name: 'productId', label: 'Product', ...choice }
  return (
    <Ask
      {...rest}
      title={title(namesOf(productId))}
      fields={(values) => [
        ...(kind === 'grant' ? [product] : []),
        ...(fields?.(about, values) ?? []),
        reasonField(needsReason),
      ]}
      isReady={({ reason = '' }) => !needsReason || reason.trim() !== ''}
      preview={async (values, signal) => {
        const [before, after] = await Promise.all([
          get('/entitlements/{customerId}', { customerId, environment }, signal),
          // The API takes no grant or block without a reason, and a dry run keeps none.
          perform({ ...given, dryRun: true }, { ...values, reason: 'dry run' }, signal),
        ])
        return <Effects before={before} after={after} />
      }}
      onConfirm={async (values) => {
        await perform(given, { ...values, reason: values.reason?.trim() ?? '' })
        return done(namesOf(values.productId ?? productId))
      }}
    />
  )
}

type EffectsProps = { readonly before: Schemas['CustomerAccess']; readonly after: Schemas['Act'] }

function Effects({ before, after: { entitlements, features, calls = [] } }: EffectsProps) {
  const { productName, targetName } = useSession()
  const was = new Map(before.entitlements.map((one) => [one.productId, one]))
  const changed = entitlements.flatMap(({ productId, active, status, until }) => {
    const then = was.get(productId)
    if (then?.active === active && then.status === status && then.until === until) return []
    const end = active ? `, until ${until ?? 'no known end'}` : ''
    return `${productName(productId)}: ${then?.status ?? 'none'} → ${status}${end}`
  })
  const activeIn = (all: typeof features) => all.flatMap(({ id, active }) => (active ? [id] : []))
  const [had, has] = [activeIn(before.features), activeIn(features)]
  const gained = has.filter((id) => !had.includes(id))
  const lost = had.filter((id) => !has.includes(id))
  const says = [
    changed.length === 0 && 'Access stays as it is.',
    ...changed,
    gained.length > 0 && `Gains the features ${gained.join(', ')}.`,
    lost.length > 0 && `Loses the features ${lost.join(', ')}.`,
    ...calls.map((one) => callText(one, ['gets', 'loses'], targetName(one.target))),
  ]
  return <Notes of={says} />
}

/** A role or a group that follows. @param does what it does if it is given, and if it is taken */
export function callText(call: Schemas['PlatformCall'], does: readonly string[], target: string): string {
  return `Account ${call.accountId} ${does[call.action === 'give' ? 0 : 1]} ${target}.`
}

/** Links to hand out: they are made once, and shown to be copied. */
const handOut = (links: readonly { readonly url: string; readonly expiresAt: string }[]) =>
  links.map(({ url, expiresAt }) => [
    <Id key={url}>{url}</Id>,
    <Says key={1} text={`Valid once, until ${expiresAt}.`} look="faint" />,
  ])

const INVITES = '/customers/{customerId}/invites'
const TOKENS = '/customers/{customerId}/link-tokens'

export function TelegramLinks({ customerId }: Pick<About, 'customerId'>) {
  const given = { customerId, environment: useSession().environment }
  return (
    <>
      <Ask
        label="Invites…"
        act="Create"
        title={`Invites for ${customerId}`}
        says="Creates a link to each Telegram group that their access opens. Other accounts are turned away."
        onConfirm={async () => handOut((await send('post', INVITES, given, {})).invites)}
      />
      <Ask
        label="Link to the bot…"
        act="Create"
        title={`A link to the bot for ${customerId}`}
        says="The first Telegram account that follows the link is linked to the customer."
        onConfirm={async () => handOut([await send('post', TOKENS, given, {})])}
      />
    </>
  )
}

export function Erase({ customerId, known }: About) {
  const { environment, productName } = useSession()
  const given = { customerId, environment }
  const { identities = {}, references } = known ?? {}
  const details = Object.entries(identities).flatMap(([name, fact]) => (fact ? [DETAILS[name] ?? name] : []))
  const count = references?.all.length ?? 0
  const typed = { name: 'typed', label: `Type ${customerId} to confirm`, kind: 'said' } as const
  return (
    <Ask
      label="Erase…"
      look="danger"
      act="Erase for good"
      title={`Erase ${customerId}`}
      isDangerous
      says="It can’t be undone. Write nothing personal in the reason: it stays."
      fields={() => [typed, reasonField(false)]}
      isReady={(values) => values.typed === customerId}
      preview={async (_, signal) => {
        const { entitlements } = await get('/entitlements/{customerId}', given, signal)
        const active = entitlements.filter((one) => one.active).map(({ productId }) => productName(productId))
        const says = [
          known === null && 'Nothing is stored about this customer: check the id and the environment.',
          ...active.map((name) => `Access to ${name} ends, with its roles and groups.`),
          details.length > 0 && `Removed: ${details.join(', ')}.`,
          count > 0 && `Removed: ${count} of your references and their metadata.`,
          'The bytes of every event that names them are removed. What the events did stays on record.',
        ]
        return <Notes of={says} />
      }}
      onConfirm={async ({ reason }) => {
        await send('delete', '/customers/{customerId}', given, { reason: reason?.trim() || null })
        return 'Erased.'
      }}
    />
  )
}
