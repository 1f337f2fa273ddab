/* Products: what each gives, who has it, and how that changes. */

import type { PageProps } from '../router.js'
import { useSession } from '../session.js'
import { day } from '../shared/days.js'
import { Go } from '../shared/links.js'
import { type AnswerOf, useGet, useList } from '../shared/list.js'
import { Listing, Title } from '../shared/page.js'
import { Answer, Badge } from '../shared/show.js'
import { Id, Text } from '../shared/text.js'
import { CustomerLink } from '../shared/things.js'
import { Time } from '../shared/time.js'
import { Numbers } from './numbers.js'

export function Products() {
  const { environment, productName } = useSession()
  return (
    <>
      <Title text="Products and features">
        <Go to="/changes" with={{ from: day(1), turn: 'lost' }} text="Who lost access yesterday?" />
        <Go to="/changes" with={{ from: day(), turn: 'gained' }} text="Who gained access today?" />
      </Title>
      <Answer query={useGet('/products')}>
        {({ products }) => (
          <div class="sections">
            <Listing
              title="Products"
              rows={products}
              columns={[
                { title: 'Product', cell: (one) => <Name of={one} /> },
                { title: 'Id', cell: ({ productId }) => <Id>{productId}</Id> },
                { title: 'With access', isNumber: true, cell: ({ active }) => active },
                { title: 'Features', cell: ({ features }) => <Names of={features} /> },
                { title: 'Roles and groups', cell: ({ targets }) => <Targets of={targets} /> },
              ]}
              empty={`The config names no product, and nobody has one in ${environment}. Add \`products\` to the config, with a name, features, roles and groups for each, then run \`latchkey reload\`.`}
            />
            <Listing
              title="Features"
              rows={[...new Set(products.flatMap(({ features }) => features))].sort()}
              columns={[
                { title: 'Feature', cell: (feature) => <Text>{feature}</Text> },
                {
                  title: 'Given by',
                  cell: (feature) => {
                    const giving = products.filter(({ features }) => features.includes(feature))
                    return <Names of={giving.map(({ productId }) => productName(productId))} />
                  },
                },
              ]}
              empty="No product gives a feature. Name some as `features` of a product in the config, and your app can ask for them instead of for products."
            />
          </div>
        )}
      </Answer>
      <Numbers productId={null} />
    </>
  )
}

type Listed = AnswerOf<'/products'>['products'][number]

function Name({ of: { productId, name, configured } }: { readonly of: Listed }) {
  return (
    <>
      <Go to={`/products/${encodeURIComponent(productId)}`} text={name ?? productId} />
      {!configured && <Badge tone="warn">not in the config</Badge>}
    </>
  )
}

const Names = ({ of }: { readonly of: readonly string[] }) =>
  of.length === 0 ? <span class="faint">none</span> : <Text>{of.join(', ')}</Text>

/** Leads to the memberships, where the key may see them. */
function Targets({ of }: { readonly of: readonly string[] }) {
  const { may } = useSession()
  if (of.length === 0 || !may('admin')) return <Names of={of} />
  return of.map((target) => (
    <div key={target}>
      <Go to="/sync/memberships" with={{ target }} text={target} />
    </div>
  ))
}

export function Product({ ids: { productId = '' } }: PageProps) {
  const { environment, productName } = useSession()
  return (
    <>
      <Title text={productName(productId)}>
        <Go
          to="/changes"
          with={{ from: day(1), turn: 'lost', product: productId }}
          text="Who lost it yesterday?"
        />
        <Go to="/products" text="All products" />
      </Title>
      <Numbers productId={productId} />
      <Listing
        title="Who has access now"
        caption="Customers with access"
        pages={useList('/products/{productId}/customers', {}, { ids: { productId } })}
        columns={[
          { title: 'Customer', cell: ({ customerId }) => <CustomerLink id={customerId} /> },
          { title: 'Status', cell: ({ status }) => <Badge>{status}</Badge> },
          { title: 'Since', cell: ({ since }) => <Time at={since} never="" /> },
          { title: 'Until', cell: ({ until }) => <Time at={until} never="for good" /> },
          { title: 'Payment', cell: ({ pastDue }) => pastDue && <Badge tone="warn">past due</Badge> },
        ]}
        empty={`Nobody has this product in ${environment} now. Look at another environment, or at an earlier day above.`}
      />
    </>
  )
}
