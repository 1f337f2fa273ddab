/* One event: what came, how it was read, and what became of it. */

import { useState } from 'preact/hooks'
import { answerOf, api, type Schemas } from '../api.js'
import { setParameters, usePlace } from '../router.js'
import { useSession } from '../session.js'
import { visible } from '../shared/plain.js'
import { Answer, Badge, Empty, Facts, Section, Table } from '../shared/show.js'
import { Id, Text } from '../shared/text.js'
import { bodyAddress, CustomerLink, SourceLink } from '../shared/things.js'
import { Time } from '../shared/time.js'
import { useQuery } from '../shared/use-query.js'
import { hexOf, indented, textIn } from './events/body.js'
import { ReplayDialog } from './events/replay.js'

export function Event({ ids: { eventId = '' } }: { readonly ids: Readonly<Record<string, string>> }) {
  const { environment, may } = useSession()
  const [isReplaying, setReplaying] = useState(false)
  const event = useQuery(
    (signal) => {
      const params = { path: { eventId }, query: { environment } }
      return answerOf(api.GET('/events/{eventId}', { params, signal }))
    },
    [environment, eventId],
  )
  const { data } = event
  return (
    <>
      <div class="title">
        <h1>
          <Id>{eventId}</Id>
        </h1>
        {data && <Badge>{data.disposition}</Badge>}
        {data && data.conflicts > 0 && <Badge tone="bad">conflict</Badge>}
        {data && may('admin') && (
          <button type="button" onClick={() => setReplaying(true)}>
            Replay…
          </button>
        )}
      </div>
      <Answer query={event}>
        {(known) => (
          <div class="sections">
            {known.reasonText !== null && (
              <p class="notice">
                <Text>{known.reasonText}</Text>
              </p>
            )}
            <Section title="What is stored">
              <Facts
                of={[
                  ['Type', known.type === null ? 'none' : <Text>{known.type}</Text>],
                  ['Customer', known.customerId === null ? 'none' : <CustomerLink id={known.customerId} />],
                  ['Belongs to', known.source === null ? 'nothing' : <SourceLink source={known.source} />],
                  ['Happened', <Time at={known.createdAt} never="not said" />],
                  ['First received', <Time at={known.receivedAt} />],
                  ['Last received', <Time at={known.lastReceivedAt} />],
                  ['Came', known.deliveries === 1 ? 'once' : `${known.deliveries} times, counted once`],
                  ['Endpoint', <Text>{known.endpoint}</Text>],
                  ['Generation', known.generation ?? 'none'],
                  ['Read by', `normalizer ${known.normalizerVersion}`],
                ]}
              />
            </Section>
            <Section title="As it was read">
              {known.normalized === null ? (
                <Empty>
                  It could not be used, so nothing was read from it. The bytes below are as they came.
                </Empty>
              ) : (
                <pre>{shown(JSON.stringify(known.normalized, null, 2))}</pre>
              )}
            </Section>
            <Body event={known} />
            <Section title="Signed headers">
              {known.headers === null ? (
                <Empty>
                  None: it came without a signature, such as a change by hand or a line of an import.
                </Empty>
              ) : (
                <Facts
                  of={[
                    ['X-Webhook-Event', <Text>{known.headers.event ?? 'none'}</Text>],
                    ['X-Webhook-Timestamp', <Text>{known.headers.timestamp}</Text>],
                    ['X-Webhook-Signature', <code>{visible(known.headers.signature)}</code>],
                  ]}
                />
              )}
            </Section>
          </div>
        )}
      </Answer>
      {isReplaying && data !== undefined && (
        <ReplayDialog
          title={`Replay ${visible(eventId)}, and others of its type and millisecond`}
          filter={onlyThis(data)}
          onClose={() => setReplaying(false)}
          onDone={event.reload}
        />
      )}
    </>
  )
}

/** A replay takes no id: the instant of receipt, to the millisecond, and the endpoint lead to it. */
function onlyThis({ endpoint, receivedAt, type }: Schemas['EventDetail']) {
  const to = new Date(Date.parse(receivedAt) + 1).toISOString()
  return { endpoint, from: receivedAt, to, ...(type !== null && { type }) }
}

