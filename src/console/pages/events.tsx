/* Stored events: found, read again, exported. */

import { useState } from 'preact/hooks'
import { answerOf, api, type Environment } from '../api.js'
import { setParameters, usePlace } from '../router.js'
import { useSession } from '../session.js'
import { Badge, PagedTable, Section } from '../shared/show.js'
import { Text } from '../shared/text.js'
import { CustomerLink, EventLink, SourceLink } from '../shared/things.js'
import { InstantInput, Time } from '../shared/time.js'
import { usePages } from '../shared/use-query.js'
import { ExportDialog } from './events/export.js'
import { ReplayDialog } from './events/replay.js'

const DISPOSITIONS = ['applied', 'ignored', 'held', 'quarantined'] as const
const TEXTS = ['type', 'customerId', 'endpoint', 'from', 'to', 'paymentId', 'subscriptionId'] as const
/** An export and a replay choose by all but these. */
const OF_LISTS = ['paymentId', 'subscriptionId', 'conflicts'] as const

/** Pages without a match, because one request looks at a limited number of events, up to this many at once. */
const EMPTY_PAGES = 20

/** What the address asks for. What the API would refuse, it refuses in its own words. */
function filterIn(parameters: URLSearchParams) {
  const given = TEXTS.flatMap((name) => {
    const value = parameters.get(name)
    return value === null || value === '' ? [] : [[name, value]]
  })
  const disposition = DISPOSITIONS.find((one) => one === parameters.get('disposition'))
  return {
    ...(Object.fromEntries(given) as Partial<Record<(typeof TEXTS)[number], string>>),
    ...(disposition !== undefined && { disposition }),
    ...(parameters.get('conflicts') === 'true' && { conflicts: true }),
  }
}

type EventFilter = ReturnType<typeof filterIn>

async function readEvents(
  environment: Environment,
  filter: EventFilter,
  from: string | undefined,
  signal: AbortSignal,
) {
  let cursor = from
  for (let read = 1; ; read += 1) {
    const query = { environment, ...filter, limit: 50, ...(cursor !== undefined && { cursor }) }
    const page = await answerOf(api.GET('/events', { params: { query }, signal }))
    if (page.items.length > 0 || !page.pagination.hasMore || read === EMPTY_PAGES) return page
    cursor = page.pagination.nextCursor ?? undefined
  }
}

export function Events() {
  const { environment, may } = useSession()
  const filter = filterIn(usePlace().parameters)
  const [open, setOpen] = useState<'replay' | 'export' | null>(null)
  const events = usePages(
    (cursor, signal) => readEvents(environment, filter, cursor, signal),
    [environment, filter],
  )
  const unsuited = OF_LISTS.filter((name) => filter[name] !== undefined)
  const { paymentId: _, subscriptionId: __, conflicts: ___, ...suited } = filter
  const note =
    unsuited.length > 0
      ? `A replay and an export can’t choose by ${unsuited.join(', ')}: clear that first.`
      : ''
  return (
    <>
      <div class="title">
        <h1>Events</h1>
        <div class="acts">
          {may('admin') && (
            <button type="button" disabled={note !== ''} onClick={() => setOpen('replay')}>
              Replay these…
            </button>
          )}
          <button type="button" disabled={note !== ''} onClick={() => setOpen('export')}>
            Export these…
          </button>
        </div>
      </div>
      {note !== '' && <p class="faint">{note}</p>}
      <Filter filter={filter} types={(events.data ?? []).flatMap(({ type }) => type ?? [])} />
      <Section title="Newest first">
        <PagedTable
          pages={events}
          caption="Events"
          keyOf={({ id }) => id}
          columns={[
            { title: 'Received', cell: ({ receivedAt }) => <Time at={receivedAt} /> },
            { title: 'Type', cell: ({ type }) => <Text>{type ?? 'none'}</Text> },
            { title: 'Event', cell: ({ id }) => <EventLink id={id} /> },
            {
              title: 'Disposition',
              cell: ({ disposition, reason }) => (
                <>
                  <Badge>{disposition}</Badge> {reason?.replaceAll('_', ' ')}
                </>
              ),
            },
            { title: 'Customer', cell: ({ customerId }) => customerId && <CustomerLink id={customerId} /> },
            { title: 'Belongs to', cell: ({ source }) => source !== null && <SourceLink source={source} /> },
            { title: 'Endpoint', cell: ({ endpoint }) => <Text>{endpoint}</Text> },
            {
              title: 'Came',
              cell: ({ deliveries, conflicts }) => (
                <>
                  {deliveries === 1 ? 'once' : `${deliveries} times`}{' '}
                  {conflicts > 0 && <Badge tone="bad">conflict</Badge>}
                </>
              ),
            },
          ]}
          empty={
            events.hasMore ? (
              <p>No match among the newest events. “More” looks further back.</p>
            ) : Object.keys(filter).length > 0 ? (
              <p>No event in {environment} matches. Clear a filter, or look in the other environment.</p>
            ) : (
              <p>
                No event was received in {environment}. Point the payments service at <code>/webhooks/…</code>{' '}
                of an endpoint, or run <code>latchkey trigger</code>.
              </p>
            )
          }
        />
      </Section>
      {open === 'export' && <ExportDialog filter={suited} onClose={() => setOpen(null)} />}
      {open === 'replay' && (
        <ReplayDialog
          title="Replay the events that match"
          filter={suited}
          onClose={() => setOpen(null)}
          onDone={events.reload}
        />
      )}
    </>
  )
}

