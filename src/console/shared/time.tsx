/* Instants and durations. */

import { useState } from 'preact/hooks'
import { now } from '../now.js'
import { durationIn } from './plain.js'
import { useZone } from './preferences.js'

const FORMAT: Intl.DateTimeFormatOptions = { dateStyle: 'medium', timeStyle: 'short' }

/** Such as `25 Nov 2026, 22:43`, in the zone of the reader or in UTC. */
export function timeText(at: number, zone: 'local' | 'utc', format = FORMAT): string {
  const inZone = zone === 'utc' ? { timeZone: 'UTC' } : {}
  return new Intl.DateTimeFormat(undefined, { ...format, ...inZone }).format(at)
}

const STEPS = [
  ['year', 365 * 86_400_000],
  ['month', 30 * 86_400_000],
  ['week', 7 * 86_400_000],
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const

/** Such as `3 days ago` or `in 2 hours`. */
export function relativeText(at: number, from = now()): string {
  const [unit, ms] = STEPS.find(([, least]) => Math.abs(at - from) >= least) ?? ['second', 1_000]
  return new Intl.RelativeTimeFormat('en', { numeric: 'auto' }).format(Math.round((at - from) / ms), unit)
}

/** Such as `5 minutes`, of a duration in milliseconds. */
export function durationText(ms: number): string {
  const [unit, each] = STEPS.find(([, least]) => ms >= least) ?? ['second', 1_000]
  const count = Math.round((ms / each) * 10) / 10
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

interface TimeProps {
  /** As the API says it; null: never. */
  readonly at: string | null
  /** `3 days ago`, with the time as the tooltip. */
  readonly relative?: boolean
  /** What is shown instead of null. */
  readonly never?: string
}

/** An instant in the reader's zone, with UTC at hand. */
export function Time({ at, relative = false, never = 'never' }: TimeProps) {
  const [zone] = useZone()
  if (at === null) return <span class="faint">{never}</span>
  const instant = Date.parse(at)
  const shown = timeText(instant, zone)
  const utc = `${at.replace('T', ' ').replace(/(\.000)?Z$/, '')} UTC`
  const title = relative ? `${shown} (${utc})` : `${utc}, ${relativeText(instant)}`
  return (
    <time dateTime={at} title={title}>
      {relative ? relativeText(instant) : shown}
    </time>
  )
}

interface DurationInputProps {
  readonly label: string
  readonly value: string
  /** @param until the instant that the duration from now ends at; null: it is no duration */
  readonly onChange: (text: string, until: string | null) => void
}

/** Takes a duration from now, such as `3w`, and says when it ends. */
export function DurationInput({ label, value, onChange }: DurationInputProps) {
  const [from] = useState(now)
  const [zone] = useZone()
  const untilOf = (text: string): number | null => {
    const ms = durationIn(text)
    const until = ms === null ? Number.NaN : from + ms
    return Number.isNaN(new Date(until).getTime()) ? null : until
  }
  const until = untilOf(value)
  return (
    <label class="field">
      <span>{label}</span>
      <input
        value={value}
        placeholder="3w"
        inputMode="text"
        autocomplete="off"
        aria-invalid={value !== '' && until === null}
        onInput={({ currentTarget: { value: text } }) => {
          const end = untilOf(text)
          onChange(text, end === null ? null : new Date(end).toISOString())
        }}
      />
      <small>
        {until === null
          ? 'A number and s, m, h, d, w or y: 3w is three weeks.'
          : `Until ${timeText(until, zone)}.`}
      </small>
    </label>
  )
}

interface InstantInputProps {
  readonly label: string
  /** As the API takes it; null: none. */
  readonly at: string | null
  readonly onChange: (at: string | null) => void
}

/** Takes an instant in the zone that times are shown in. */
export function InstantInput({ label, at, onChange }: InstantInputProps) {
  const [zone] = useZone()
  const instant = at === null ? Number.NaN : Date.parse(at)
  const behindUtcMs = zone === 'utc' ? 0 : new Date(instant).getTimezoneOffset() * 60_000
  const shown = Number.isNaN(instant) ? '' : new Date(instant - behindUtcMs).toISOString().slice(0, 16)
  return (
    <label class="field">
      <span>
        {label}
        {zone === 'utc' && ' (UTC)'}
      </span>
      <input
        type="datetime-local"
        value={shown}
        max="9999-12-31T23:59"
        onChange={({ currentTarget: { value } }) => {
          const given = Date.parse(zone === 'utc' ? `${value}Z` : value)
          onChange(Number.isNaN(given) ? null : new Date(given).toISOString())
        }}
      />
    </label>
  )
}
