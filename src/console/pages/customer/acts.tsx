/* What one can do for a customer: each act is previewed by a dry run, and confirmed. */

import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { answerOf, api, type Environment, type Schemas } from '../../api.js'
import { type Session, useSession } from '../../session.js'
import { Confirm, Dialog } from '../../shared/confirm.js'
import { Id, Text } from '../../shared/text.js'
import { StatusChange } from '../../shared/things.js'
import { DurationInput, InstantInput, Time } from '../../shared/time.js'
import { toast } from '../../shared/toast.js'

export type ActKind = 'grant' | 'revoke' | 'block' | 'unblock' | 'link' | 'bot link' | 'invites' | 'erase'

export interface AskedAct {
  readonly kind: ActKind
  /** Null: none in particular, or all of them. */
  readonly productId: string | null
}

interface ActProps {
  readonly customerId: string
  readonly productId: string | null
  /** Null: nothing is known about them. */
  readonly known: Schemas['Customer'] | null
  readonly onClose: () => void
  /** Has the page read everything again. */
  readonly onDone: () => void
}

export function ActDialog({ asked, ...props }: Omit<ActProps, 'productId'> & { readonly asked: AskedAct }) {
  const own = { ...props, productId: asked.productId }
  switch (asked.kind) {
    case 'grant':
      return <Grant {...own} />
    case 'revoke':
    case 'block':
    case 'unblock':
      return <Simple {...own} kind={asked.kind} />
    case 'link':
      return <LinkAccounts {...own} />
    case 'bot link':
    case 'invites':
      return <Links {...own} kind={asked.kind} />
    case 'erase':
      return <Erase {...own} />
    default:
      return asked.kind satisfies never
  }
}

type Perform = (
  query: { readonly environment: Environment; readonly dryRun: boolean },
  reason: string | null,
  signal?: AbortSignal,
) => Promise<Schemas['Act']>

/** The preview of an act: its dry run, beside what is so now. */
async function previewOf(
  { environment, productName }: Session,
  customerId: string,
  perform: Perform,
  signal: AbortSignal,
): Promise<ComponentChildren> {
  const path = { customerId }
  const [before, after] = await Promise.all([
    answerOf(api.GET('/entitlements/{customerId}', { params: { path, query: { environment } }, signal })),
    // The API takes no grant or block without a reason, and a dry run keeps none.
    perform({ environment, dryRun: true }, 'dry run', signal),
  ])
  const was = new Map(before.entitlements.map((one) => [one.productId, one]))
  const changed = after.entitlements.filter(({ productId, active, status, until }) => {
    const then = was.get(productId)
    return then?.active !== active || then.status !== status || then.until !== until
  })
  const had = new Set(before.features.flatMap(({ id, active }) => (active ? [id] : [])))
  const has = new Set(after.features.flatMap(({ id, active }) => (active ? [id] : [])))
  const gained = [...has].filter((id) => !had.has(id))
  const lost = [...had].filter((id) => !has.has(id))
  return (
    <>
      {changed.length === 0 && <p>Access stays as it is.</p>}
      <ul class="effects">
        {changed.map(({ productId, active, status, until }) => (
          <li key={productId}>
            <Text>{productName(productId)}</Text>:{' '}
            <StatusChange before={was.get(productId) ?? { status: 'none' }} after={{ status }} />
            {active && ', until '}
            {active && <Time at={until} never="no known end" />}
          </li>
        ))}
        {gained.length > 0 && <li>Gains the features {gained.join(', ')}.</li>}
        {lost.length > 0 && <li>Loses the features {lost.join(', ')}.</li>}
        {(after.calls ?? []).map(({ target, accountId, action }) => (
          <li key={`${target} ${accountId}`}>
            Account <Text>{accountId}</Text> {action === 'give' ? 'gets' : 'loses'} <code>{target}</code>.
          </li>
        ))}
      </ul>
    </>
  )
}

const GRANT_ENDS = ['for a time', 'until a date', 'for good'] as const