function Filter({ filter, types }: { readonly filter: EventFilter; readonly types: readonly string[] }) {
  const { environment, endpoints } = useSession()
  const text = (name: 'type' | 'customerId' | 'paymentId' | 'subscriptionId', label: string) => (
    <label class="field">
      <span>{label}</span>
      <input
        key={filter[name] ?? ''}
        defaultValue={filter[name] ?? ''}
        autocomplete="off"
        maxLength={255}
        type="text"
        list={name === 'type' ? 'types' : ''}
        onChange={({ currentTarget: { value } }) => setParameters({ [name]: value.trim() })}
      />
    </label>
  )
  const choice = (name: 'disposition' | 'endpoint', label: string, options: readonly string[]) => (
    <label class="field">
      <span>{label}</span>
      <select
        value={filter[name] ?? ''}
        onChange={({ currentTarget: { value } }) => setParameters({ [name]: value })}
      >
        <option value="">any</option>
        {[...new Set([...options, ...(filter[name] === undefined ? [] : [filter[name]])])].map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </select>
    </label>
  )
  const own = endpoints.filter((one) => one.environment === environment).map(({ name }) => name)
  return (
    // biome-ignore lint/a11y/useSemanticElements: <search> is that of the customers.
    <form
      class="filter"
      role="search"
      aria-label="Filter events"
      onSubmit={(event) => event.preventDefault()}
    >
      {choice('disposition', 'Disposition', DISPOSITIONS)}
      {text('type', 'Type')}
      <datalist id="types">
        {[...new Set(types)].map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
      {choice('endpoint', 'Endpoint', [...own, 'manual', 'backfill'])}
      {text('customerId', 'Customer')}
      {text('subscriptionId', 'Subscription')}
      {text('paymentId', 'Payment')}
      <InstantInput
        label="Received from"
        at={filter.from ?? null}
        onChange={(from) => setParameters({ from })}
      />
      <InstantInput label="Received before" at={filter.to ?? null} onChange={(to) => setParameters({ to })} />
      <label class="check">
        <input
          type="checkbox"
          checked={filter.conflicts === true}
          onChange={({ currentTarget: { checked } }) => setParameters({ conflicts: checked ? 'true' : null })}
        />{' '}
        Conflicts only
      </label>
      {Object.keys(filter).length > 0 && (
        <button
          type="button"
          onClick={() =>
            setParameters(
              Object.fromEntries([...TEXTS, 'disposition', 'conflicts'].map((name) => [name, null])),
            )
          }
        >
          Clear
        </button>
      )}
    </form>
  )
}
