/* One event: what came, how it was read, and what became of it. */

import { useState } from 'preact/hooks'
import { API_BASE, bytesOf, type Schemas } from '../api.js'
import { type PageProps, setParameters, usePlace } from '../router.js'
import { useSession } from '../session.js'
import { CustomerLink, SourceLink } from '../shared/links.js'
import { counted, visible } from '../shared/plain.js'
import { Answer, Badge, Button, Facts, type Of, Says, Section, Title } from '../shared/show.js'
import { named, Table } from '../shared/table.js'
import { Id, Time } from '../shared/text.js'
import { useGet, useQuery } from '../shared/use-query.js'
import { hexOf, indented, textIn } from './events/body.js'
import { Replay } from './events/replay.js'

type Detail = Schemas['EventDetail']

const BODY = '/events/{eventId}/body'
const UNUSED = 'It could not be used, so nothing was read from it. The bytes below are as they came.'
const UNSIGNED = 'None: it came without a signature, such as a change by hand or a line of an import.'

export function Page({ ids: { eventId = '' } }: PageProps) {
  const { may } = useSession()
  const event = useGet('/events/{eventId}', { eventId })
  const { disposition, conflicts = 0 } = event.data ?? {}
  return (
    <>
      <Title title={<Id>{eventId}</Id>}>
        {disposition && <Badge text={disposition} />}
        {conflicts > 0 && <Badge text="conflict" tone="bad" />}
        {disposition && may('admin') && <Replay title={`Replay ${eventId}`} filter={{ eventId }} />}
      </Title>
      <Answer query={event}>
        {({ type, customerId, source, deliveries, headers, normalized, ...known }) => (
          <>
            {known.reasonText !== null && <Says text={known.reasonText} look="notice" />}
            <Section title="What is stored">
              <Facts
                of={[
                  ['Type', type ?? 'none'],
                  ['Customer', customerId === null ? 'none' : <CustomerLink key={1} id={customerId} />],
                  ['Belongs to', source === null ? 'nothing' : <SourceLink key={2} source={source} />],
                  ['Happened', <Time key={3} at={known.createdAt} never="not said" />],
                  ['First received', <Time key={4} at={known.receivedAt} />],
                  ['Last received', <Time key={5} at={known.lastReceivedAt} />],
                  ['Received', counted(deliveries, 'time') + (deliveries > 1 ? ', counted once' : '')],
                  ['Endpoint', known.endpoint],
                  ['Generation', known.generation ?? 'none'],
                  ['Read by', `normalizer ${known.normalizerVersion}`],
                ]}
              />
            </Section>
            <Section title="As it was read">
              {normalized === null ? UNUSED : <pre>{lines(JSON.stringify(normalized, null, 2))}</pre>}
            </Section>
            <Body of={known} />
            <Section title="Headers">
              {headers === null && UNSIGNED}
              <Facts
                of={[
                  ['X-Webhook-Timestamp', headers?.timestamp],
                  ['X-Webhook-Signature', headers?.signature],
                  ['X-Webhook-Event, which is not signed', headers?.event],
                ]}
              />
            </Section>
          </>
        )}
      </Answer>
    </>
  )
}

/** Text of more than one line, where nothing hides. */
const lines = (text: string): string => text.replaceAll(/[^\n\t]+/g, visible)

type BodyFacts = Pick<Detail, 'id' | 'bodySha256' | 'bodyBytes' | 'bodyRemoved' | 'otherBodies'>

function Body({ of: { id: eventId, bodySha256, bodyBytes, bodyRemoved, otherBodies } }: Of<BodyFacts>) {
  const { environment } = useSession()
  const sha256 = usePlace().parameters.get('sha256')
  const [isAsItCame, setAsItCame] = useState(false)
  const other = otherBodies.find((one) => one.sha256 === sha256)
  const why = (other === undefined ? bodyRemoved : other.removed)?.why
  const isGone = why !== undefined && why !== 'redacted'
  const given = { environment, ...(sha256 !== null && { sha256 }) }
  const address = `${API_BASE}/events/${encodeURIComponent(eventId)}/body?${new URLSearchParams(given)}`
  const read = async (signal: AbortSignal) => (isGone ? null : bytesOf(BODY, { eventId, ...given }, signal))
  const body = useQuery(read, [address])
  const content = (bytes: Uint8Array) => {
    const text = textIn(bytes)
    if (text !== null) return <pre>{lines(isAsItCame ? text : indented(text))}</pre>
    return [<p key="says">It is not UTF-8. Shown byte by byte:</p>, <pre key="bytes">{hexOf(bytes)}</pre>]
  }
  const controls = (
    <>
      <Button text="Without indentation" isPressed={isAsItCame} onClick={() => setAsItCame(!isAsItCame)} />
      <a href={address} download>
        Download the bytes
      </a>
    </>
  )
  const what = why === 'redacted' ? 'Personal data in it was removed' : 'Its bytes were removed'
  const { at, bytes = 0, sha256: sum } = bodyRemoved ?? {}
  const gone = `${what} (${why}) ${at}. ${bytes} bytes came, with the SHA-256 ${sum}.`
  return (
    <Section title="As it came" aside={!isGone && controls}>
      {bodyRemoved && other === undefined && <Says text={gone} look="notice" />}
      {sha256 !== null && (
        <p class="notice">
          This is another body that came under the same id, and did not count.
          <Button text="Show the one that counts" onClick={() => setParameters({ sha256: null })} />
        </p>
      )}
      <Answer query={body}>{(bytes) => bytes !== null && content(bytes)}</Answer>
      {sha256 === null && <Says text={`${bodyBytes} bytes, SHA-256 \`${bodySha256}\``} look="faint" />}
      {otherBodies.length > 0 && (
        <Table
          caption="Other bodies under this id"
          rows={otherBodies}
          columns={{
            'Other body': (one) => <code>{one.sha256.slice(0, 12)}…</code>,
            ...named({ bytes: 'Bytes', receivedAt: 'Received', endpoint: 'Endpoint' }),
            ...named({ deliveries: 'Deliveries' }),
            Removed: (one) => one.removed?.why,
            Look: (one) => {
              const look = (): void => setParameters({ sha256: one.sha256 })
              return one.removed === null && <Button text="Show" look="small" onClick={look} />
            },
          }}
        />
      )}
    </Section>
  )
}
