/* Who gained and lost access on some days, and why. */

import type { Schemas } from '../api.js'
import { setParameters } from '../router.js'
import { useSession } from '../session.js'
import { reasonOf, TURNS, turnOf } from '../shared/access.js'
import { type Field, useFilter } from '../shared/fields.js'
import { EventLink } from '../shared/links.js'
import { Badge, Button, Title } from '../shared/show.js'
import { type Columns, Listing, named } from '../shared/table.js'
import { beginOf, day, Time } from '../shared/text.js'
import { useGet, useList } from '../shared/use-query.js'
import { Sums } from './numbers.js'

type Change = Schemas['Change']

export const CHANGE_COLUMNS: Columns<Change> = {
  ...named({ at: 'When', productId: 'Product' }),
  What: (one) => <Badge text={turnOf(one)} />,
  Why: (one) => reasonOf(one),
  Until: ({ after: { active, until } }) => active && <Time at={until} never="no known end" />,
  'Caused by': ({ cause: { kind, eventId } }) => {
    if (eventId !== null) return <EventLink id={eventId} />
    return kind === 'clock' ? 'its time came' : 'a rebuild, a replay or another policy'
  },
}

export function Page() {
  const { products } = useSession()
  const names = products.map(({ id, name }) => [id, name ?? id] as const)
  const { from = day(1) } = useFilter([{ name: 'from' }])
  const { to = from } = useFilter([{ name: 'to' }])
  const fields: readonly Field[] = [
    { label: 'From', name: 'from', kind: 'day', initial: from, fixed: { to } },
    { label: 'To', name: 'to', kind: 'day', initial: to, fixed: { from } },
    { label: 'What', name: 'turn', options: TURNS },
    { label: 'Product', name: 'product', options: names },
  ]
  const { turn, product } = useFilter(fields)
  const time = { from: beginOf(from), to: beginOf(to, 1) }
  const isAsked = (one: Change): boolean =>
    (turn === undefined || turnOf(one) === turn) && (product === undefined || one.productId === product)
  const pages = useList('/changes', time, { isAsked, about: [turn, product] })
  const summary = useGet('/changes/summary', { ...time, productId: product })
  const show = (text: string, ago: number) => (
    <Button key={text} text={text} onClick={() => setParameters({ from: day(ago), to: null })} />
  )
  return (
    <>
      <Title title="Changes of access" />
      <Listing
        title={from === to ? `On ${from}` : `From ${from} to ${to}`}
        caption="Changes of access, oldest first"
        fields={fields}
        aside={[show('Yesterday', 1), show('Today', 0)]}
        list={pages}
        columns={{ ...named({ at: 'When', customerId: 'Customer' }), ...CHANGE_COLUMNS }}
        empty={
          pages.data?.hasMore
            ? 'None so far: there are more changes on these days. Look at the next ones.'
            : 'No change of access matches. Days are in UTC: choose others above, or another product.'
        }
      >
        {summary.data && <Sums of={summary.data.periods} />}
      </Listing>
    </>
  )
}
