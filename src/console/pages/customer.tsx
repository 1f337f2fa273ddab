/* One customer: what they may use and why, who they are, and what one can do for them. */

import { get, Problem, problemOf, refresh, revision, type Schemas } from '../api.js'
import { now } from '../now.js'
import { type PageProps, setParameters, usePlace } from '../router.js'
import { type Session, useSession } from '../session.js'
import { DETAILS } from '../shared/access.js'
import { Control } from '../shared/fields.js'
import { ProductLink, SourceLink } from '../shared/links.js'
import { useChanges } from '../shared/live.js'
import { Answer, Badge, Facts, type Of, ProblemBox, Says, Section, Title } from '../shared/show.js'
import { type Columns, Listing, named } from '../shared/table.js'
import { Id, Time } from '../shared/text.js'
import { useList, useQuery } from '../shared/use-query.js'
import { CHANGE_COLUMNS } from './changes.js'
import { ByHand, Erase, TelegramLinks } from './customer/acts.js'
import { EXPLANATION, type Marker, ProductAccess, ProductActs, useMarker } from './customer/product.js'
import { spanOf } from './customer/timeline.js'
import { MessageList } from './messages.js'

type Explanation = Schemas['Explanation']
type Customer = Schemas['Customer']

/** Of a customer without any access, so many products of the config are explained. */
const EXPLAINED_AT_FIRST = 3

/** All that the page shows at first. @param named a product that was asked for */
async function readWhole(session: Session, customerId: string, named: string | null, signal: AbortSignal) {
  const given = { customerId, environment: session.environment }
  const [known, access] = await Promise.all([
    get('/customers/{customerId}', given, signal).catch((error: Problem) => {
      if (error.code !== 'customer_not_found') throw error
      return null
    }),
    get('/entitlements/{customerId}', given, signal),
  ])
  const ids = new Set([
    ...access.entitlements.map(({ productId }) => productId),
    ...(known?.sources ?? []).flatMap(({ productId }) => productId ?? []),
    ...(named === null ? [] : [named]),
  ])
  const shown = ids.size > 0 ? [...ids] : session.products.slice(0, EXPLAINED_AT_FIRST).map(({ id }) => id)
  // One that can't be explained takes nothing else away.
  const explained = shown.map(async (productId) => {
    const explanation = await get(EXPLANATION, { ...given, productId }, signal).catch(problemOf)
    return { productId, explanation }
  })
  return { known, access, explained: await Promise.all(explained), readAt: now() }
}

type Whole = Awaited<ReturnType<typeof readWhole>>

export function Page({ ids: { customerId = '' } }: PageProps) {
  const session = useSession()
  const { environment, may, targets } = session
  const named = usePlace().parameters.get('product')
  const marker = useMarker()
  const of = [environment, customerId, named]
  const whole = useQuery((signal) => readWhole(session, customerId, named, signal), of, revision.value)
  useChanges(environment, (ids) => ids.includes(customerId) && refresh())
  const isRead = whole.data !== undefined
  const known = whole.data?.known ?? null
  const { name, email } = known?.identities ?? {}
  const isBlocked = known?.blocks.some((one) => one.productId === null && one.until === null)
  const about = { customerId, known }
  return (
    <>
      <Title title={<Id>{customerId}</Id>}>
        <Says text={name?.value ?? email?.value ?? ''} look="faint" />
        {isBlocked && <Badge text="blocked" />}
        {known?.erasedAt && <Badge text="erased" tone="bad" />}
        {known?.deletedAt && <Badge text="deleted" tone="warn" />}
      </Title>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields. */}
      <div class="acts" role="group" aria-label="Acts">
        {isRead && may('write') && (
          <>
            <ByHand kind="grant" {...about} />
            <ByHand kind={isBlocked ? 'unblock' : 'block'} {...about} />
            <ByHand kind="link" {...about} />
            {targets.some((one) => one.startsWith('telegram:')) && <TelegramLinks customerId={customerId} />}
          </>
        )}
        {isRead && may('admin') && <Erase {...about} />}
      </div>
      <Answer query={whole}>{(data) => <Shown of={data} id={customerId} marker={marker} />}</Answer>
      {may('admin') && <MessageList title="Webhooks about them" given={{ customerId }} />}
      <Listing
        title="Changes of access"
        caption="Changes of access, oldest first"
        list={useList('/changes', { customerId })}
        columns={CHANGE_COLUMNS}
        empty="Access never changed."
      />
    </>
  )
}

