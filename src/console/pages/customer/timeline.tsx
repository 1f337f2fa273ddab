/* Access to one product over time: intervals as bars, events as marks, and a marker for the instant asked about. */

import { useRef, useState } from 'preact/hooks'
import type { Schemas } from '../../api.js'
import { useSession } from '../../session.js'
import { visible } from '../../shared/plain.js'
import { useZone } from '../../shared/preferences.js'
import type { Of } from '../../shared/show.js'
import { DAY_MS, Said, timeText } from '../../shared/text.js'

type Explanation = Schemas['Explanation']

/** What the timelines of a page show, in epoch milliseconds. */
export type Span = { readonly from: number; readonly to: number; readonly now: number; readonly step: number }

/** Of the future at least, so that a grant of three weeks is seen to end. */
const AHEAD_MS = 60 * DAY_MS

const SIGNS = { begins: '▲', ends: '▼', waits: '○', other: '●' } as const
const TONES = { begins: 'good', ends: 'bad', waits: 'warn', other: 'plain' } as const
type Kind = keyof typeof SIGNS

type Mark = { readonly id: string; readonly at: number; readonly sentence: string; readonly kind: Kind }
type Bar = { readonly from: string; readonly until: string | null }
type Lane = { readonly name: string; readonly bars: readonly Bar[]; readonly marks: readonly Mark[] }

/** All events in order; those that wait may belong to no source. */
export function eventsOf({ sources, held }: Explanation) {
  const placed = sources.flatMap(({ events }) => events)
  const alone = held.filter(({ id }) => placed.every((one) => one.id !== id))
  const all = [
    ...placed.map((one) => ({ ...one, disposition: one.note.code === 'held' ? 'held' : one.disposition })),
    ...alone.map((one) => ({ ...one, disposition: 'held', changes: [], isAlone: true })),
  ]
  return all.sort((a, b) => Date.parse(a.createdAt) - Date.parse(b.createdAt))
}

type Placed = ReturnType<typeof eventsOf>[number]

function kindOf({ changes, disposition }: Placed): Kind {
  const codes: readonly string[] = changes.map(({ code }) => code)
  if (disposition === 'held') return 'waits'
  if (codes.includes('access_ended')) return 'ends'
  return codes.includes('access_given') || codes.includes('access_moved') ? 'begins' : 'other'
}

const ends = (from: string) => ({ at: Date.parse(from), kind: 'ends' as const })

function lanesOf(explanation: Explanation): readonly Lane[] {
  const { productId, sources, blocks } = explanation
  const placed = (one: Placed) => ({ ...one, at: Date.parse(one.createdAt), kind: kindOf(one) })
  const events = eventsOf(explanation).map(placed)
  const begun = blocks.map((one) => ({ ...one, id: one.from, ...ends(one.from) }))
  const lanes: readonly Lane[] = [
    ...sources.map(({ id, kind, intervals, events: own }) => ({
      name: kind === 'manual' ? 'by hand' : id,
      bars: intervals.filter((one) => one.productId === productId),
      marks: events.filter((one) => own.some((each) => each.id === one.id)),
    })),
    { name: 'waiting', bars: [], marks: events.filter((one) => 'isAlone' in one) },
    { name: 'blocked', bars: blocks, marks: begun },
  ]
  return lanes.filter(({ bars, marks }) => bars.length + marks.length > 0)
}

/** One span for all products, so that they can be compared. An end in the far future is cut off. */
export function spanOf(explanations: readonly Explanation[], now: number): Span {
  const lanes = explanations.flatMap(lanesOf)
  const ends = lanes.flatMap(({ bars }) => bars.flatMap(({ from, until }) => [from, until ?? from]))
  const marks = lanes.flatMap((lane) => lane.marks.map(({ at }) => at))
  const times = [...marks, ...ends.map((at) => Date.parse(at))]
  const first = Math.min(now - DAY_MS, ...times)
  const last = Math.min(Math.max(now + DAY_MS, ...times), now + Math.max(now - first, AHEAD_MS))
  const margin = (last - first) * 0.03
  const step = last - first > AHEAD_MS ? DAY_MS : 3_600_000
  // Now is a whole number of steps from the beginning, so that the marker can stand there.
  return { from: now - Math.ceil((now - first + margin) / step) * step, to: last + margin, now, step }
}

type Move = (at: number) => void
type Props = Of<Explanation> & { readonly span: Span; readonly at: number | null; readonly onMove: Move }

