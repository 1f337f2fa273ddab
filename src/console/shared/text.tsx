/* Texts and times. What comes from elsewhere is shown as it is, and never obeyed. */

import { now } from '../now.js'
import { visible } from './plain.js'
import { useZone } from './preferences.js'
import { toast } from './toast.js'

/** A text that somebody else wrote: a name, an id, a reason. Its direction stays within it. */
export const Text = ({ children }: { readonly children: string }) => <bdi>{visible(children)}</bdi>

const SPECIAL = /(`[^`]+`|\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/

/** A sentence: its instants as times of the reader, and what is to be typed between backticks. */
export function Said({ children }: { readonly children: string }) {
  const parts = children.split(SPECIAL).map((part, index) => {
    if (index % 2 === 0) return visible(part)
    return part.startsWith('`') ? <code>{visible(part.slice(1, -1))}</code> : <Time at={part} />
  })
  return <bdi>{parts}</bdi>
}

export function saveFile(name: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }))
  Object.assign(document.createElement('a'), { href: url, download: name }).click()
  URL.revokeObjectURL(url)
}

/** An id in full, with a button that copies it. */
export function Id({ children }: { readonly children: string }) {
  const failed = (): void => toast('The browser does not allow to copy: select the text instead.', 'bad')
  // Browsers have no clipboard for pages over plain HTTP, except on this machine.
  const copy = (): void =>
    void (navigator.clipboard?.writeText(children) ?? Promise.reject()).then(() => toast('Copied.'), failed)
  const says = { 'aria-label': `Copy ${visible(children)}`, title: 'Copy' }
  return (
    <code class="inline-flex items-center gap-1">
      <Text>{children}</Text>
      <button type="button" class="small" onClick={copy} {...says}>
        <svg class="size-3 fill-none stroke-current" viewBox="0 0 12 12" aria-hidden="true">
          <path d="M4 4h7v7H4zM8 4V1H1v7h3" />
        </svg>
      </button>
    </code>
  )
}

const FORMAT: Intl.DateTimeFormatOptions = { dateStyle: 'medium', timeStyle: 'short' }

/** Such as `25 Nov 2026, 22:43`, in the zone of the reader or in UTC. */
export function timeText(at: number, zone: 'local' | 'utc', format = FORMAT): string {
  const inZone = zone === 'utc' ? { timeZone: 'UTC' } : {}
  return new Intl.DateTimeFormat(undefined, { ...format, ...inZone }).format(at)
}

export const DAY_MS = 86_400_000
const STEPS = { year: 365 * DAY_MS, month: 30 * DAY_MS, day: DAY_MS, hour: 3_600_000, minute: 60_000 }

/** Such as `3 days ago` or `in 2 hours`. */
function relativeText(at: number): string {
  const ms = at - now()
  const fits = Object.entries(STEPS).find(([, least]) => Math.abs(ms) >= least)
  const [unit, each] = fits ?? (['second', 1_000] as const)
  const format = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
  return format.format(Math.round(ms / each), unit as Intl.RelativeTimeFormatUnit)
}

type TimeProps = { readonly at: string | null; readonly relative?: boolean; readonly never?: string }

/** An instant in the reader's zone, with UTC at hand. @param never what is shown instead of null */
export function Time({ at, relative = false, never = 'never' }: TimeProps) {
  const [zone] = useZone()
  if (at === null) return <span class="faint">{never}</span>
  const [shown, ago] = [timeText(Date.parse(at), zone), relativeText(Date.parse(at))]
  const utc = `${at.replace('T', ' ').replace(/(\.000)?Z$/, '')} UTC`
  const [said, title] = relative ? [ago, `${shown} (${utc})`] : [shown, `${utc}, ${ago}`]
  return (
    <time dateTime={at} title={title}>
      {said}
    </time>
  )
}

/** Whole days in UTC, as the counts of the API have them, such as `2026-11-25`. */
export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)

/** @param ago how many days before today */
export const day = (ago = 0): string => dayOf(now() - ago * DAY_MS)

/** The instant that a day begins at; what is no day stays as it is, so that the API says so. */
export function beginOf(text: string, days = 0): string {
  const begin = new Date(Date.parse(text) + days * DAY_MS)
  return Number.isNaN(begin.getTime()) ? text : begin.toISOString()
}