/** Text of more than one line, where nothing hides. */
const shown = (text: string): string =>
  text
    .split(/([\n\t])/)
    .map((part) => (part === '\n' || part === '\t' ? part : visible(part)))
    .join('')

function Body({ event }: { readonly event: Schemas['EventDetail'] }) {
  const { environment } = useSession()
  const { id, bodySha256, bodyBytes, bodyRemoved, otherBodies } = event
  const sha256 = usePlace().parameters.get('sha256')
  const [isAsItCame, setAsItCame] = useState(false)
  const other = otherBodies.find((one) => one.sha256 === sha256)
  const isRemoved =
    other === undefined
      ? bodyRemoved?.why === 'expired' || bodyRemoved?.why === 'erased'
      : other.removed !== null
  const query = { environment, ...(sha256 !== null && { sha256 }) }
  const body = useQuery(
    async (signal) => {
      if (isRemoved) return null
      const params = { path: { eventId: id }, query }
      const bytes = await answerOf(
        api.GET('/events/{eventId}/body', { params, signal, parseAs: 'arrayBuffer' }),
      )
      return new Uint8Array(bytes as unknown as ArrayBuffer)
    },
    [environment, id, sha256],
  )
  const content = (bytes: Uint8Array) => {
    const text = textIn(bytes)
    if (text === null) {
      return (
        <>
          <p>It is not UTF-8. Shown byte by byte:</p>
          <pre>{hexOf(bytes)}</pre>
        </>
      )
    }
    return <pre>{shown(isAsItCame ? text : indented(text))}</pre>
  }
  return (
    <Section
      title="As it came"
      aside={
        !isRemoved && (
          <div class="acts">
            <button type="button" aria-pressed={isAsItCame} onClick={() => setAsItCame(!isAsItCame)}>
              Without indentation
            </button>
            <a href={bodyAddress(id, query)} download>
              Download the bytes
            </a>
          </div>
        )
      }
    >
      {bodyRemoved !== null && other === undefined && (
        <p class="notice">
          {bodyRemoved.why === 'redacted' ? 'Personal data in it was removed' : 'Its bytes were removed'} (
          {bodyRemoved.why}) <Time at={bodyRemoved.at} />. {bodyRemoved.bytes} bytes came, with the SHA-256{' '}
          <code>{bodyRemoved.sha256}</code>.
        </p>
      )}
      {sha256 !== null && (
        <p class="notice">
          This is another body that came under the same id, and did not count.{' '}
          <button type="button" class="small" onClick={() => setParameters({ sha256: null })}>
            Show the one that counts
          </button>
        </p>
      )}
      <Answer query={body}>{(bytes) => bytes !== null && content(bytes)}</Answer>
      {sha256 === null && (
        <p class="faint">
          {bodyBytes} bytes, SHA-256 <code>{bodySha256}</code>
        </p>
      )}
      {otherBodies.length > 0 && (
        <Table
          caption="Other bodies under this id"
          rows={otherBodies}
          keyOf={(one) => one.sha256}
          columns={[
            { title: 'Other body', cell: (one) => <code>{one.sha256.slice(0, 12)}…</code> },
            { title: 'Bytes', cell: ({ bytes }) => bytes, isNumber: true },
            { title: 'Received', cell: ({ receivedAt }) => <Time at={receivedAt} /> },
            { title: 'Endpoint', cell: ({ endpoint }) => <Text>{endpoint}</Text> },
            {
              title: 'Came',
              cell: ({ deliveries }) => (deliveries === 1 ? 'once' : `${deliveries} times`),
            },
            {
              title: 'Look',
              cell: (one) =>
                one.removed === null ? (
                  <button type="button" class="small" onClick={() => setParameters({ sha256: one.sha256 })}>
                    Show
                  </button>
                ) : (
                  `removed (${one.removed.why})`
                ),
            },
          ]}
          empty={null}
        />
      )}
    </Section>
  )
}
