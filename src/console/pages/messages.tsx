/* Messages of the outbound webhooks, and every attempt to deliver them. */

import { useState } from 'preact/hooks'
import { answerOf, api, type Schemas } from '../api.js'
import { Link, usePlace } from '../router.js'
import { useAddress, useSession } from '../session.js'
import { Choose } from '../shared/choose.js'
import { Confirm } from '../shared/confirm.js'
import { Badge, PagedTable, Section } from '../shared/show.js'
import { Id, Text } from '../shared/text.js'
import { Time } from '../shared/time.js'
import { toast } from '../shared/toast.js'
import { usePages, useQuery } from '../shared/use-query.js'

type Message = Schemas['Message']

const STATUSES = ['pending', 'delivered', 'failed'] as const
const TYPES = ['granted', 'changed', 'revoked'] as const
const REASONS = {
  gone: 'the address said that it is gone',
  given_up: 'given up after too many attempts',
} as const

export function Messages() {
  const { environment } = useSession()
  const { parameters } = usePlace()
  const address = useAddress()
  const names = ['webhook', 'status', 'type', 'customerId', 'id'] as const
  const filter = Object.fromEntries(
    names.flatMap((name) => (parameters.get(name) ? [[name, parameters.get(name)]] : [])),
  )
  const status = useQuery(
    (signal) => answerOf(api.GET('/sync', { params: { query: { environment } }, signal })),
    [environment],
  )
  const webhooks = status.data?.webhooks.map(({ id }) => id) ?? []
  const pages = usePages(
    (cursor, signal) => {
      const query = { environment, limit: 50, ...filter, ...(cursor !== undefined && { cursor }) }
      return answerOf(api.GET('/sync/messages', { params: { query }, signal }))
    },
    [environment, JSON.stringify(filter)],
  )
  const [replayed, setReplayed] = useState<Message | 'stretch' | null>(null)
  const close = (): void => {
    setReplayed(null)
    pages.reload()
  }
  return (
    <>
      <div class="title">
        <h1>Messages of outbound webhooks</h1>
        <Link to={address('/sync')}>Sync and webhooks</Link>
        <button type="button" onClick={() => setReplayed('stretch')}>
          Replay a stretch of time…
        </button>
      </div>
      <Section
        title="Newest first"
        aside={
          <div class="filters">
            <Choose label="Address" name="webhook" options={webhooks.map((one) => [one, one])} />
            <Choose label="Status" name="status" options={STATUSES.map((one) => [one, one])} />
            <Choose label="Type" name="type" options={TYPES.map((one) => [`entitlement.${one}`, one])} />
            <button type="button" onClick={pages.reload} disabled={pages.isLoading}>
              Refresh
            </button>
          </div>
        }
      >
        <PagedTable
          pages={pages}
          caption="Messages"
          keyOf={({ id, webhook }) => `${id} ${webhook}`}
          columns={[
            { title: 'Queued', cell: ({ queuedAt }) => <Time at={queuedAt} /> },
            {
              title: 'Message',
              cell: ({ id, type, webhook }) => (
                <>
                  {type.replace('entitlement.', '')} to <Text>{webhook}</Text>
                  <br />
                  <Id>{id}</Id>
                </>
              ),
            },
            {
              title: 'About',
              cell: ({ customerId, productId }) => (
                <>
                  <Link to={address(`/customers/${encodeURIComponent(customerId)}`)}>
                    <Text>{customerId}</Text>
                  </Link>
                  <br />
                  <Text>{productId}</Text>
                </>
              ),
            },
            {
              title: 'Status',
              cell: ({ status: word, reason, nextAttemptAt }) => (
                <>
                  <Badge>{word}</Badge> {reason !== null && REASONS[reason]}
                  {nextAttemptAt !== null && (
                    <>
                      next attempt: <Time at={nextAttemptAt} />
                    </>
                  )}
                </>
              ),
            },
            { title: 'Attempts', cell: ({ attempts }) => <Attempts of={attempts} /> },
            {
              title: 'Replay',
              cell: (message) => (
                <button
                  type="button"
                  class="small"
                  aria-label={`Replay ${message.id}`}
                  onClick={() => setReplayed(message)}
                >
                  Replay…
                </button>
              ),
            },
          ]}
          empty={
            <p>
              {Object.keys(filter).length > 0
                ? 'No message matches: choose another address, status or type.'
                : 'No message was queued in the last 30 days. Each change of access makes one for each address of sync.webhooks.'}
            </p>
          }
        />
      </Section>
      {replayed === 'stretch' && <ReplayStretch webhooks={webhooks} onClose={close} />}
      {replayed !== null && replayed !== 'stretch' && <ReplayOne message={replayed} onClose={close} />}
    </>
  )
}

