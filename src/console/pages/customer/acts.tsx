/* What one can do for a customer: each act is previewed by a dry run, and confirmed. */

import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { answerOf, api, type Environment, type Schemas } from '../../api.js'
import { type Session, useSession } from '../../session.js'
import { Confirm, Dialog } from '../../shared/confirm.js'
import { visible } from '../../shared/plain.js'
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
  /** Null: none was given. */
  reason: string | null,
  signal: AbortSignal | null,
) => Promise<Schemas['Act']>

interface ByHandProps extends Pick<ActProps, 'customerId' | 'onClose' | 'onDone'> {
  readonly title: string
  readonly act: string
  /** What is said once it is done. */
  readonly done: string
  readonly needsReason?: boolean
  readonly isDangerous?: boolean
  readonly perform: Perform
  /** What is missing from the fields; null: nothing. */
  readonly missing?: string | null
  /** What the preview depends on. */
  readonly about?: readonly unknown[]
  readonly children?: ComponentChildren
}

/** Asks before a change by hand, with its dry run as the preview. */
function ByHand({
  customerId,
  done,
  needsReason = false,
  perform,
  missing = null,
  onDone,
  ...rest
}: ByHandProps) {
  const session = useSession()
  return (
    <Confirm
      {...rest}
      reason={needsReason ? 'required' : 'optional'}
      isReady={missing === null}
      preview={async (signal) =>
        missing === null ? previewOf(session, customerId, perform, signal) : <p>{missing}</p>
      }
      onConfirm={async (reason) => {
        await perform(
          { environment: session.environment, dryRun: false },
          reason === '' ? null : reason,
          null,
        )
        toast(done)
        onDone()
      }}
    />
  )
}

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
  const { products, productName } = useSession()
  const [chosen, setChosen] = useState(productId ?? products[0]?.id ?? '')
  const [end, setEnd] = useState<(typeof GRANT_ENDS)[number]>('for a time')
  const [duration, setDuration] = useState('')
  const [until, setUntil] = useState<string | null>(null)
  const isWhole = chosen !== '' && (end === 'for good' || until !== null)
  const ids = new Set([...(productId === null ? [] : [productId]), ...products.map(({ id }) => id)])
  return (
    <ByHand
      title={`Grant access to ${visible(customerId)}`}
      act="Grant"
      done={`Granted ${productName(chosen)}.`}
      needsReason
      about={[chosen, end === 'for good' || until]}
      missing={isWhole ? null : 'Say what to grant, and for how long.'}
      perform={(query, reason, signal) =>
        answerOf(
          api.POST('/customers/{customerId}/grants', {
            params: { path: { customerId }, query },
            body: { productId: chosen, until: end === 'for good' ? null : until, reason: reason ?? '' },
            signal,
          }),
        )
      }
      {...{ customerId, onClose, onDone }}
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
    </ByHand>
  )
}

const NOTES = {
  revoke: 'This ends what was granted by hand, and nothing that was paid.',
  block: 'A block holds against everything that was paid or granted, until it is lifted.',
  unblock: 'Lifting the block on every product lifts those on single ones, too.',
} as const

function Simple({ kind, ...props }: ActProps & { readonly kind: keyof typeof NOTES }) {
  const { productName } = useSession()
  const { customerId, productId } = props
  const who = visible(customerId)
  const what = productId === null ? 'every product' : visible(productName(productId))
  const perform: Perform = (query, reason, signal) => {
    const all = { params: { path: { customerId }, query }, signal }
    const one = { params: { path: { customerId, productId: productId ?? '' }, query }, signal }
    const [ofAll, ofOne] = [
      '/customers/{customerId}/blocks',
      '/customers/{customerId}/blocks/{productId}',
    ] as const
    const body = { reason }
    if (kind === 'revoke')
      return answerOf(api.DELETE('/customers/{customerId}/grants/{productId}', { ...one, body }))
    if (kind === 'unblock')
      return answerOf(
        productId === null ? api.DELETE(ofAll, { ...all, body }) : api.DELETE(ofOne, { ...one, body }),
      )
    const why = { reason: reason ?? '' }
    return answerOf(
      productId === null ? api.PUT(ofAll, { ...all, body: why }) : api.PUT(ofOne, { ...one, body: why }),
    )
  }
  const [act, title, done] = {
    revoke: ['Revoke', `Revoke the grant of ${what} to ${who}`, `Revoked the grant of ${what}.`],
    block: ['Block', `Block ${who} from ${what}`, `Blocked from ${what}.`],
    unblock: ['Unblock', `Lift the block of ${who} on ${what}`, `Lifted the block on ${what}.`],
  }[kind] as [string, string, string]
  const shown = { act, title, done, needsReason: kind === 'block', isDangerous: kind !== 'unblock' }
  return (
    <ByHand {...props} {...shown} perform={perform}>
      <p>{NOTES[kind]}</p>
    </ByHand>
  )
}

function LinkAccounts({ known, ...props }: ActProps) {
  const { customerId } = props
  const [accounts, setAccounts] = useState({ communityId: '', messengerId: '' })
  const given = Object.fromEntries(Object.entries(accounts).filter(([, id]) => id !== ''))
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
    <ByHand
      {...props}
      title={`Link accounts to ${visible(customerId)}`}
      act="Link"
      done="Linked."
      about={[accounts.communityId, accounts.messengerId]}
      missing={Object.keys(given).length > 0 ? null : 'Say which account is theirs.'}
      perform={(query, reason, signal) =>
        answerOf(
          api.PUT('/customers/{customerId}/identities', {
            params: { path: { customerId }, query },
            body: { ...given, reason },
            signal,
          }),
        )
      }
    >
      {field('communityId', 'Discord account')}
      {field('messengerId', 'Telegram account')}
    </ByHand>
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
      <Dialog title={`Send this to ${visible(customerId)}`} onClose={onClose}>
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
      title={`${isBot ? 'A link to the bot' : 'Invites'} for ${visible(customerId)}`}
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
      title={`Erase ${visible(customerId)}`}
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