export function Timeline({ of: explanation, span, at, onMove }: Props) {
  const [zone] = useZone()
  const name = visible(useSession().productName(explanation.productId))
  const [said, setSaid] = useState<Mark | null>(null)
  const lanes = lanesOf(explanation)
  const group = useRef<HTMLDivElement>(null)
  const share = (time: number): number => {
    const place = (time - span.from) / (span.to - span.from)
    return Math.min(Math.max(place, 0), 1) * 100
  }
  const rule = (time: number) => ({ x1: `${share(time)}%`, x2: `${share(time)}%`, y1: '0', y2: '100%' })
  const bar = ({ from, until }: Bar, color: string) => {
    const [begin, end] = [share(Date.parse(from)), until === null ? 100 : share(Date.parse(until))]
    const present = Math.min(Math.max(share(span.now), begin), end)
    return (
      <g key={from} class={color} fill={color === 'block' ? 'var(--color-bad)' : 'var(--color-good)'}>
        <rect class="opacity-60" x={`${begin}%`} width={`${present - begin}%`} height="100%" />
        <rect class="opacity-30" x={`${present}%`} width={`${end - present}%`} height="100%" />
      </g>
    )
  }
  const marker = at ?? span.now
  // One of them is in the order of the tab key; arrows lead to the others.
  const inOrder = lanes.flatMap(({ marks }) => marks).sort((a, b) => a.at - b.at)
  const entry = inOrder.some(({ id }) => id === said?.id) ? said?.id : inOrder.at(-1)?.id
  const step = (event: KeyboardEvent, from: Mark): void => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (by === undefined) return
    event.preventDefault()
    const next = inOrder[inOrder.indexOf(from) + by]
    const buttons = [...(group.current?.querySelectorAll<HTMLElement>('button') ?? [])]
    buttons.find((one) => one.dataset.event === next?.id)?.focus()
  }
  return (
    // The lanes are as wide as the way of the range's thumb: the marker is above it.
    <div>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields. */}
      <div class="relative mx-2" role="group" aria-label={`Events of ${name}`} ref={group}>
        <svg class="absolute inset-0 size-full" aria-hidden="true">
          <line class="stroke-faint [stroke-dasharray:2_3]" {...rule(span.now)} />
          <line class="stroke-link stroke-2" {...rule(marker)} />
        </svg>
        {lanes.map(({ name: lane, bars, marks }) => (
          <div class="relative h-11 pt-5" key={lane}>
            <span class="absolute top-0 max-w-full truncate text-xs text-faint">{visible(lane)}</span>
            <svg class="h-5 w-full rounded-sm bg-plain-back" aria-hidden="true">
              {bars.map((one) => bar(one, lane === 'blocked' ? 'block' : 'access'))}
            </svg>
            {marks.map((mark) => (
              <button
                key={mark.id}
                type="button"
                class={`mark ${TONES[mark.kind]}`}
                data-event={mark.id}
                style={{ left: `${share(mark.at)}%` }}
                tabIndex={mark.id === entry ? 0 : -1}
                aria-label={`${timeText(mark.at, zone)}: ${visible(mark.sentence)}`}
                onFocus={() => setSaid(mark)}
                onMouseEnter={() => setSaid(mark)}
                onClick={() => onMove(mark.at)}
                onKeyDown={(event) => step(event, mark)}
              >
                {SIGNS[mark.kind]}
              </button>
            ))}
          </div>
        ))}
      </div>
      <input
        class="block min-h-6 w-full touch-pan-y border-0 bg-transparent p-0 accent-link"
        type="range"
        aria-label={`As of, on the timeline of ${name}`}
        aria-valuetext={timeText(marker, zone)}
        min={span.from}
        max={span.to}
        step={span.step}
        value={marker}
        onInput={({ currentTarget: { valueAsNumber } }) => onMove(valueAsNumber)}
      />
      <div class="mx-2 flex justify-between gap-2 text-xs text-faint" aria-hidden="true">
        {[span.from, (span.from + span.to) / 2, span.to].map((time) => (
          <span key={time}>{timeText(time, zone, { dateStyle: 'medium' })}</span>
        ))}
      </div>
      <p class="said min-h-6 pt-1">
        <Said>{said === null ? LEGEND : `${new Date(said.at).toISOString()} ${said.sentence}`}</Said>
      </p>
    </div>
  )
}

const LEGEND = '▲ begins access, ▼ ends it, ○ waits, ● changes nothing. Drag the marker to another time.'
