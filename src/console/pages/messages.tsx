/* Messages of the outbound webhooks, and every attempt to deliver them. */

import { useState } from 'preact/hooks'
import { answerOf, api, type Schemas } from '../api.js'
import { useSession } from '../session.js'
import { Ask } from '../shared/ask.js'
import { Select, useFilter } from '../shared/filters.js'
import { Go } from '../shared/links.js'
import { useGet, useList } from '../shared/list.js'
import { Listing, Title } from '../shared/page.js'
import { Badge } from '../shared/show.js'
import { Id, Text } from '../shared/text.js'
import { CustomerLink } from '../shared/things.js'
import { InstantInput, Time } from '../shared/time.js'
import { toast } from '../shared/toast.js'

type Message = Schemas['Message']

const TYPES = ['granted', 'changed', 'revoked'].map((one) => [`entitlement.${one}`, one] as const)
const REASONS = {
  gone: 'the address said that it is gone',
  given_up: 'given up after too many attempts',
} as const

export function Messages() {
  const filter = useFilter(['webhook', 'status', 'type', 'customerId', 'id'])
  const webhooks = useGet('/sync').data?.webhooks.map(({ id }) => id) ?? []
  const pages = useList('/sync/messages', filter)
  return (
    <>
      <Title text="Messages of outbound webhooks">
        <Go to="/sync" text="Sync and webhooks" />
        <ReplayStretch webhooks={webhooks} onClose={pages.reload} />
      </Title>
      <Listing
        title="Newest first"
        caption="Messages"
        fields={[
          { label: 'Address', name: 'webhook', options: webhooks },
          { label: 'Status', name: 'status', options: ['pending', 'delivered', 'failed'] },
          { label: 'Type', name: 'type', options: TYPES },
        ]}
        pages={pages}
        keyOf={({ id, webhook }) => `${id} ${webhook}`}
        columns={[
          { title: 'Queued', cell: ({ queuedAt }) => <Time at={queuedAt} /> },
          { title: 'Message', cell: ({ id }) => <Id>{id}</Id> },
          { title: 'Type', cell: ({ type }) => type.replace('entitlement.', '') },
          { title: 'To', cell: ({ webhook }) => <Text>{webhook}</Text> },
          { title: 'Customer', cell: ({ customerId }) => <CustomerLink id={customerId} /> },
          { title: 'Product', cell: ({ productId }) => <Text>{productId}</Text> },
          { title: 'Status', cell: ({ status }) => <Badge>{status}</Badge> },
          { title: 'Why', cell: ({ reason }) => reason && REASONS[reason] },
          { title: 'Attempts', cell: ({ attempts }) => <Attempts of={attempts} /> },
          { title: 'Next attempt', cell: ({ nextAttemptAt }) => <Time at={nextAttemptAt} never="" /> },
          { title: 'Replay', cell: (message) => <ReplayOne message={message} onClose={pages.reload} /> },
        ]}
        empty="No message matches in the last 30 days. Each change of access makes one for each address of `sync.webhooks`."
      />
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
            <Time at={at} />: {status === null ? 'no answer' : `answered ${status}`} after {ms} ms{' '}
            <Text>{error ?? ''}</Text>
          </li>
        ))}
      </ul>
    </details>
  )
}

interface ReplayProps {
  readonly onClose: () => void
}

/** @param body as of `POST /sync/messages/replay` */
function useReplay() {
  const { environment } = useSession()
  return async (
    body: { ids: string[]; webhook: string } | { from: string; to?: string; webhook?: string },
  ) => {
    const sent = { params: { query: { environment } }, body }
    const { messages } = await answerOf(api.POST('/sync/messages/replay', sent))
    toast(messages === 1 ? '1 message is sent again.' : `${messages} messages are sent again.`)
  }
}

function ReplayOne({ message, onClose }: ReplayProps & { readonly message: Message }) {
  const { id, webhook, customerId } = message
  const replay = useReplay()
  return (
    <Ask
      label="Replay…"
      act="Send again"
      name={`Replay ${id}`}
      look="small"
      title={`Send ${id} again`}
      says={`It and all later messages about ${customerId} go to ${webhook} again, in their order and under their ids, so that the last one is what holds now.`}
      onConfirm={() => replay({ ids: [id], webhook })}
      onClose={onClose}
    />
  )
}

function ReplayStretch({ webhooks, onClose }: ReplayProps & { readonly webhooks: readonly string[] }) {
  const { environment } = useSession()
  const [from, setFrom] = useState<string | null>(null)
  const [to, setTo] = useState<string | null>(null)
  const [webhook, setWebhook] = useState('')
  const replay = useReplay()
  return (
    <Ask
      label="Replay a stretch of time…"
      title={`Send messages again in ${environment}`}
      act="Send again"
      says="All messages of that time, and the later ones about the same customers, are sent again in their order and under their ids: for example those of an outage of your own server."
      isReady={from !== null}
      onConfirm={() => replay({ from: from ?? '', ...(to && { to }), ...(webhook && { webhook }) })}
      onClose={onClose}
    >
      <InstantInput label="From" at={from} onChange={setFrom} />
      <InstantInput label="To, or until now" at={to} onChange={setTo} />
      <Select label="To the address" none="each" options={webhooks} value={webhook} onChange={setWebhook} />
    </Ask>
  )
}
