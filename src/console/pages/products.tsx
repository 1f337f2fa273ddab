/* Products: what each gives, who has it, and how that changes. */

import { answerOf, api } from '../api.js'
import { useSession } from '../session.js'
import { day } from '../shared/days.js'
import { CustomerLink, Go } from '../shared/links.js'
import { Answer, Badge, Facts, PagedTable, Section, Table } from '../shared/show.js'
import { Id, Text } from '../shared/text.js'
import { Time } from '../shared/time.js'
import { usePages, useQuery } from '../shared/use-query.js'
import { Numbers } from './numbers.js'

function useProducts() {
  const { environment } = useSession()
  return useQuery(
    (signal) => answerOf(api.GET('/products', { params: { query: { environment } }, signal })),
    [environment],
  )
}

export function Products() {
  const { environment } = useSession()
  const products = useProducts()
  return (
    <>
      <div class="title">
        <h1>Products and features</h1>
        <Go to="/changes" with={{ from: day(1), turn: 'lost' }}>
          Who lost access yesterday?
        </Go>
        <Go to="/changes" with={{ from: day(), turn: 'gained' }}>
          Who gained access today?
        </Go>
      </div>
      <Section title="Products">
        <Answer query={products}>
          {(found) => (
            <Table
              caption="Products"
              rows={found.products}
              keyOf={({ productId }) => productId}
              columns={[
                {
                  title: 'Product',
                  cell: ({ productId, name, configured }) => (
                    <>
                      <Go to={`/products/${encodeURIComponent(productId)}`}>{name ?? productId}</Go>
                      {!configured && <Badge tone="warn">not in the config</Badge>}
                    </>
                  ),
                },
                { title: 'Id', cell: ({ productId }) => <Id>{productId}</Id> },
                { title: 'With access', isNumber: true, cell: ({ active }) => active },
                { title: 'Features', cell: ({ features }) => <Names of={features} none="none" /> },
                { title: 'Roles and groups', cell: ({ targets }) => <Targets of={targets} /> },
              ]}
              empty={
                <p>
                  The config names no product, and nobody has one in {environment}. Add <code>products</code>{' '}
                  to the config, with a name, features, roles and groups for each, then run{' '}
                  <code>latchkey reload</code>.
                </p>
              }
            />
          )}
        </Answer>
      </Section>
      <Section title="Features">
        <Answer query={products}>
          {(found) => (
            <Table
              caption="Features and the products that give them"
              rows={[...new Set(found.products.flatMap(({ features }) => features))].sort()}
              keyOf={(feature) => feature}
              columns={[
                { title: 'Feature', cell: (feature) => <Text>{feature}</Text> },
                {
                  title: 'Given by',
                  cell: (feature) => (
                    <Names
                      of={found.products
                        .filter(({ features }) => features.includes(feature))
                        .map(({ name, productId }) => name ?? productId)}
                      none=""
                    />
                  ),
                },
              ]}
              empty={
                <p>
                  No product gives a feature. Name some as <code>features</code> of a product in the config,
                  and your app can ask for them instead of for products.
                </p>
              }
            />
          )}
        </Answer>
      </Section>
      <Numbers productId={null} />
    </>
  )
}

function Names({ of, none }: { readonly of: readonly string[]; readonly none: string }) {
  if (of.length === 0) return <span class="faint">{none}</span>
  return (
    <>
      {of.map((name, index) => (
        <span key={name}>
          {index > 0 && ', '}
          <Text>{name}</Text>
        </span>
      ))}
    </>
  )
}

/** Leads to the memberships, where the key may see them. */
function Targets({ of }: { readonly of: readonly string[] }) {
  const { may } = useSession()
  if (of.length === 0) return <span class="faint">none</span>
  return (
    <>
      {of.map((target) => (
        <div key={target}>
          {may('admin') ? (
            <Go to="/sync/memberships" with={{ target }}>
              {target}
            </Go>
          ) : (
            <Text>{target}</Text>
          )}
        </div>
      ))}
    </>
  )
}

export function Product({ ids: { productId = '' } }: { readonly ids: Readonly<Record<string, string>> }) {
  const { environment } = useSession()
  const products = useProducts()
  const own = products.data?.products.find((one) => one.productId === productId)
  const members = usePages(
    (cursor, signal) => {
      const query = { environment, limit: 50, ...(cursor !== undefined && { cursor }) }
      const params = { path: { productId }, query }
      return answerOf(api.GET('/products/{productId}/customers', { params, signal }))
    },
    [environment, productId],
  )
  return (
    <>
      <div class="title">
        <h1>
          <Text>{own?.name ?? productId}</Text>
        </h1>
        <Go to="/changes" with={{ from: day(1), turn: 'lost', product: productId }}>
          Who lost it yesterday?
        </Go>
        <Go to="/products">All products</Go>
      </div>
      <Section title="What it gives">
        <Answer query={products}>
          {() => (
            <Facts
              of={[
                ['Id', <Id>{productId}</Id>],
                ['With access now', own?.active ?? 0],
                ['Features', <Names of={own?.features ?? []} none="none" />],
                ['Roles and groups', <Targets of={own?.targets ?? []} />],
                [
                  'Config',
                  own?.configured
                    ? 'named there'
                    : 'not named there: it gives access, and neither features nor roles',
                ],
              ]}
            />
          )}
        </Answer>
      </Section>
      <Numbers productId={productId} />
      <Section title="Who has access now">
        <PagedTable
          pages={members}
          caption="Customers with access"
          keyOf={({ customerId }) => customerId}
          columns={[
            {
              title: 'Customer',
              cell: ({ customerId }) => <CustomerLink id={customerId} />,
            },
            { title: 'Status', cell: ({ status }) => <Badge>{status}</Badge> },
            { title: 'Since', cell: ({ since }) => <Time at={since} never="" /> },
            { title: 'Until', cell: ({ until }) => <Time at={until} never="for good" /> },
            {
              title: 'By',
              cell: ({ sources, pastDue }) => (
                <>
                  {[...new Set(sources.filter(({ active }) => active).map(({ kind }) => kind))]
                    .map((kind) => (kind === 'manual' ? 'grant by hand' : kind))
                    .join(', ')}{' '}
                  {pastDue && <Badge tone="warn">past due</Badge>}
                </>
              ),
            },
          ]}
          empty={
            <p>
              Nobody has this product in {environment} now. Look at another environment, or at an earlier day
              above.
            </p>
          }
        />
      </Section>
    </>
  )
}
