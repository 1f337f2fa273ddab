/* Who gained and lost access on some days, and why. */

import { answerOf, api, type Environment, type Schemas } from '../api.js'
import { setParameters, usePlace } from '../router.js'
import { useSession } from '../session.js'
import { reasonOf, TURNS, turnOf } from '../shared/access.js'
import { Choose } from '../shared/choose.js'
import { beginOf, day, endOf } from '../shared/days.js'
import { CustomerLink, Go } from '../shared/links.js'
import { Badge, PagedTable, Section } from '../shared/show.js'
import { Text } from '../shared/text.js'
import { Time } from '../shared/time.js'
import { usePages, useQuery } from '../shared/use-query.js'
import { Sums } from './numbers.js'

type Change = Schemas['Change']

/** How many are shown at once, and how many pages of the log are read for them, each of so many changes. */
const SHOWN = 50
const MOST_PAGES = 20
const PAGE = 100

interface Asked {
  readonly environment: Environment
  readonly from: string
  readonly to: string
  readonly isAsked: (change: Change) => boolean
}

/** The next changes that are asked for. The API does not filter by product or turn, so there may be fewer, or none. */
async function findChanges(
  { isAsked, ...asked }: Asked,
  first: string | undefined,
  signal: AbortSignal,
): Promise<{ items: Change[]; pagination: { nextCursor: string | null; hasMore: boolean } }> {
  const items: Change[] = []
  let cursor = first
  for (let read = 1; ; read += 1) {
    const query = { ...asked, limit: PAGE, ...(cursor !== undefined && { cursor }) }
    const page = await answerOf(api.GET('/changes', { params: { query }, signal }))
    items.push(...page.items.filter(isAsked))
    cursor = page.pagination.nextCursor ?? undefined
    if (cursor === undefined || items.length >= SHOWN || read >= MOST_PAGES)
      return { items, pagination: page.pagination }
  }
}

export function Changes() {
  const { environment, products } = useSession()
  const { parameters } = usePlace()
  const from = parameters.get('from') ?? day(1)
  const to = parameters.get('to') ?? from
  const turn = parameters.get('turn')
  const product = parameters.get('product')
  const time = { from: beginOf(from), to: endOf(to) }
  const pages = usePages(
    (cursor, signal) => {
      const isAsked = (one: Change): boolean =>
        (turn === null || turnOf(one) === turn) && (product === null || one.productId === product)
      return findChanges({ environment, ...time, isAsked }, cursor, signal)
    },
    [environment, from, to, turn, product],
  )
  const summary = useQuery(
    (signal) => {
      const query = { environment, ...time, ...(product !== null && { productId: product }) }
      return answerOf(api.GET('/changes/summary', { params: { query }, signal }))
    },
    [environment, from, to, product],
  )
  return (
    <>
      <div class="title">
        <h1>Changes of access</h1>
      </div>
      <Section
        title={from === to ? `On ${from}` : `From ${from} to ${to}`}
        aside={
          <div class="filters">
            <button type="button" onClick={() => setParameters({ from: day(1), to: null })}>
              Yesterday
            </button>
            <button type="button" onClick={() => setParameters({ from: day(), to: null })}>
              Today
            </button>
            <DayInput
              label="From"
              value={from}
              onChange={(chosen) => setParameters({ from: chosen, to }, true)}
            />
            <DayInput
              label="To"
              value={to}
              onChange={(chosen) => setParameters({ from, to: chosen }, true)}
            />
            <Choose label="What" name="turn" options={TURNS.map((one) => [one, one])} />
            <Choose
              label="Product"
              name="product"
              options={products.map(({ id, name }) => [id, name ?? id])}
            />
          </div>
        }
      >
        {/* The list says what is wrong with the days. */}
        {summary.data !== undefined && <Sums of={summary.data.periods} />}
        <PagedTable
          pages={pages}
          caption="Changes of access, oldest first"
          keyOf={({ cursor }) => cursor}
          columns={useColumns()}
          empty={
            pages.hasMore ? (
              <p>None so far: there are more changes on these days. Look at the next ones.</p>
            ) : (
              <p>No change of access matches. Days are in UTC: choose others above, or another product.</p>
            )
          }
        />
      </Section>
    </>
  )
}

function DayInput({
  label,
  value,
  onChange,
}: {
  readonly label: string
  readonly value: string
  readonly onChange: (chosen: string) => void
}) {
  return (
    <label class="choice">
      <span>{label}</span>
      <input
        type="date"
        value={value}
        // While a date is typed, it is empty.
        onChange={({ currentTarget }) => currentTarget.value !== '' && onChange(currentTarget.value)}
      />
    </label>
  )
}

function useColumns() {
  const { may, productName } = useSession()
  return [
    { title: 'When', cell: ({ at }: Change) => <Time at={at} /> },
    {
      title: 'Customer',
      cell: ({ customerId }: Change) => <CustomerLink id={customerId} />,
    },
    { title: 'Product', cell: ({ productId }: Change) => <Text>{productName(productId)}</Text> },
    { title: 'What', cell: (change: Change) => <Badge>{turnOf(change)}</Badge> },
    {
      title: 'Why',
      cell: (change: Change) => (
        <>
          {reasonOf(change)}
          {change.after.active && change.after.until !== null && (
            <>
              , until <Time at={change.after.until} />
            </>
          )}
        </>
      ),
    },
    {
      title: 'Caused by',
      cell: ({ cause: { kind, eventId } }: Change) => {
        if (kind !== 'event' || eventId === null)
          return kind === 'clock' ? 'its time came' : 'a rebuild, a replay or another policy'
        if (!may('events')) return <Text>{eventId}</Text>
        return <Go to={`/events/${encodeURIComponent(eventId)}`}>{eventId}</Go>
      },
    },
  ]
}
