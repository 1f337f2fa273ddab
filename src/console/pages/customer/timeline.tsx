/* Access to one product over time: intervals as bars, events as marks, and a marker for the instant asked about. */

import { useRef, useState } from 'preact/hooks'
import type { Schemas } from '../../api.js'
import { visible } from '../../shared/plain.js'
import { useZone } from '../../shared/preferences.js'
import { timeText } from '../../shared/time.js'

type Explanation = Schemas['Explanation']

/** What the timelines of a page show, in epoch milliseconds. */
export interface Span {
  readonly from: number
  readonly to: number
  readonly now: number
  /** Of the marker. */
  readonly step: number
}

const HOUR = 3_600_000
const DAY = 24 * HOUR
/** Of the future at least, so that a grant of three weeks is seen to end. */
const AHEAD = 60 * DAY

/** One span for all products, so that they can be compared. An end in the far future is cut off. */
export function spanOf(explanations: readonly Explanation[], now: number): Span {
  const times = explanations
    .flatMap(({ sources, held, blocks, erasures, ends }) => [
      ...sources.flatMap(({ intervals, events }) => [
        ...events.map(({ createdAt }) => createdAt),
        ...intervals.flatMap(({ from, until }) => [from, until]),
      ]),
      ...held.map(({ createdAt }) => createdAt),
      ...blocks.flatMap(({ from, until }) => [from, until]),
      ...[...erasures, ...ends].map(({ at }) => at),
    ])
    .flatMap((time) => (time === null ? [] : [Date.parse(time)]))
  const first = Math.min(now - DAY, ...times)
  const last = Math.min(Math.max(now + DAY, ...times), now + Math.max(now - first, AHEAD))
  const margin = (last - first) * 0.03
  const step = last - first > AHEAD ? DAY : HOUR
  // Now is a whole number of steps from the beginning, so that the marker can stand there.
  return { from: now - Math.ceil((now - first + margin) / step) * step, to: last + margin, now, step }
}

/** What is told of an event when it is pointed at. */
interface Mark {
  readonly id: string
  readonly at: number
  readonly sentence: string
  readonly kind: 'begins' | 'ends' | 'waits' | 'other'
}

interface Lane {
  readonly name: string
  readonly bars: readonly { readonly from: string; readonly until: string | null }[]
  readonly isBlock?: true
  readonly marks: readonly Mark[]
}

const SIGNS = { begins: '▲', ends: '▼', waits: '○', other: '●' } as const

function kindOf(changes: readonly { readonly code: string }[], code: string): Mark['kind'] {
  if (code === 'held') return 'waits'
  if (changes.some((one) => one.code === 'access_ended')) return 'ends'
  return changes.some((one) => one.code === 'access_given' || one.code === 'access_moved')
    ? 'begins'
    : 'other'
}

function lanesOf({ productId, sources, held, blocks }: Explanation): readonly Lane[] {
  const placed = new Set(sources.flatMap(({ events }) => events.map(({ id }) => id)))
  const waiting = held.filter(({ id }) => !placed.has(id))
  return [
    ...sources.map(({ id, kind, intervals, events }) => ({
      name: kind === 'manual' ? 'by hand' : id,
      bars: intervals.filter((one) => one.productId === productId),
      marks: events.map(({ id: eventId, createdAt, sentence, changes, note }) => ({
        ...{ id: eventId, at: Date.parse(createdAt), sentence, kind: kindOf(changes, note.code) },
      })),
    })),
    ...(waiting.length === 0
      ? []
      : [
          {
            name: 'waiting',
            bars: [],
            marks: waiting.map(({ id, createdAt, sentence }) => ({
              ...{ id, at: Date.parse(createdAt), sentence, kind: 'waits' as const },
            })),
          },
        ]),
    ...(blocks.length === 0
      ? []
      : [
          {
            name: 'blocked',
            isBlock: true as const,
            bars: blocks,
            marks: blocks.map(({ from, sentence }) => ({
              ...{ id: `block ${from}`, at: Date.parse(from), sentence, kind: 'ends' as const },
            })),
          },
        ]),
  ]
}

