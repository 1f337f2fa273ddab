/* Access of a customer to one product, now and at another time, and why. */

import { useEffect, useState } from 'preact/hooks'
import { get, Problem, type Schemas } from '../../api.js'
import { setParameters, usePlace } from '../../router.js'
import { useSession } from '../../session.js'
import { EventLink } from '../../shared/links.js'
import { counted } from '../../shared/plain.js'
import { Answer, Badge, Button, Notes, type Of } from '../../shared/show.js'
import { named, Table } from '../../shared/table.js'
import { Time } from '../../shared/text.js'
import { useQuery, useSettled } from '../../shared/use-query.js'
import { ByHand } from './acts.js'
import { eventsOf, type Span, Timeline } from './timeline.js'

type Explanation = Schemas['Explanation']

export const EXPLANATION = '/entitlements/{customerId}/{productId}/explanation'

/** The instant that the markers show, in the address once it rests; null: now. */
export function useMarker() {
  const named = Date.parse(usePlace().parameters.get('at') ?? '')
  const [at, moveTo] = useState(Number.isNaN(named) ? null : named)
  const resting = useSettled(at)
  const shown = resting === null ? null : new Date(resting).toISOString()
  useEffect(() => setParameters({ at: shown }, true), [shown])
  return { at, moveTo, resting }
}

export type Marker = ReturnType<typeof useMarker>

type ProductActsProps = Of<Explanation | Problem> & Pick<Explanation, 'customerId' | 'productId'>

export function ProductActs({ of, ...ids }: ProductActsProps) {
  const about = { ...ids, known: null }
  if (!useSession().may('write')) return null
  const { blocks = [], entitlement } = of instanceof Problem ? {} : of
  const isBlocked = blocks.some((one) => one.productId === ids.productId && one.until === null)
  const isGranted = entitlement?.sources.some(({ kind, active }) => kind === 'manual' && active)
  return (
    <>
      <ByHand kind="grant" {...about} />
      {isGranted && <ByHand kind="revoke" {...about} />}
      <ByHand kind={isBlocked ? 'unblock' : 'block'} {...about} />
    </>
  )
}

type ProductAccessProps = Of<Explanation> & { readonly marker: Marker; readonly span: Span }

export function ProductAccess({ of: explanation, span, marker }: ProductAccessProps) {
  const { at, moveTo, resting } = marker
  const { customerId, productId, environment, blocks, erasures, ends } = explanation
  const then = useQuery(
    async (signal) => {
      if (resting === null) return explanation
      const asked = { customerId, productId, environment, at: new Date(resting).toISOString() }
      return get(EXPLANATION, asked, signal)
    },
    [resting, explanation.asOf],
  )
  const events = eventsOf(explanation)
  return (
    <>
      <div class="as-of min-h-12 pt-1">
        <p>
          {at === null ? 'Now' : ['As of ', <Time key={at} at={new Date(at).toISOString()} />]}:{' '}
          {then.data !== undefined && <Badge text={then.data.entitlement.status} />}{' '}
          {at !== null && <Button text="Back to now" look="small" onClick={() => moveTo(null)} />}
        </p>
        <Answer query={then}>{({ summary }) => summary}</Answer>
      </div>
      <Timeline of={explanation} span={span} at={at} onMove={moveTo} />
      <Notes of={[...blocks, ...erasures, ...ends].map(({ sentence }) => sentence)} />
      <details>
        <summary>{counted(events.length, 'event')}</summary>
        <Table
          caption={`Events of ${productId}`}
          rows={events}
          columns={{
            ...named({ createdAt: 'Time' }),
            Event: (one) => <EventLink id={one.id} text={one.type} />,
            ...named({ sentence: 'What it did', disposition: 'Disposition' }),
          }}
          empty="No event is about this customer and this product."
        />
      </details>
    </>
  )
}
