/* One customer: what they may use and why, who they are, and what one can do for them. */

import { useEffect, useState } from 'preact/hooks'
import { answerOf, api, type Environment, type Problem, type Schemas } from '../api.js'
import { now } from '../now.js'
import { setParameters, usePlace } from '../router.js'
import { type Session, useSession } from '../session.js'
import { useChanges } from '../shared/live.js'
import { Answer, Badge, Empty, Facts, PagedTable, Section, Table } from '../shared/show.js'
import { Id, Text } from '../shared/text.js'
import { EventLink, SourceLink, StatusChange } from '../shared/things.js'
import { Time } from '../shared/time.js'
import { usePages, useQuery, useSettled } from '../shared/use-query.js'
import { ActDialog, type ActKind, type AskedAct, DETAILS } from './customer/acts.js'
import { type Span, spanOf, Timeline } from './customer/timeline.js'

/** All that the page shows at first. */
interface Whole {
  /** Null: nothing is stored about them. */
  readonly known: Schemas['Customer'] | null
  readonly access: Schemas['CustomerAccess']
  readonly explanations: readonly Schemas['Explanation'][]
  readonly span: Span
}

/** Of a customer without any access, so many products of the config are explained. */
const EXPLAINED_AT_FIRST = 3

async function readWhole(
  { environment, products }: Session,
  customerId: string,
  named: string | null,
  signal: AbortSignal,
): Promise<Whole> {
  const asked = { params: { path: { customerId }, query: { environment } }, signal }
  const [known, access] = await Promise.all([
    answerOf(api.GET('/customers/{customerId}', asked)).catch((error: Problem) => {
      if (error.code === 'customer_not_found') return null
      throw error
    }),
    answerOf(api.GET('/entitlements/{customerId}', asked)),
  ])
  const ids = new Set([
    ...access.entitlements.map(({ productId }) => productId),
    ...(known?.sources ?? []).flatMap(({ productId }) => productId ?? []),
    ...(named === null ? [] : [named]),
  ])
  const shown = ids.size > 0 ? [...ids] : products.slice(0, EXPLAINED_AT_FIRST).map(({ id }) => id)
  const explanations = await Promise.all(
    shown.map((productId) => explain(environment, customerId, productId, null, signal)),
  )
  return { known, access, explanations, span: spanOf(explanations, now()) }
}

function explain(
  environment: Environment,
  customerId: string,
  productId: string,
  at: string | null,
  signal: AbortSignal,
): Promise<Schemas['Explanation']> {
  const path = { customerId, productId }
  const query = { environment, ...(at !== null && { at }) }
  const route = '/entitlements/{customerId}/{productId}/explanation'
  return answerOf(api.GET(route, { params: { path, query }, signal }))
}

/** The instant that the marker shows, in the address once it rests; null: now. */
function useMarker(): readonly [at: number | null, move: (at: number | null) => void] {
  const named = Date.parse(usePlace().parameters.get('at') ?? '')
  const [at, move] = useState(Number.isNaN(named) ? null : named)
  const resting = useSettled(at, 200)
  useEffect(() => {
    setParameters({ at: resting === null ? null : new Date(resting).toISOString() }, true)
  }, [resting])
  return [at, move]
}