interface TimelineProps {
  readonly explanation: Explanation
  readonly productName: string
  readonly span: Span
  /** The instant asked about; null: now. */
  readonly at: number | null
  readonly onMove: (at: number) => void
}

export function Timeline({ explanation, productName, span, at, onMove }: TimelineProps) {
  const [zone] = useZone()
  const [said, setSaid] = useState<Mark | null>(null)
  const lanes = lanesOf(explanation)
  const group = useRef<HTMLDivElement>(null)
  const share = (time: number): number => {
    const place = (time - span.from) / (span.to - span.from)
    return Math.min(Math.max(place, 0), 1) * 100
  }
  const marker = at ?? span.now
  // One of them is in the order of the tab key; arrows lead to the others.
  const inOrder = lanes.flatMap(({ marks }) => marks).sort((a, b) => a.at - b.at)
  const entry = inOrder.some(({ id }) => id === said?.id) ? said?.id : inOrder.at(-1)?.id
  const step = (event: KeyboardEvent, by: number, from: Mark): void => {
    event.preventDefault()
    const next = inOrder[inOrder.indexOf(from) + by]
    const buttons = [...(group.current?.querySelectorAll<HTMLElement>('button') ?? [])]
    buttons.find((one) => one.dataset.event === next?.id)?.focus()
  }
  return (
    <div class="timeline">
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields. */}
      <div class="lanes" role="group" aria-label={`Events of ${visible(productName)}`} ref={group}>
        <svg class="rules" aria-hidden="true">
          <line class="now" x1={`${share(span.now)}%`} x2={`${share(span.now)}%`} y1="0" y2="100%" />
          <line class="marker" x1={`${share(marker)}%`} x2={`${share(marker)}%`} y1="0" y2="100%" />
        </svg>
        {lanes.map(({ name, bars, marks, isBlock }) => (
          <div class="lane" key={name}>
            <span class="lane-name">{visible(name)}</span>
            <svg aria-hidden="true">
              {bars.map(({ from, until }) => {
                const [begin, end] = [
                  share(Date.parse(from)),
                  until === null ? 100 : share(Date.parse(until)),
                ]
                const present = Math.min(Math.max(share(span.now), begin), end)
                return (
                  <g key={from} class={isBlock ? 'block' : 'access'}>
                    <rect x={`${begin}%`} width={`${present - begin}%`} height="100%" />
                    <rect class="ahead" x={`${present}%`} width={`${end - present}%`} height="100%" />
                  </g>
                )
              })}
            </svg>
            {marks.map((mark) => (
              <button
                key={mark.id}
                type="button"
                class={`mark ${mark.kind}`}
                data-event={mark.id}
                style={{ left: `${share(mark.at)}%` }}
                tabIndex={mark.id === entry ? 0 : -1}
                aria-label={`${timeText(mark.at, zone)}: ${visible(mark.sentence)}`}
                onFocus={() => setSaid(mark)}
                onMouseEnter={() => setSaid(mark)}
                onClick={() => onMove(mark.at)}
                onKeyDown={(event) => {
                  if (event.key === 'ArrowRight') step(event, 1, mark)
                  if (event.key === 'ArrowLeft') step(event, -1, mark)
                }}
              >
                {SIGNS[mark.kind]}
              </button>
            ))}
          </div>
        ))}
      </div>
      <input
        type="range"
        aria-label={`As of, on the timeline of ${visible(productName)}`}
        aria-valuetext={timeText(marker, zone)}
        min={span.from}
        max={span.to}
        step={span.step}
        value={marker}
        onInput={({ currentTarget: { valueAsNumber } }) => onMove(valueAsNumber)}
      />
      <div class="axis" aria-hidden="true">
        {[span.from, (span.from + span.to) / 2, span.to].map((time) => (
          <span key={time}>{timeText(time, zone, { dateStyle: 'medium' })}</span>
        ))}
      </div>
      <p class="said">
        {said === null ? (
          <span class="faint">
            ▲ begins access, ▼ ends it, ○ waits, ● changes nothing. Drag the marker to ask about another time.
          </span>
        ) : (
          <>
            <strong>{timeText(said.at, zone)}</strong> <bdi>{visible(said.sentence)}</bdi>
          </>
        )}
      </p>
    </div>
  )
}
