/* Messages of the outbound webhooks, and every attempt to deliver them. */

import { type Environment, type Schemas, send } from '../api.js'
import { useSession } from '../session.js'
import { Ask } from '../shared/ask.js'
import { type Field, useFilter, type Values } from '../shared/fields.js'
import { Go } from '../shared/links.js'
import { Notes, type Of, Title } from '../shared/show.js'
import { type Columns, Listing, named } from '../shared/table.js'
import { Id } from '../shared/text.js'
import { useGet, useList } from '../shared/use-query.js'

type Message = Schemas['Message']

const TYPES = ['granted', 'changed', 'revoked'].map((one) => [`entitlement.${one}`, one] as const)
const REASONS = { gone: 'the address said that it is gone', given_up: 'given up after many attempts' }

type Replayed = { ids: string[]; webhook: string } | { from: string; to?: string; webhook?: string }

async function replay(environment: Environment, body: Replayed): Promise<string> {
  const { messages } = await send('post', '/sync/messages/replay', { environment }, body)
  return messages === 1 ? '1 message is sent again.' : `${messages} messages are sent again.`
}

export function Page() {
  const { environment } = useSession()
  const webhooks = useGet('/sync').data?.webhooks.map(({ id }) => id) ?? []
  const fields: readonly Field[] = [
    { label: 'Address', name: 'webhook', options: webhooks },
    { label: 'Status', name: 'status', options: ['pending', 'delivered', 'failed'] },
    { label: 'Type', name: 'type', options: TYPES },
    { label: 'Customer', name: 'customerId' },
    { label: 'Message', name: 'id' },
  ]
  const stretch = [
    { name: 'from', label: 'From', kind: 'instant' },
    { name: 'to', label: 'To, or until now', kind: 'instant' },
    { name: 'webhook', label: 'To the address', options: webhooks, none: 'each' },
  ] as const
  return (
    <>
      <Title title="Messages of outbound webhooks">
        <Go to="/sync" text="Sync and webhooks" />
        <Ask
          label="Replay a stretch of time…"
          title={`Send messages again in ${environment}`}
          act="Send again"
          says="All messages of that time, and the later ones about the same customers, are sent again in their order and under their ids: for example those of an outage of your own server."
          fields={() => stretch}
          isReady={({ from }) => from !== ''}
          onConfirm={({ from = '', to, webhook }) =>
            replay(environment, { from, ...(to && { to }), ...(webhook && { webhook }) })
          }
        />
      </Title>
      <MessageList title="Newest first" fields={fields} given={useFilter(fields)} />
    </>
  )
}

type MessageListProps = { readonly title: string; readonly fields?: readonly Field[]; readonly given: Values }

export const MessageList = ({ given, ...rest }: MessageListProps) => (
  <Listing
    {...rest}
    caption="Messages"
    list={useList('/sync/messages', given)}
    keyOf={({ id, webhook }) => `${id} ${webhook}`}
    columns={COLUMNS}
    empty="No message matches in the last 30 days. Each change of access makes one for each address of `sync.webhooks`."
  />
)

const COLUMNS: Columns<Message> = {
  Message: ({ id }) => <Id>{id}</Id>,
  Type: ({ type }) => type.replace('entitlement.', ''),
  ...named({ queuedAt: 'Queued', webhook: 'To', customerId: 'Customer' }),
  ...named({ productId: 'Product', status: 'Status' }),
  Why: ({ reason }) => reason && REASONS[reason],
  Attempts: ({ attempts }) => <Attempts of={attempts} />,
  ...named({ nextAttemptAt: 'Next attempt' }),
  Replay: ({ id, webhook, customerId, environment }) => (
    <Ask
      label="Replay…"
      act="Send again"
      name={`Replay ${id}`}
      look="small"
      title={`Send ${id} again`}
      says={`It and all later messages about ${customerId} go to ${webhook} again, in their order and under their ids, so that the last one is what holds now.`}
      onConfirm={() => replay(environment, { ids: [id], webhook })}
    />
  ),
}

const Attempts = ({ of }: Of<Message['attempts']>) => (
  <details>
    <summary>{of.length}</summary>
    <Notes
      of={of.map(({ at, status, error, ms }) => {
        const answer = status === null ? 'no answer' : `answered ${status}`
        return `${at}: ${answer} after ${ms} ms ${error ?? ''}`
      })}
    />
  </details>
)