export function Customer({ ids: { customerId = '' } }: { readonly ids: Readonly<Record<string, string>> }) {
  const session = useSession()
  const { environment, may, products, productName, targets } = session
  const named = usePlace().parameters.get('product')
  const [at, moveTo] = useMarker()
  const [asked, ask] = useState<AskedAct | null>(null)
  const whole = useQuery(
    (signal) => readWhole(session, customerId, named, signal),
    [environment, customerId, named],
  )
  useChanges(environment, (changes) => {
    if (changes.some((change) => change.customerId === customerId)) whole.reload()
  })
  const button = (kind: ActKind, label: string, productId: string | null = null) => (
    <button type="button" class={kind === 'erase' ? 'danger' : ''} onClick={() => ask({ kind, productId })}>
      {label}
    </button>
  )
  const hasTelegram = targets.some((target) => target.startsWith('telegram:'))
  const isBlocked = whole.data?.known?.blocks.some((one) => one.productId === null && one.until === null)
  return (
    <>
      <div class="title">
        <h1>
          <Id>{customerId}</Id>
        </h1>
        {isBlocked && <Badge>blocked</Badge>}
        {(whole.data?.known?.erasedAt ?? null) !== null && <Badge tone="bad">erased</Badge>}
        {(whole.data?.known?.deletedAt ?? null) !== null && <Badge tone="warn">deleted</Badge>}
      </div>
      {(may('write') || may('admin')) && (
        // biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields.
        <div class="acts" role="group" aria-label="Acts">
          {may('write') && (
            <>
              {button('grant', 'Grant…')}
              {isBlocked ? button('unblock', 'Unblock…') : button('block', 'Block…')}
              {button('link', 'Link accounts…')}
              {hasTelegram && button('invites', 'Invites…')}
              {hasTelegram && button('bot link', 'Link to the bot…')}
            </>
          )}
          {may('admin') && button('erase', 'Erase…')}
        </div>
      )}
      <Answer query={whole}>
        {({ known, access, explanations, span }) => (
          <div class="sections">
            {known === null && (
              <p class="notice">
                Nothing is stored about <Text>{customerId}</Text> in {environment}. Check the id
                {session.environments.length > 1 && ', and the environment above'}.
              </p>
            )}
            {explanations.map((explanation) => {
              const { productId, entitlement } = explanation
              const isGranted = entitlement.sources.some(({ kind, active }) => kind === 'manual' && active)
              const isBlockedFrom = explanation.blocks.some(
                (block) => block.productId === productId && block.until === null,
              )
              return (
                <Section
                  key={productId}
                  title={productName(productId)}
                  aside={
                    may('write') && (
                      <div class="acts">
                        {button('grant', 'Grant…', productId)}
                        {isGranted && button('revoke', 'Revoke…', productId)}
                        {isBlockedFrom
                          ? button('unblock', 'Unblock…', productId)
                          : button('block', 'Block…', productId)}
                      </div>
                    )
                  }
                >
                  <ProductAccess explanation={explanation} span={span} at={at} moveTo={moveTo} />
                </Section>
              )
            })}
            <OtherProduct
              ids={products
                .map(({ id }) => id)
                .filter((id) => !explanations.some((one) => one.productId === id))}
            />
            <Memberships explanations={explanations} reload={whole.reload} />
            <Features features={access.features} />
            {known !== null && <Person known={known} />}
            {known !== null && <Sources known={known} />}
          </div>
        )}
      </Answer>
      {may('admin') && <Messages customerId={customerId} />}
      <Changes customerId={customerId} upTo={whole.data?.access.cursor} />
      {asked !== null && (
        <ActDialog
          asked={asked}
          customerId={customerId}
          known={whole.data?.known ?? null}
          onClose={() => ask(null)}
          onDone={whole.reload}
        />
      )}
    </>
  )
}

interface ProductAccessProps {
  readonly explanation: Schemas['Explanation']
  readonly span: Span
  readonly at: number | null
  readonly moveTo: (at: number | null) => void
}

function ProductAccess({ explanation, span, at, moveTo }: ProductAccessProps) {
  const { environment, productName } = useSession()
  const { customerId, productId, sources, blocks, erasures, ends } = explanation
  const asked = useSettled(at, 200)
  const then = useQuery(
    async (signal) => {
      if (asked === null) return explanation
      return explain(environment, customerId, productId, new Date(asked).toISOString(), signal)
    },
    [asked, explanation.asOf],
  )
  const events = sources.flatMap((source) => source.events)
  const placed = new Set(events.map(({ id }) => id))
  const all = [
    ...events.map((one) => ({ ...one, disposition: one.note.code === 'held' ? 'held' : one.disposition })),
    ...explanation.held.filter(({ id }) => !placed.has(id)).map((one) => ({ ...one, disposition: 'held' })),
  ].sort((a, b) => Date.parse(a.createdAt) - Date.parse(b.createdAt))
  return (
    <>
      <div class="as-of">
        <p>
          {at === null ? 'Now' : 'As of '}
          {at !== null && <Time at={new Date(at).toISOString()} />}:{' '}
          {then.data !== undefined && <Badge>{then.data.entitlement.status}</Badge>}{' '}
          {at !== null && (
            <button type="button" class="small" onClick={() => moveTo(null)}>
              Back to now
            </button>
          )}
        </p>
        <Answer query={then}>{({ summary }) => <Text>{summary}</Text>}</Answer>
      </div>
      <Timeline
        explanation={explanation}
        productName={productName(productId)}
        span={span}
        at={at}
        onMove={moveTo}
      />
      <ul class="effects">
        {[...blocks, ...erasures, ...ends].map(({ sentence }) => (
          <li key={sentence}>
            <Text>{sentence}</Text>
          </li>
        ))}
      </ul>
      <details>
        <summary>
          {all.length} {all.length === 1 ? 'event' : 'events'}
        </summary>
        <Table
          caption={`Events of ${productName(productId)}`}
          rows={all}
          keyOf={({ id }) => id}
          columns={[
            { title: 'Time', cell: ({ createdAt }) => <Time at={createdAt} /> },
            { title: 'Event', cell: ({ id, type }) => <EventLink id={id}>{type}</EventLink> },
            { title: 'What it did', cell: ({ sentence }) => <Sentence>{sentence}</Sentence> },
            { title: 'Disposition', cell: ({ disposition }) => <Badge>{disposition}</Badge> },
          ]}
          empty={<p>No event is about this customer and this product.</p>}
        />
      </details>
    </>
  )
}