function Shown({ of, id, marker }: Of<Whole> & { readonly id: string; readonly marker: Marker }) {
  const { known, access, explained, readAt } = of
  const { environment, products, productName } = useSession()
  const explanations = explained.flatMap(({ explanation: one }) => (one instanceof Problem ? [] : [one]))
  const all = explanations.flatMap(({ memberships }) => memberships)
  const memberships = new Map(all.map((one) => [one.target, one]))
  const others = products.filter((one) => explained.every(({ productId }) => productId !== one.id))
  const options = others.map((one) => [one.id, productName(one.id)] as const)
  const nothing = `Nothing is stored about ${id} in ${environment}. Check the id, and the environment above.`
  const span = spanOf(explanations, readAt)
  return (
    <>
      {known === null && <Says text={nothing} look="notice" />}
      {explained.map(({ productId, explanation: one }) => (
        <Section
          key={productId}
          title={productName(productId)}
          aside={<ProductActs customerId={id} productId={productId} of={one} />}
        >
          {one instanceof Problem && <ProblemBox problem={one} />}
          {!(one instanceof Problem) && <ProductAccess of={one} span={span} marker={marker} />}
        </Section>
      ))}
      {options.length > 0 && (
        <Control
          field={{ name: 'product', label: 'Explain another product', options, none: 'choose…' }}
          value=""
          onChange={(product) => setParameters({ product })}
        />
      )}
      <Listing
        title="Roles and groups"
        rows={[...memberships.values()]}
        columns={MEMBERSHIPS}
        empty="No product shown here is mapped to a role or a group."
      />
      <Listing
        title="Features"
        rows={access.features}
        columns={{
          Feature: (one) => one.id,
          State: ({ active }) => <Badge text={active ? 'active' : 'none'} />,
          Until: ({ active, until: at }) =>
            active ? <Time at={at} never="no known end" /> : at && `ended ${at}`,
          By: ({ productIds }) => productIds.map(productName).join(', '),
        }}
        empty="None of their products gives a feature."
      />
      {known !== null && <Person of={known} />}
    </>
  )
}

const MEMBERSHIPS: Columns<Explanation['memberships'][number]> = {
  ...named({ state: 'State', sentence: 'Why, and what follows', target: 'Role or group' }),
  Since: ({ desiredSince }) => <Time at={desiredSince} never="unknown" />,
  'Last call': ({ applied, appliedAt: at }) => at && [`${applied} `, <Time key={1} at={at} relative />],
  'Last error': ({ lastError: last }) => last && <Says text={`${last.code}: ${last.message}`} look="bad" />,
  'Next call': ({ next: { at, action } }) => action && <Time at={at} relative never="due" />,
}

const SOURCES: Columns<Customer['sources'][number]> = {
  Source: (source) => <SourceLink source={source} />,
  Product: ({ productId }) => productId && <ProductLink id={productId} />,
  State: ({ active, reason }) => <Badge text={active ? 'active' : (reason ?? 'none')} />,
  Payment: ({ pastDue }) => pastDue && <Badge text="past due" tone="warn" />,
  Since: ({ since }) => <Time at={since} never="not now" />,
  Until: ({ until }) => <Time at={until} never="no known end" />,
  'Paid until': ({ periodEnd }) => <Time at={periodEnd} never="not known" />,
  ...named({ rail: 'Paid by', providerStatus: 'At the service' }),
}

function Person({ of: { identities, references, deletedAt, erasedAt, sources } }: Of<Customer>) {
  // Of a name that several values came under, all of them.
  const named = [...Map.groupBy(references.all, ({ name }) => name)]
  const facts = [
    ...Object.entries(identities).map(([name, fact]) => [DETAILS[name] ?? name, fact?.value] as const),
    ...named.map(([name, all]) => [name, all.map(({ value }) => value).join(', ')] as const),
    ['Erased', erasedAt && <Time at={erasedAt} />] as const,
    ['Deleted at the service', deletedAt && <Time at={deletedAt} />] as const,
  ]
  return (
    <>
      <Section title="Identities and references">
        <Facts of={facts} />
        {facts.every(([, fact]) => !fact) && 'No event says who this is, and no account is linked.'}
      </Section>
      <Listing title="Sources" rows={sources} columns={SOURCES} empty="Nothing was paid or granted." />
    </>
  )
}
