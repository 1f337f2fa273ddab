/* Products: what each gives, who has it, and how that changes. */

import type { PageProps } from '../router.js'
import { useSession } from '../session.js'
import { Go, ProductLink } from '../shared/links.js'
import { Answer, Badge, Title } from '../shared/show.js'
import { Listing, named } from '../shared/table.js'
import { day, Id, Time } from '../shared/text.js'
import { useGet, useList } from '../shared/use-query.js'
import { Numbers } from './numbers.js'

export const Page = ({ ids }: PageProps) => (ids.productId ? <Product id={ids.productId} /> : <Products />)

function Products() {
  const { environment, productName } = useSession()
  return (
    <>
      <Title title="Products and features">
        <Go to="/changes" with={{ from: day(1), turn: 'lost' }} text="Who lost access yesterday?" />
        <Go to="/changes" with={{ from: day(), turn: 'gained' }} text="Who gained access today?" />
      </Title>
      <Answer query={useGet('/products')}>
        {({ products }) => (
          <>
            <Listing
              title="Products"
              rows={products}
              columns={{
                Product: ({ productId, configured }) => [
                  <ProductLink key={1} id={productId} />,
                  !configured && <Badge text="not in the config" tone="warn" />,
                ],
                Id: ({ productId }) => <Id>{productId}</Id>,
                ...named({ active: 'With access' }),
                Features: ({ features }) => features.join(', '),
                'Roles and groups': ({ targets }) =>
                  targets.map((target) => (
                    <Go key={target} to="/sync/memberships" with={{ target }} text={target} needs="admin" />
                  )),
              }}
              empty={`The config names no product, and nobody has one in ${environment}. Add \`products\` to the config, with a name, features, roles and groups for each, then run \`latchkey reload\`.`}
            />
            <Listing
              title="Features"
              rows={[...new Set(products.flatMap(({ features }) => features))].sort()}
              columns={{
                Feature: (feature) => feature,
                'Given by': (feature) => {
                  const giving = products.filter(({ features }) => features.includes(feature))
                  return giving.map(({ productId }) => productName(productId)).join(', ')
                },
              }}
              empty="No product gives a feature. Name some as `features` of a product in the config, and your app can ask for them instead of for products."
            />
          </>
        )}
      </Answer>
      <Numbers productId={null} />
    </>
  )
}

function Product({ id: productId }: { readonly id: string }) {
  const { environment, productName } = useSession()
  const yesterday = { from: day(1), turn: 'lost', product: productId }
  return (
    <>
      <Title title={productName(productId)}>
        <Go to="/changes" with={yesterday} text="Who lost it yesterday?" />
        <Go to="/products" text="All products" />
      </Title>
      <Numbers productId={productId} />
      <Listing
        title="Who has access now"
        caption="Customers with access"
        list={useList('/products/{productId}/customers', { productId })}
        columns={{
          ...named({ customerId: 'Customer', status: 'Status', since: 'Since' }),
          Until: ({ until }) => <Time at={until} never="for good" />,
          Payment: ({ pastDue }) => pastDue && <Badge text="past due" tone="warn" />,
        }}
        empty={`Nobody has this product in ${environment} now. Look at another environment, or at an earlier day above.`}
      />
    </>
  )
}