function Sentence({ children }: { readonly children: string }) {
  return (
    <span class="sentence">
      <Text>{children}</Text>
    </span>
  )
}

/** Explains a product that the customer never had anything to do with. */
function OtherProduct({ ids }: { readonly ids: readonly string[] }) {
  const { productName } = useSession()
  if (ids.length === 0) return null
  return (
    <label class="acts">
      Explain another product{' '}
      <select value="" onChange={({ currentTarget: { value } }) => setParameters({ product: value })}>
        <option value="">choose…</option>
        {ids.map((id) => (
          <option key={id} value={id}>
            {productName(id)}
          </option>
        ))}
      </select>
    </label>
  )
}

function Memberships({
  explanations,
  reload,
}: Pick<Whole, 'explanations'> & { readonly reload: () => void }) {
  const all = new Map(explanations.flatMap(({ memberships }) => memberships.map((one) => [one.target, one])))
  const again = (
    <button type="button" onClick={reload}>
      Read again
    </button>
  )
  return (
    <Section title="Roles and groups" aside={again}>
      <Table
        caption="Roles and groups"
        rows={[...all.values()]}
        keyOf={({ target }) => target}
        columns={[
          { title: 'State', cell: ({ state }) => <Badge>{state}</Badge> },
          { title: 'Why, and what follows', cell: ({ sentence }) => <Sentence>{sentence}</Sentence> },
          { title: 'Role or group', cell: ({ target }) => <Text>{target}</Text> },
          { title: 'Since', cell: ({ desiredSince }) => <Time at={desiredSince} never="unknown" /> },
          {
            title: 'Last call',
            cell: ({ applied, appliedAt, lastError }) => (
              <>
                {applied} {appliedAt !== null && <Time at={appliedAt} relative />}
                {lastError !== null && (
                  <p class="bad">
                    {lastError.code}: <Text>{lastError.message}</Text>
                  </p>
                )}
              </>
            ),
          },
          {
            title: 'Next call',
            cell: ({ next: { at, action } }) => action && <Time at={at} relative never="due" />,
          },
        ]}
        empty={<p>No product shown here is mapped to a role or a group.</p>}
      />
    </Section>
  )
}

function Features({ features }: { readonly features: Whole['access']['features'] }) {
  const { productName } = useSession()
  return (
    <Section title="Features">
      <Table
        caption="Features"
        rows={features}
        keyOf={({ id }) => id}
        columns={[
          { title: 'Feature', cell: ({ id }) => <Text>{id}</Text> },
          { title: 'State', cell: ({ active }) => <Badge>{active ? 'active' : 'none'}</Badge> },
          { title: 'Until', cell: ({ until }) => <Time at={until} never="no known end" /> },
          { title: 'By', cell: ({ productIds }) => <Text>{productIds.map(productName).join(', ')}</Text> },
        ]}
        empty={<p>None of their products gives a feature.</p>}
      />
    </Section>
  )
}

function Person({ known }: { readonly known: Schemas['Customer'] }) {
  const { identities, references, deletedAt, erasedAt } = known
  const facts = [
    ...Object.entries(identities).flatMap(([name, fact]) =>
      fact === null ? [] : [[DETAILS[name] ?? name, <Text>{fact.value}</Text>] as const],
    ),
    // Of a name that several values came under, all of them.
    ...[...Map.groupBy(references.all, ({ name }) => name)].map(
      ([name, all]) => [name, <Text>{all.map(({ value }) => value).join(', ')}</Text>] as const,
    ),
    ...(erasedAt === null ? [] : [['Erased', <Time at={erasedAt} />] as const]),
    ...(deletedAt === null ? [] : [['Deleted at the service', <Time at={deletedAt} />] as const]),
  ]
  return (
    <Section title="Identities and references">
      {facts.length > 0 ? (
        <Facts of={facts} />
      ) : (
        <Empty>No event says who this is, and no account is linked.</Empty>
      )}
    </Section>
  )
}

