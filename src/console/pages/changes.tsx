/* Who gained and lost access on some days, and why. */

import type { Schemas } from '../api.js'
import { setParameters, usePlace } from '../router.js'
import { useSession } from '../session.js'
import { reasonOf, TURNS, turnOf } from '../shared/access.js'
import { beginOf, day, endOf } from '../shared/days.js'
import { useGet, useList } from '../shared/list.js'
import { Button, Listing, Title } from '../shared/page.js'
import { Badge, type Column } from '../shared/show.js'
import { Text } from '../shared/text.js'
import { CustomerLink, EventLink } from '../shared/things.js'
import { Time } from '../shared/time.js'
import { Sums } from './numbers.js'

type Change = Schemas['Change']

export function Changes() {
  const { products, productName } = useSession()
  const { parameters } = usePlace()
  const from = parameters.get('from') ?? day(1)
  const to = parameters.get('to') ?? from
  const turn = parameters.get('turn')
  const productId = parameters.get('product')
  const time = { from: beginOf(from), to: endOf(to) }
  const isAsked = (one: Change): boolean =>
    (turn === null || turnOf(one) === turn) && (productId === null || one.productId === productId)
  const pages = useList('/changes', time, { isAsked, about: [turn, productId] })
  const summary = useGet('/changes/summary', { ...time, productId })
  const columns: readonly Column<Change>[] = [
    { title: 'When', cell: ({ at }) => <Time at={at} /> },
    { title: 'Customer', cell: ({ customerId }) => <CustomerLink id={customerId} /> },
    { title: 'Product', cell: (one) => <Text>{productName(one.productId)}</Text> },
    { title: 'What', cell: (one) => <Badge>{turnOf(one)}</Badge> },
    { title: 'Why', cell: (one) => <Why of={one} /> },
    { title: 'Caused by', cell: ({ cause }) => <Cause of={cause} /> },
  ]
  const fields = [
    { label: 'From', name: 'from', value: from, fixed: { to } },
    { label: 'To', name: 'to', value: to, fixed: { from } },
    { label: 'What', name: 'turn', options: TURNS },
    { label: 'Product', name: 'product', options: products.map(({ id, name }) => [id, name ?? id] as const) },
  ]
  const show = (ago: number) => () => setParameters({ from: day(ago), to: null })
  return (
    <>
      <Title text="Changes of access" />
      <Listing
        title={from === to ? `On ${from}` : `From ${from} to ${to}`}
        caption="Changes of access, oldest first"
        fields={fields}
        aside={[
          <Button key={1} text="Yesterday" onClick={show(1)} />,
          <Button key={0} text="Today" onClick={show(0)} />,
        ]}
        pages={pages}
        columns={columns}
        empty={
          pages.hasMore
            ? 'None so far: there are more changes on these days. Look at the next ones.'
            : 'No change of access matches. Days are in UTC: choose others above, or another product.'
        }
      >
        {/* The list says what is wrong with the days. */}
        {summary.data !== undefined && <Sums of={summary.data.periods} />}
      </Listing>
    </>
  )
}

function Why({ of: change }: { readonly of: Change }) {
  const { active, until } = change.after
  return (
    <>
      {reasonOf(change)}
      {active && until !== null && [', until ', <Time key="until" at={until} />]}
    </>
  )
}

function Cause({ of: { kind, eventId } }: { readonly of: Change['cause'] }) {
  if (eventId !== null) return <EventLink id={eventId} />
  return kind === 'clock' ? 'its time came' : 'a rebuild, a replay or another policy'
}
