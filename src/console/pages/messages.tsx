/* Messages of the outbound webhooks, and every attempt to deliver them. */

import { useState } from 'preact/hooks'
import { answerOf, api, type Schemas } from '../api.js'
import { useSession } from '../session.js'
import { Ask } from '../shared/ask.js'
import { Choose, useFilter } from '../shared/choose.js'
import { CustomerLink, Go } from '../shared/links.js'
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
  const filter = useFilter(['webhook', 'status', 'type', 'customerId', 'id'])
  const sync = useQuery(
    (signal) => answerOf(api.GET('/sync', { params: { query: { environment } }, signal })),
    [environment],
  )
  const webhooks = sync.data?.webhooks.map(({ id }) => id) ?? []
  const pages = usePages(
    (cursor, signal) => {
      const query = { environment, limit: 50, ...filter, ...(cursor !== undefined && { cursor }) }
      return answerOf(api.GET('/sync/messages', { params: { query }, signal }))
    },
    [environment, filter],
  )
  return (
    <>
      <div class="title">
        <h1>Messages of outbound webhooks</h1>
        <Go to="/sync">Sync and webhooks</Go>
        <ReplayStretch webhooks={webhooks} onClose={pages.reload} />
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
            { title: 'Message', cell: ({ id }) => <Id>{id}</Id> },
            { title: 'Type', cell: ({ type }) => type.replace('entitlement.', '') },
            { title: 'To', cell: ({ webhook }) => <Text>{webhook}</Text> },
            { title: 'Customer', cell: ({ customerId }) => <CustomerLink id={customerId} /> },
            { title: 'Product', cell: ({ productId }) => <Text>{productId}</Text> },
            {
              title: 'Status',
              cell: ({ status, reason, nextAttemptAt }) => (
                <>
                  <Badge>{status}</Badge> {reason !== null && REASONS[reason]}
                  {nextAttemptAt !== null && (
                    <>
                      next attempt: <Time at={nextAttemptAt} />
                    </>
                  )}
                </>
              ),
            },
            { title: 'Attempts', cell: ({ attempts }) => <Attempts of={attempts} /> },
            { title: 'Replay', cell: (message) => <ReplayOne message={message} onClose={pages.reload} /> },
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
            <Time at={at} />: {status === null ? 'no answer' : `answered ${status}`} after {ms} ms
            {error !== null && (
              <>
                , <Text>{error}</Text>
              </>
            )}
          </li>
        ))}
      </ul>
    </details>
  )
}

interface ReplayProps {
  readonly onClose: () => void
}

const told = ({ messages }: { readonly messages: number }): void =>
  toast(messages === 1 ? '1 message is sent again.' : `${messages} messages are sent again.`)

function ReplayOne({ message, onClose }: ReplayProps & { readonly message: Message }) {
  const { id, webhook, environment, customerId } = message
  return (
    <Ask
      label="Replay…"
      name={`Replay ${id}`}
      look="small"
      title={`Send ${id} again`}
      act="Send again"
      onConfirm={async () => {
        const sent = { params: { query: { environment } }, body: { ids: [id], webhook } }
        told(await answerOf(api.POST('/sync/messages/replay', sent)))
      }}
      onClose={onClose}
    >
      <p>
        It and all later messages about <Text>{customerId}</Text> go to <Text>{webhook}</Text> again, in their
        order and under their ids, so that the last one is what holds now.
      </p>
    </Ask>
  )
}

/** A field for date and time has no zone, and seconds only if they are not 0. */
const inUtc = (text: string): string => (text.length === 16 ? `${text}:00Z` : `${text}Z`)

function ReplayStretch({ webhooks, onClose }: ReplayProps & { readonly webhooks: readonly string[] }) {
  const { environment } = useSession()
  const [from, setFrom] = useState('')
  const [to, setTo] = useState('')
  const [webhook, setWebhook] = useState('')
  const fields = [
    ['From (UTC)', from, setFrom],
    ['To (UTC), or until now', to, setTo],
  ] as const
  return (
    <Ask
      label="Replay a stretch of time…"
      title={`Send messages again in ${environment}`}
      act="Send again"
      isReady={from !== ''}
      onConfirm={async () => {
        const body = {
          from: inUtc(from),
          ...(to !== '' && { to: inUtc(to) }),
          ...(webhook !== '' && { webhook }),
        }
        told(await answerOf(api.POST('/sync/messages/replay', { params: { query: { environment } }, body })))
      }}
      onClose={onClose}
    >
      <p>
        All messages of that time, and the later ones about the same customers, are sent again in their order
        and under their ids: for example those of an outage of your own server.
      </p>
      {fields.map(([label, value, set]) => (
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
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
    </Ask>
  )
}
