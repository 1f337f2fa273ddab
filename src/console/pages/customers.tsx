/* Finds customers by what they are known by. */

import type { AnswerOf } from '../api.js'
import { usePlace } from '../router.js'
import { useSession } from '../session.js'
import { DETAILS } from '../shared/access.js'
import { CustomerLink } from '../shared/links.js'
import { visible } from '../shared/plain.js'
import { Section, Title } from '../shared/show.js'
import { type Columns, Listing } from '../shared/table.js'
import { useList, useSettled } from '../shared/use-query.js'

const WAYS: Readonly<Record<string, string>> = { customerId: 'id', reference: 'your reference', ...DETAILS }

type Found = AnswerOf<'/customers'>['items'][number]

const UNKNOWN = <span class="faint">unknown</span>

const COLUMNS: Columns<Found> = {
  Customer: ({ customerId }) => <CustomerLink id={customerId} />,
  'Found by': ({ matched: { by, value } }) => (by === 'customerId' ? WAYS[by] : `${WAYS[by]}: ${value}`),
}

/** For a key that may see who a customer is. */
const PERSONAL: Columns<Found> = {
  Name: ({ identities }) => identities?.name ?? UNKNOWN,
  Email: ({ identities }) => identities?.email ?? UNKNOWN,
  Discord: ({ identities }) => identities?.communityUsername ?? identities?.communityId ?? UNKNOWN,
  Telegram: ({ identities }) => identities?.messengerUsername ?? identities?.messengerId ?? UNKNOWN,
}

export function Page() {
  const query = usePlace().parameters.get('query') ?? ''
  const asked = useSettled(query)
  const more = useSession().may('write') ? ', a reference, an email or a handle' : ' or a reference'
  return (
    <>
      <Title title="Customers" />
      {query === '' || asked === '' ? (
        <Section title="Search">{`Press \`/\` and type how an id${more} begins.`}</Section>
      ) : (
        <FoundBy query={asked} />
      )}
    </>
  )
}

function FoundBy({ query }: { readonly query: string }) {
  const { environment, may } = useSession()
  const found = useList('/customers', { query, limit: 20 })
  const limits = may('write') ? '' : ' Found by id or reference: emails and handles need the scope write.'
  const nobody = [
    `Nobody in ${environment} is known by something that begins with “${visible(query)}”.${limits} If this is a whole id, look at `,
    <CustomerLink key={1} id={query} text="its page" />,
    ' to see why, or to grant access before the first event.',
  ]
  return (
    <Listing
      title="Found"
      caption="Customers"
      list={found}
      columns={{ ...COLUMNS, ...(may('write') && PERSONAL) }}
      empty={found.data?.hasMore ? 'None so far. Look further with “More”.' : nobody}
    />
  )
}