function Sources({ known: { sources } }: { readonly known: Schemas['Customer'] }) {
  const { productName } = useSession()
  return (
    <Section title="Sources">
      <Table
        caption="Sources"
        rows={sources}
        keyOf={({ kind, id, productId }) => `${kind} ${id} ${productId}`}
        columns={[
          { title: 'Source', cell: (source) => <SourceLink source={source} /> },
          { title: 'Product', cell: ({ productId }) => productId && <Text>{productName(productId)}</Text> },
          {
            title: 'State',
            cell: ({ active, pastDue, reason }) => (
              <>
                <Badge>{active ? 'active' : (reason ?? 'none')}</Badge>
                {pastDue && <Badge tone="warn">past due</Badge>}
              </>
            ),
          },
          { title: 'Since', cell: ({ since }) => <Time at={since} never="not now" /> },
          { title: 'Until', cell: ({ until }) => <Time at={until} never="no known end" /> },
          { title: 'Paid until', cell: ({ periodEnd }) => <Time at={periodEnd} never="unknown" /> },
          { title: 'Paid by', cell: ({ rail }) => rail },
          { title: 'At the service', cell: ({ providerStatus }) => <Text>{providerStatus ?? ''}</Text> },
        ]}
        empty={<p>Nothing was paid or granted.</p>}
      />
    </Section>
  )
}

function Messages({ customerId }: { readonly customerId: string }) {
  const { environment, productName } = useSession()
  const messages = usePages(
    (cursor, signal) => {
      const query = { environment, customerId, ...(cursor !== undefined && { cursor }) }
      return answerOf(api.GET('/sync/messages', { params: { query }, signal }))
    },
    [environment, customerId],
  )
  return (
    <Section title="Webhooks about them">
      <PagedTable
        pages={messages}
        caption="Webhooks"
        keyOf={({ id, webhook }) => `${id} ${webhook}`}
        columns={[
          { title: 'Queued', cell: ({ queuedAt }) => <Time at={queuedAt} /> },
          { title: 'Message', cell: ({ type }) => type },
          { title: 'Product', cell: ({ productId }) => <Text>{productName(productId)}</Text> },
          { title: 'To', cell: ({ webhook }) => <Text>{webhook}</Text> },
          { title: 'State', cell: ({ status }) => <Badge>{status}</Badge> },
          { title: 'Attempts', cell: ({ attempts }) => attempts.length, isNumber: true },
          {
            title: 'Last answer',
            cell: ({ attempts }) => {
              const last = attempts.at(-1)
              return <Text>{String(last?.error ?? last?.status ?? 'none yet')}</Text>
            },
          },
        ]}
        empty={<p>No message about this customer was sent. Outbound webhooks are set up in the config.</p>}
      />
    </Section>
  )
}

const CAUSES = { clock: 'its time had come', rebuild: 'worked out again' } as const

interface ChangesProps {
  readonly customerId: string
  /** The end of the change log: asked for again when it goes on. */
  readonly upTo: string | undefined
}

function Changes({ customerId, upTo = '' }: ChangesProps) {
  const { environment, productName } = useSession()
  const changes = usePages(
    (cursor, signal) => {
      const query = { environment, customerId, limit: 100, ...(cursor !== undefined && { cursor }) }
      return answerOf(api.GET('/changes', { params: { query }, signal }))
    },
    [environment, customerId, upTo],
  )
  return (
    <Section title="Changes of access">
      <PagedTable
        pages={changes}
        caption="Changes of access, oldest first"
        keyOf={({ cursor }) => cursor}
        columns={[
          { title: 'Written', cell: ({ at }) => <Time at={at} /> },
          { title: 'Product', cell: ({ productId }) => <Text>{productName(productId)}</Text> },
          { title: 'Change', cell: (change) => <StatusChange {...change} /> },
          { title: 'Until', cell: ({ after: { until } }) => <Time at={until} never="no known end" /> },
          {
            title: 'Cause',
            cell: ({ cause: { kind, eventId } }) =>
              kind === 'event' ? <EventLink id={eventId ?? 'unknown'} /> : CAUSES[kind],
          },
        ]}
        empty={<p>Access never changed.</p>}
      />
    </Section>
  )
}