function Attempts({ of }: { readonly of: Message['attempts'] }) {
  if (of.length === 0) return <span class="faint">none so far</span>
  return (
    <details>
      <summary>{of.length}</summary>
      <ul class="notes">
        {of.map(({ at, status, error, ms }) => (
          <li key={at}>
            <Time at={at} />: {status === null ? 'no answer' : `answered ${status}`}
            {error !== null && (
              <>
                , <Text>{error}</Text>
              </>
            )}{' '}
            ({ms} ms)
          </li>
        ))}
      </ul>
    </details>
  )
}

const said = ({ messages }: { readonly messages: number }): void =>
  toast(messages === 1 ? '1 message is sent again.' : `${messages} messages are sent again.`)

function ReplayOne({ message, onClose }: { readonly message: Message; readonly onClose: () => void }) {
  const { id, webhook, environment, customerId } = message
  return (
    <Confirm
      title={`Send ${id} again`}
      act="Send again"
      reason="none"
      onConfirm={async () => {
        const sent = { params: { query: { environment } }, body: { ids: [id], webhook } }
        said(await answerOf(api.POST('/sync/messages/replay', sent)))
      }}
      onClose={onClose}
    >
      <p>
        It and all later messages about <Text>{customerId}</Text> go to <Text>{webhook}</Text> again, in their
        order and under their ids, so that the last one is what holds now.
      </p>
    </Confirm>
  )
}

/** Of a field for date and time, which is read as UTC; null: it is not filled in. */
const instantIn = (text: string): string | null =>
  text === '' ? null : `${text}:00Z`.replace(/(:\d\d:\d\d):00Z$/, '$1Z')

function ReplayStretch({
  webhooks,
  onClose,
}: {
  readonly webhooks: readonly string[]
  readonly onClose: () => void
}) {
  const { environment } = useSession()
  const [from, setFrom] = useState('')
  const [to, setTo] = useState('')
  const [webhook, setWebhook] = useState('')
  const [begin, end] = [instantIn(from), instantIn(to)]
  return (
    <Confirm
      title={`Send messages again in ${environment}`}
      act="Send again"
      reason="none"
      isReady={begin !== null}
      onConfirm={async () => {
        if (begin === null) return
        const body = { from: begin, ...(end !== null && { to: end }), ...(webhook !== '' && { webhook }) }
        said(await answerOf(api.POST('/sync/messages/replay', { params: { query: { environment } }, body })))
      }}
      onClose={onClose}
    >
      <p>
        All messages of that time, and the later ones about the same customers, are sent again in their order
        and under their ids: for example those of an outage of your own server.
      </p>
      {(
        [
          ['From (UTC)', from, setFrom],
          ['To (UTC), or until now', to, setTo],
        ] as const
      ).map(([label, value, set]) => (
        <label key={label} class="field">
          <span>{label}</span>
          <input
            type="datetime-local"
            value={value}
            onInput={({ currentTarget }) => set(currentTarget.value)}
          />
        </label>
      ))}
      <label class="field">
        <span>To the address</span>
        <select value={webhook} onChange={({ currentTarget }) => setWebhook(currentTarget.value)}>
          <option value="">each</option>
          {webhooks.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </label>
    </Confirm>
  )
}
