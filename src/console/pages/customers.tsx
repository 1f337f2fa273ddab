/* Finds customers by what they are known by. */

import { answerOf, api } from '../api.js'
import { usePlace } from '../router.js'
import { useSession } from '../session.js'
import { type Column, Empty, PagedTable, Section } from '../shared/show.js'
import { Text } from '../shared/text.js'
import { CustomerLink } from '../shared/things.js'
import { usePages, useSettled } from '../shared/use-query.js'

const WAYS = {
  customerId: 'id',
  reference: 'your reference',
  email: 'email',
  communityId: 'Discord account',
  messengerId: 'Telegram account',
  communityUsername: 'Discord name',
  messengerUsername: 'Telegram name',
} as const

const NOBODY = { items: [], pagination: { nextCursor: null, hasMore: false } }

export function Customers() {
  const { environment, may } = useSession()
  const query = usePlace().parameters.get('query') ?? ''
  const asked = useSettled(query, 150)
  const found = usePages(
    async (cursor, signal) =>
      asked === ''
        ? NOBODY
        : answerOf(
            api.GET('/customers', {
              params: { query: { environment, query: asked, ...(cursor !== undefined && { cursor }) } },
              signal,
            }),
          ),
    [environment, asked],
  )

  const isIdle = query === '' || asked === ''
  type Found = NonNullable<typeof found.data>[number]
  const isPersonal = may('write')
  const detail = (title: string, of: (known: NonNullable<Found['identities']>) => string | null) => ({
    title,
    cell: ({ identities }: Found) => {
      const value = identities === null ? null : of(identities)
      return value === null ? <span class="faint">unknown</span> : <Text>{value}</Text>
    },
  })
  const columns: readonly Column<Found>[] = [
    { title: 'Customer', cell: ({ customerId }) => <CustomerLink id={customerId} /> },
    {
      title: 'Found by',
      cell: ({ matched: { by, value } }) => (
        <>
          {WAYS[by]}
          {by !== 'customerId' && (
            <>
              : <Text>{value}</Text>
            </>
          )}
        </>
      ),
    },
    ...(isPersonal
      ? [
          detail('Name', ({ name }) => name),
          detail('Email', ({ email }) => email),
          detail('Discord', ({ communityUsername, communityId }) => communityUsername ?? communityId),
          detail('Telegram', ({ messengerUsername, messengerId }) => messengerUsername ?? messengerId),
        ]
      : []),
  ]
  return (
    <>
      <div class="title">
        <h1>Customers</h1>
      </div>
      <Section title={isIdle ? 'Search' : 'Found'}>
        {isIdle ? (
          <Empty>
            <p>
              Press <kbd>/</kbd> and type how an id
              {isPersonal ? ', a reference, an email or a handle' : ' or a reference'} begins.
            </p>
          </Empty>
        ) : (
          <PagedTable
            pages={found}
            caption="Customers"
            keyOf={({ customerId }) => customerId}
            columns={columns}
            empty={
              found.hasMore ? (
                <p>None so far. Look further with “More”.</p>
              ) : (
                <>
                  <p>
                    Nobody in {environment} is known by something that begins with “<Text>{asked}</Text>”.
                    {!isPersonal &&
                      ' This key searches ids and references only: emails and handles need the scope write.'}
                  </p>
                  <p>
                    If this is a whole id, look at <CustomerLink id={asked}>its page</CustomerLink> to see
                    why, or to grant access before the first event.
                  </p>
                </>
              )
            }
          />
        )}
      </Section>
    </>
  )
}