function Grant({ customerId, productId, onClose, onDone }: ActProps) {
  const session = useSession()
  const { products, productName } = session
  const [chosen, setChosen] = useState(productId ?? products[0]?.id ?? '')
  const [end, setEnd] = useState<(typeof GRANT_ENDS)[number]>('for a time')
  const [duration, setDuration] = useState('')
  const [until, setUntil] = useState<string | null>(null)
  const isReady = chosen !== '' && (end === 'for good' || until !== null)
  const perform: Perform = (query, reason, signal) =>
    answerOf(
      api.POST('/customers/{customerId}/grants', {
        params: { path: { customerId }, query },
        body: { productId: chosen, until: end === 'for good' ? null : until, reason: reason ?? '' },
        ...(signal && { signal }),
      }),
    )
  const ids = new Set([...(productId === null ? [] : [productId]), ...products.map(({ id }) => id)])
  return (
    <Confirm
      title={`Grant access to ${customerId}`}
      act="Grant"
      reason="required"
      about={[chosen, end === 'for good' || until]}
      isReady={isReady}
      preview={async (signal) =>
        isReady ? (
          previewOf(session, customerId, perform, signal)
        ) : (
          <p>Say what to grant, and for how long.</p>
        )
      }
      onConfirm={async (reason) => {
        await perform({ environment: session.environment, dryRun: false }, reason)
        toast(`Granted ${productName(chosen)}.`)
        onDone()
      }}
      onClose={onClose}
    >
      <label class="field">
        <span>Product</span>
        <select value={chosen} onChange={({ currentTarget: { value } }) => setChosen(value)}>
          {[...ids].map((id) => (
            <option key={id} value={id}>
              {productName(id) === id ? id : `${productName(id)} (${id})`}
            </option>
          ))}
        </select>
        {ids.size === 0 && <small>The config names no product yet: add one below `products`.</small>}
      </label>
      <label class="field">
        <span>How long</span>
        <select
          value={end}
          onChange={({ currentTarget: { value } }) => {
            setEnd(GRANT_ENDS.find((one) => one === value) ?? end)
            setDuration('')
            setUntil(null)
          }}
        >
          {GRANT_ENDS.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
      {end === 'for a time' && (
        <DurationInput
          label="Time from now"
          value={duration}
          onChange={(text, at) => {
            setDuration(text)
            setUntil(at)
          }}
        />
      )}
      {end === 'until a date' && <InstantInput label="Ends at" at={until} onChange={setUntil} />}
    </Confirm>
  )
}

function Simple({
  kind,
  customerId,
  productId,
  onClose,
  onDone,
}: ActProps & { readonly kind: 'revoke' | 'block' | 'unblock' }) {
  const session = useSession()
  const what = productId === null ? 'every product' : session.productName(productId)
  const perform: Perform = (query, given, signal) => {
    const reason = given === '' ? null : given
    const rest = signal && { signal }
    const all = { path: { customerId }, query }
    const one = { path: { customerId, productId: productId ?? '' }, query }
    if (kind === 'revoke') {
      const route = '/customers/{customerId}/grants/{productId}'
      return answerOf(api.DELETE(route, { params: one, body: { reason }, ...rest }))
    }
    const [ofAll, ofOne] = [
      '/customers/{customerId}/blocks',
      '/customers/{customerId}/blocks/{productId}',
    ] as const
    if (kind === 'block') {
      const body = { reason: reason ?? '' }
      if (productId === null) return answerOf(api.PUT(ofAll, { params: all, body, ...rest }))
      return answerOf(api.PUT(ofOne, { params: one, body, ...rest }))
    }
    if (productId === null) return answerOf(api.DELETE(ofAll, { params: all, body: { reason }, ...rest }))
    return answerOf(api.DELETE(ofOne, { params: one, body: { reason }, ...rest }))
  }
  const words = {
    revoke: ['Revoke', `Revoke the grant of ${what} to ${customerId}`, `Revoked the grant of ${what}.`],
    block: ['Block', `Block ${customerId} from ${what}`, `Blocked from ${what}.`],
    unblock: ['Unblock', `Lift the block of ${customerId} on ${what}`, `Lifted the block on ${what}.`],
  } as const
  const notes = {
    revoke: 'This ends what was granted by hand, and nothing that was paid.',
    block: 'A block holds against everything that was paid or granted, until it is lifted.',
    unblock: productId === null ? 'This lifts the blocks on single products, too.' : null,
  } as const
  const [act, title, done] = words[kind]
  return (
    <Confirm
      title={title}
      act={act}
      isDangerous={kind !== 'unblock'}
      reason={kind === 'block' ? 'required' : 'optional'}
      preview={(signal) => previewOf(session, customerId, perform, signal)}
      onConfirm={async (reason) => {
        await perform({ environment: session.environment, dryRun: false }, reason)
        toast(done)
        onDone()
      }}
      onClose={onClose}
    >
      {notes[kind] !== null && <p>{notes[kind]}</p>}
    </Confirm>
  )
}

function LinkAccounts({ customerId, known, onClose, onDone }: ActProps) {
  const session = useSession()
  const [accounts, setAccounts] = useState({ communityId: '', messengerId: '' })
  const given = Object.fromEntries(Object.entries(accounts).filter(([, id]) => id !== ''))
  const isReady = Object.keys(given).length > 0
  const perform: Perform = (query, reason, signal) =>
    answerOf(
      api.PUT('/customers/{customerId}/identities', {
        params: { path: { customerId }, query },
        body: { ...given, reason: reason === '' ? null : reason },
        ...(signal && { signal }),
      }),
    )
  const field = (name: keyof typeof accounts, label: string) => (
    <label class="field">
      <span>{label}</span>
      <input
        value={accounts[name]}
        inputMode="numeric"
        autocomplete="off"
        // Once it is typed: each letter before would be refused as no account.
        onChange={({ currentTarget: { value } }) => setAccounts({ ...accounts, [name]: value.trim() })}
      />
      <small>Now: {known?.identities[name]?.value ?? 'none'}. An id in digits; left empty, it stays.</small>
    </label>
  )
  return (
    <Confirm
      title={`Link accounts to ${customerId}`}
      act="Link"
      reason="optional"
      about={[accounts.communityId, accounts.messengerId]}
      isReady={isReady}
      preview={async (signal) =>
        isReady ? previewOf(session, customerId, perform, signal) : <p>Say which account is theirs.</p>
      }
      onConfirm={async (reason) => {
        await perform({ environment: session.environment, dryRun: false }, reason)
        toast('Linked.')
        onDone()
      }}
      onClose={onClose}
    >
      {field('communityId', 'Discord account')}
      {field('messengerId', 'Telegram account')}
    </Confirm>
  )
}

/** Links to hand out: each is made once, and shown to be copied. */
function Links({ kind, customerId, onClose }: ActProps & { readonly kind: 'bot link' | 'invites' }) {
  const { environment } = useSession()
  const [made, setMade] = useState<readonly { readonly url: string; readonly expiresAt: string }[] | null>(
    null,
  )
  const isMade = useRef(false)
  const params = { path: { customerId }, query: { environment } }
  if (made !== null) {
    return (
      <Dialog title={`Send this to ${customerId}`} onClose={onClose}>
        {made.map(({ url, expiresAt }) => (
          <p key={url}>
            <Id>{url}</Id>
            <br />
            <small>
              Valid once, until <Time at={expiresAt} />.
            </small>
          </p>
        ))}
        <footer>
          <button type="button" class="primary" onClick={onClose}>
            Close
          </button>
        </footer>
      </Dialog>
    )
  }
  const isBot = kind === 'bot link'
  return (
    <Confirm
      title={`${isBot ? 'A link to the bot' : 'Invites'} for ${customerId}`}
      act="Create"
      reason="none"
      onConfirm={async () => {
        const links = isBot
          ? [await answerOf(api.POST('/customers/{customerId}/link-tokens', { params, body: {} }))]
          : (await answerOf(api.POST('/customers/{customerId}/invites', { params, body: {} }))).invites
        isMade.current = true
        setMade(links)
      }}
      // What was made is shown in place of this dialog.
      onClose={() => isMade.current || onClose()}
    >
      <p>
        {isBot
          ? 'The first Telegram account that follows the link is linked to the customer.'
          : 'Creates a link to each Telegram group that their access opens. Other accounts are turned away.'}
      </p>
    </Confirm>
  )
}

function Erase({ customerId, known, onClose, onDone }: ActProps) {
  const { environment, productName } = useSession()
  const [typed, setTyped] = useState('')
  const params = { path: { customerId }, query: { environment } }
  const details = Object.entries(known?.identities ?? {}).flatMap(([name, fact]) =>
    fact === null ? [] : [name],
  )
  const references = known?.references.all.length ?? 0
  return (
    <Confirm
      title={`Erase ${customerId}`}
      act="Erase for good"
      isDangerous
      reason="optional"
      isReady={typed === customerId}
      preview={async (signal) => {
        const { entitlements } = await answerOf(api.GET('/entitlements/{customerId}', { params, signal }))
        const active = entitlements.filter((one) => one.active)
        return (
          <ul class="effects">
            {known === null && (
              <li>Nothing is stored about this customer: check the id and the environment.</li>
            )}
            {active.map(({ productId }) => (
              <li key={productId}>
                Access to <Text>{productName(productId)}</Text> ends, with its roles and groups.
              </li>
            ))}
            {details.length > 0 && (
              <li>Removed: {details.map((name) => DETAILS[name] ?? name).join(', ')}.</li>
            )}
            {references > 0 && <li>Removed: {references} of your references and their metadata.</li>}
            <li>
              The bytes of every event that names them are removed. What the events did stays on record.
            </li>
          </ul>
        )
      }}
      onConfirm={async (reason) => {
        const body = { reason: reason === '' ? null : reason }
        await answerOf(api.DELETE('/customers/{customerId}', { params, body }))
        toast('Erased.')
        onDone()
      }}
      onClose={onClose}
    >
      <p>
        <strong>It can’t be undone.</strong> Write nothing personal in the reason: it stays.
      </p>
      <label class="field">
        <span>
          Type <Text>{customerId}</Text> to confirm
        </span>
        <input value={typed} autocomplete="off" onInput={({ currentTarget: { value } }) => setTyped(value)} />
      </label>
    </Confirm>
  )
}

/** What an identity is called. */
export const DETAILS: Readonly<Record<string, string>> = {
  email: 'Email',
  name: 'Name',
  communityId: 'Discord account',
  communityUsername: 'Discord name',
  messengerId: 'Telegram account',
  messengerUsername: 'Telegram name',
}
