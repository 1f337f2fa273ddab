/* Fields: of filters, whose values are parts of the address, and of dialogs. */

import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { now } from '../now.js'
import { type Parameters, setParameters, usePlace } from '../router.js'
import { durationIn, visible } from './plain.js'
import { useZone } from './preferences.js'
import { timeText } from './text.js'

/** By their names; empty: none. */
export type Values = Readonly<Record<string, string>>

export interface Field {
  readonly name: string
  readonly label: string
  /** A text counts once it is left; `said`: at each letter. An instant is as the API takes it. */
  readonly kind?: 'text' | 'said' | 'day' | 'instant' | 'duration' | 'check'
  /** It is one of these, which say what they are, or have a title each. */
  readonly options?: readonly (string | readonly [value: string, title: string])[]
  /** What no value means; omitted: one of the options must be chosen. */
  readonly none?: string
  readonly hint?: string
  readonly initial?: string
  /** What else the address must say once this is chosen in a filter. */
  readonly fixed?: Parameters
}

type Change = (value: string) => void
type ControlProps = { readonly field: Field; readonly value: string; readonly onChange: Change }

export function Control({ field, value, onChange }: ControlProps) {
  const { label, kind, options, hint } = field
  const [zone] = useZone()
  const until = kind === 'duration' ? untilOf(value) : null
  const name = kind === 'instant' && zone === 'utc' ? `${label} (UTC)` : label
  const says = until === null ? hint : `Until ${timeText(until, zone)}.`
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: it is in Input or Select.
    <label class="grid max-w-full grid-cols-1 gap-0.5">
      <span class="label">{visible(name)}</span>
      {options === undefined && <Input field={field} value={value} onChange={onChange} />}
      {options !== undefined && <Select field={{ ...field, options }} value={value} onChange={onChange} />}
      {says !== undefined && <small>{visible(says)}</small>}
    </label>
  )
}

type SelectProps = ControlProps & { readonly field: Required<Pick<Field, 'options'>> }

function Select({ field: { none, options }, value, onChange }: SelectProps) {
  const titled = options.map((one) => (typeof one === 'string' ? ([one, one] as const) : one))
  // The address may hold another one, which the API then refuses: it must not look like none.
  const isOther = value !== '' && titled.every(([one]) => one !== value)
  const others = isOther ? [[value, value] as const] : []
  const all = [...(none === undefined ? [] : [['', none] as const]), ...others, ...titled]
  return (
    <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
      {all.map(([one, title]) => (
        <option key={one} value={one}>
          {visible(title)}
        </option>
      ))}
    </select>
  )
}

type Changed = { readonly currentTarget: HTMLInputElement }

function Input({ field: { kind = 'text' }, value, onChange }: ControlProps) {
  const [zone] = useZone()
  const own = useRef<HTMLInputElement>(null)
  useEffect(() => {
    // What is being typed is ahead of the value.
    if (own.current !== null && (kind === 'text' || kind === 'day')) own.current.value = value
  }, [value])
  // While a date is typed, it is empty.
  const typed = ({ currentTarget: { value: text } }: Changed): void => {
    if (kind !== 'day' || text !== '') onChange(kind === 'said' ? text : text.trim())
  }
  if (kind === 'check')
    return <input type="checkbox" checked={value !== ''} onChange={() => onChange(value ? '' : 'true')} />
  if (kind === 'instant') {
    const chosen = ({ currentTarget: { value: text } }: Changed): void => {
      const at = Date.parse(zone === 'utc' ? `${text}Z` : text)
      onChange(Number.isNaN(at) ? '' : new Date(at).toISOString())
    }
    const at = Date.parse(value) - (zone === 'utc' ? 0 : new Date(value).getTimezoneOffset() * 60_000)
    const shown = Number.isNaN(at) ? '' : new Date(at).toISOString().slice(0, 16)
    return <input type="datetime-local" value={shown} max="9999-12-31T23:59" onChange={chosen} />
  }
  const isWrong = kind === 'duration' && value !== '' && untilOf(value) === null
  const same = { ref: own, autocomplete: 'off', maxLength: 1000, 'aria-invalid': isWrong } as const
  if (kind === 'said' || kind === 'duration') return <input {...same} value={value} onInput={typed} />
  if (kind === 'day') return <input {...same} type="date" defaultValue={value} onChange={typed} />
  return <input {...same} defaultValue={value} onChange={typed} />
}

/** Epoch milliseconds: when a duration from now is over; null if it is none. */
export function untilOf(duration: string): number | null {
  const ms = durationIn(duration)
  return ms === null ? null : now() + ms
}

/** What the address says of these fields: what a list is filtered by. */
export function useFilter(fields: readonly Pick<Field, 'name' | 'initial'>[]): Values {
  const { parameters } = usePlace()
  const given = fields.map(({ name, initial = '' }) => [name, parameters.get(name) ?? initial] as const)
  return Object.fromEntries(given.filter(([, value]) => value !== ''))
}

type FiltersProps = { readonly fields: readonly Field[]; readonly children?: ComponentChildren }

/** Filters are parts of the address, so that what they leave can be sent to somebody. */
export function Filters({ fields, children }: FiltersProps) {
  const values = useFilter(fields)
  return (
    <div class="acts items-end [&_select]:max-w-56">
      {fields.map((field) => (
        <Control
          key={field.name}
          field={{ none: 'all', ...field }}
          value={values[field.name] ?? ''}
          onChange={(value) => setParameters({ ...field.fixed, [field.name]: value.trim() })}
        />
      ))}
      {children}
    </div>
  )
}
