/* Stored events: found, read again, exported. */

import { setParameters } from '../router.js'
import { useSession } from '../session.js'
import { type Field, useFilter } from '../shared/fields.js'
import { CustomerLink, EventLink, SourceLink } from '../shared/links.js'
import { Badge, Button, Says, Title } from '../shared/show.js'
import { Listing, named } from '../shared/table.js'
import { useList } from '../shared/use-query.js'
import { Export } from './events/export.js'
import { Replay } from './events/replay.js'

const DISPOSITIONS = ['applied', 'ignored', 'held', 'quarantined'] as const

/** An export and a replay choose by all but these. */
const OF_LISTS: readonly Field[] = [
  { name: 'subscriptionId', label: 'Subscription' },
  { name: 'paymentId', label: 'Payment' },
  { name: 'conflicts', label: 'Conflicts only', kind: 'check' },
]

export function Page() {
  const { environment, endpoints, may } = useSession()
  const own = endpoints.filter((one) => one.environment === environment).map(({ name }) => name)
  const fields: readonly Field[] = [
    { name: 'disposition', label: 'Disposition', options: DISPOSITIONS, none: 'any' },
    { name: 'type', label: 'Type' },
    { name: 'endpoint', label: 'Endpoint', options: [...own, 'manual', 'backfill'], none: 'any' },
    { name: 'customerId', label: 'Customer' },
    { name: 'from', label: 'Received from', kind: 'instant' },
    { name: 'to', label: 'Received before', kind: 'instant' },
  ]
  const suited = useFilter(fields)
  const ofLists = useFilter(OF_LISTS)
  const unsuited = OF_LISTS.filter(({ name }) => ofLists[name] !== undefined).map(({ label }) => label)
  const pages = useList('/events', { ...suited, ...ofLists })
  const all = [...fields, ...OF_LISTS]
  const isFiltered = unsuited.length + Object.keys(suited).length > 0
  const clear = (): void => setParameters(Object.fromEntries(all.map(({ name }) => [name, null])))
  const none = isFiltered
    ? `No event in ${environment} matches. Clear a filter, or look in the other environment.`
    : `No event was received in ${environment}. Point the payments service at \`/webhooks/…\` of an endpoint, or run \`latchkey trigger\`.`
  const same = { filter: suited, isDisabled: unsuited.length > 0 }
  const note = `A replay and an export can’t choose by “${unsuited.join('”, “')}”: clear that first.`
  return (
    <>
      <Title title="Events">
        {may('admin') && <Replay label="Replay these…" title="Replay the events that match" {...same} />}
        <Export {...same} />
      </Title>
      {unsuited.length > 0 && <Says text={note} look="faint" />}
      <Listing
        title="Newest first"
        caption="Events"
        fields={all}
        aside={isFiltered && <Button text="Clear" onClick={clear} />}
        list={pages}
        columns={{
          ...named({ receivedAt: 'Received', type: 'Type' }),
          Event: ({ id }) => <EventLink id={id} />,
          ...named({ disposition: 'Disposition' }),
          Why: ({ reason }) => reason?.replaceAll('_', ' '),
          Customer: ({ customerId }) => customerId && <CustomerLink id={customerId} />,
          'Belongs to': ({ source }) => source && <SourceLink source={source} />,
          ...named({ endpoint: 'Endpoint', deliveries: 'Deliveries' }),
          Conflicts: ({ conflicts }) => conflicts > 0 && <Badge text="conflict" tone="bad" />,
        }}
        empty={pages.data?.hasMore ? 'No match among the newest events. “More” looks further back.' : none}
      />
    </>
  )
}
